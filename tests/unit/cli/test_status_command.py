"""homeport status: which plane it shows, over the wire."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from homeport.app.plane import instance as running
from homeport.app.plane.instance import Instance
from homeport.capi.definition.kind import definitions
from homeport.cli.main import group
from homeport.cli.plane import target
from homeport.runtime.testing import Plane, plane

API = "cluster.x-k8s.io/v1beta2"
SINCE = "2026-01-01T00:00:00Z"


def cluster(name: str, namespace: str = "default") -> dict[str, Any]:
    ref = {"apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "SomeCluster", "name": name}
    why = {"type": "Available", "status": "False", "reason": "Broken", "message": "* SomeCluster: the disk is full"}
    meta = {"name": name, "namespace": namespace}
    status = {"conditions": [{**why, "lastTransitionTime": SINCE}]}
    return {
        "apiVersion": API,
        "kind": "Cluster",
        "metadata": meta,
        "spec": {"infrastructureRef": ref},
        "status": status,
    }


def write_kubeconfig(p: Plane, file: Path) -> Path:
    file.write_text(p.server.pki.kubeconfig(p.server.url))
    return file


@pytest.fixture
async def served(tmp_path: Path) -> AsyncIterator[tuple[Plane, Path]]:
    async with plane(crds=definitions(), serve=True) as p:
        await p.have(cluster("harbour"), cluster("pier", "kube-system"))
        yield p, write_kubeconfig(p, tmp_path / "kubeconfig")


@pytest.fixture(autouse=True)
def clean(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("KUBECONFIG", raising=False)
    monkeypatch.delenv("HOMEPORT_DATA", raising=False)


async def run(*args: str, **environment: Any) -> Result:
    """In a thread of its own: the server needs the event loop."""
    env = {key: str(value) for key, value in environment.items()}
    return await asyncio.to_thread(CliRunner(env=env).invoke, group, ["status", *args])


async def test_a_kubeconfig_option_names_the_plane_and_the_output_says_so(served: tuple[Plane, Path]) -> None:
    p, file = served
    result = await run("--kubeconfig", str(file))
    assert result.exit_code == 0, result.output
    assert result.output.startswith(f"Homeport at {p.server.url}\nkubeconfig  {file} (--kubeconfig)\n")
    assert "Cluster harbour" in result.output
    assert "Cluster kube-system/pier" in result.output
    assert "the disk is full" in result.output
    assert f"next: homeport doctor --kubeconfig {file}" in result.output


async def test_a_cluster_that_can_not_be_read_is_named_and_hides_no_other(tmp_path: Path) -> None:
    """As with definitions of another project or version."""
    loose = [dict(each) for each in definitions() if each["metadata"]["name"] == "clusters.cluster.x-k8s.io"]
    anything = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    for each in loose:
        versions = [{**version, "schema": anything} for version in each["spec"]["versions"]]
        each["spec"] = {**each["spec"], "versions": versions}
    async with plane(crds=loose, serve=True) as p:
        await p.have(cluster("harbour"), {**cluster("wreck"), "spec": {"clusterNetwork": {"apiServerPort": "many"}}})
        result = await run("--kubeconfig", str(write_kubeconfig(p, tmp_path / "kubeconfig")))
    assert result.exit_code == 0, result.output
    assert "Cluster harbour" in result.output
    assert "Cluster wreck: does not fit its type and is not acted on" in result.output
    assert "apiServerPort" in result.output


async def test_kubeconfig_of_the_environment_is_used_if_no_option_is_given(served: tuple[Plane, Path]) -> None:
    p, file = served
    result = await run("-o", "json", KUBECONFIG=file)
    assert result.exit_code == 0, result.output
    found = json.loads(result.output)
    assert (found["source"], found["url"], found["running"]) == ("$KUBECONFIG", p.server.url, True)
    assert [each["name"] for each in found["clusters"]] == ["harbour", "pier"]
    result = await run("-o", "name", "-n", "kube-system", KUBECONFIG=file)
    assert result.output == "cluster/pier\n"


async def test_a_data_directory_of_the_command_line_counts_more_than_the_environment(
    served: tuple[Plane, Path], tmp_path: Path
) -> None:
    result = await run("--data", str(tmp_path / "none"), KUBECONFIG=served[1])
    assert result.exit_code == 3
    assert f"no plane is running on {tmp_path / 'none'}" in result.output


async def test_a_user_who_may_not_list_all_clusters_is_told_to_name_a_namespace(
    served: tuple[Plane, Path], tmp_path: Path
) -> None:
    p, _ = served
    file = tmp_path / "few"
    file.write_text(p.server.pki.kubeconfig(p.server.url, p.server.pki.issue_client("few").pem))
    result = await run("--kubeconfig", str(file))
    assert result.exit_code == 1
    assert (
        f"{p.server.url}: you may not list Clusters in all namespaces: ask an administrator for the right, or name a "
        "namespace with -n (--kubeconfig)" in result.output
    )


async def test_a_cluster_without_homeport_is_an_error_that_says_what_was_asked(tmp_path: Path) -> None:
    async with plane(serve=True) as p:
        file = write_kubeconfig(p, tmp_path / "bare")
        result = await run(KUBECONFIG=file)
        assert result.exit_code == 1
        assert f"{p.server.url}: it has no Cluster API kinds, so Homeport is not installed there" in result.output
        assert "($KUBECONFIG)" in result.output


async def test_the_plane_on_this_machine_is_shown_if_the_environment_names_no_plane(
    served: tuple[Plane, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = Instance(pid=1, url="https://127.0.0.1:1", version="0", started=0.0)
    monkeypatch.setattr(target, "read_instance", lambda data: here)
    monkeypatch.setattr(running, "read_instance", lambda data: here)
    asked: list[str] = []

    def ask(settings: Any, instance: Instance) -> Any:
        asked.append(instance.url)
        raise SystemExit(0)

    monkeypatch.setattr(target, "ask_plane", ask)
    async with plane(serve=True) as bare:
        file = write_kubeconfig(bare, tmp_path / "bare")
        await run(KUBECONFIG=file)
    assert asked == [here.url]
    result = await asyncio.to_thread(CliRunner(env={"KUBECONFIG": str(served[1])}).invoke, group, ["tree", "-A"])
    assert f"note: using {served[0].server.url} of $KUBECONFIG; for the plane that runs on" in result.stderr
    assert "Cluster/harbour" in result.stdout
