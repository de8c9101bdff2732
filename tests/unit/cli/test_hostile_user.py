"""Commands under wrong names, missing files, missing rights, a plane that is down, and other character sets."""

from __future__ import annotations

import asyncio
import io
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from homeport.app.platform import chosen
from homeport.cli.charset import degrade
from homeport.cli.main import group
from homeport.machinery.yaml import load, load_all
from homeport.runtime.testing import Plane, plane

EXAMPLE = Path(__file__).parents[3] / "examples/02-cluster/cluster.yaml"
HARVESTER_MACHINE = {
    "apiVersion": "infrastructure.cluster.x-k8s.io/v1alpha1",
    "kind": "KubevirtMachine",
    "metadata": {"name": "deck"},
    "spec": {"virtualMachineTemplate": {"metadata": {"namespace": "vms"}, "spec": {}}},
}


def machine(name: str, kind: str) -> dict[str, Any]:
    ref = {"apiGroup": "infrastructure.cluster.x-k8s.io", "kind": kind, "name": name}
    spec = {"clusterName": "harbour", "bootstrap": {"dataSecretName": "s"}, "infrastructureRef": ref}
    return {"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Machine", "metadata": {"name": name}, "spec": spec}


@pytest.fixture
async def served(tmp_path: Path) -> AsyncIterator[tuple[Plane, Path]]:
    async with plane(crds=chosen().definitions(), serve=True) as p:
        await p.have(*load_all(EXAMPLE.read_text()), machine("deck", "KubevirtMachine"), HARVESTER_MACHINE)
        await p.have(machine("hull", "NutanixMachine"))
        path = tmp_path / "kubeconfig"
        path.write_text(p.server.pki.kubeconfig(p.server.url))
        yield p, path


def visitor(kubeconfig: Path) -> Path:
    """A kubeconfig of a user without any rights."""
    body = load(kubeconfig.read_text())
    body["users"][0]["user"]["as"] = "visitor"
    path = kubeconfig.with_name("visitor")
    path.write_text(json.dumps(body))
    return path


async def run(path: Path, *args: str) -> Result:
    """In a thread of its own: the server needs the event loop."""
    return await asyncio.to_thread(CliRunner().invoke, group, [*args, "--kubeconfig", str(path)])


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("heal", "dekc"), "machines.cluster.x-k8s.io \"dekc\" not found in namespace 'default'; did you mean 'deck'?"),
        (
            ("heal", "deck", "-n", "kube-system"),
            "in namespace 'kube-system': there is one in namespace default, use -n",
        ),
        (("rollout", "history", "md/harbour-worker"), "did you mean 'harbour-workers'?"),
        (("orphans", "list", "harbor"), "did you mean 'harbour'?"),
        (
            ("kubeconfig", "harbour"),
            "Cluster default/harbour has no kubeconfig yet: Secret harbour-kubeconfig does not",
        ),
        (("frobnicate",), "No such command 'frobnicate': expected one of "),
        (("logs", "machine/deck"), "only the plane of 'homeport up' keeps a log of each object"),
        (
            ("upgrade", "cluster", "harbour", "--to", "v9.9.9"),
            "v9.9.9 is another major version than v1.29.0: upgrade to",
        ),
        (("image", "upload", "x", "--url", "ftp://x/y", "--provider-config", "p"), "--url ftp://x/y: expected http://"),
        (("image", "upload", "x", "--url", "http://x/y", "--provider-config", "p"), '"p" not found in namespace'),
        (("kubeconfig", "harbur"), "did you mean 'harbour'?"),
        (("kubeconfig", "harbour", "--expires", "1h"), "--expires is for TenantClusters: Cluster default/harbour has"),
        (("plan", "-f", "/nope.yaml"), "-f /nope.yaml: can't be read: No such file or directory"),
        (("plan", "-f", "/proc/self/fd"), "-f /proc/self/fd: the directory contains no .yaml, .yml or .json file"),
        (("console", "deck"), "run 'virtctl console -n vms deck'"),
        (("console", "deck"), "kubectl logs -n vms -l vm.kubevirt.io/name=deck -c guest-console-log"),
        (("top", "machines", "-n", "kube-system"), "there are no Machines here (-A shows all namespaces)"),
    ],
)
async def test_the_message_says_what_to_do(words: tuple[str, ...], told: str, served: tuple[Plane, Path]) -> None:
    result = await run(served[1], *words)
    assert told in result.output
    assert result.exception is None or isinstance(result.exception, SystemExit)


async def test_who_may_not_list_clusters_is_told_so_and_not_that_there_are_none(served: tuple[Plane, Path]) -> None:
    path = visitor(served[1])
    for words in (("tree",), ("doctor",), ("describe", "cluster", "harbour"), ("logs", "cluster/harbour")):
        result = await run(path, *words)
        assert result.exit_code == 1, (words, result.output)
        assert "you may not list ClusterDeployments or TenantClusters or Clusters in" in result.output, words


@pytest.mark.parametrize(
    ("words", "missing"),
    [
        (("top", "machines", "-A"), "list nutanixmachines.infrastructure.cluster.x-k8s.io in the whole cluster"),
        (("top", "clusters"), "list nutanixmachines.infrastructure.cluster.x-k8s.io in namespace default"),
        (("discover", "--secret", "prism"), "get secrets prism in namespace default"),
        (("discover",), "list "),
        (("plan", "-f", "examples/02-cluster/cluster.yaml"), "list namespaces in the whole cluster"),
        (("heal", "deck"), "get machines.cluster.x-k8s.io deck in namespace default"),
    ],
)
async def test_a_missing_right_is_named_with_whom_to_ask(
    words: tuple[str, ...], missing: str, served: tuple[Plane, Path]
) -> None:
    result = await run(visitor(served[1]), *words)
    assert result.exit_code == 1, result.output
    assert f"you (user 'visitor') may not {missing}" in result.output
    assert "ask an administrator of the cluster for a " in result.output
    assert "is forbidden: User" not in result.output


def test_a_plane_that_is_down_is_named_with_the_command_that_starts_it(tmp_path: Path) -> None:
    (tmp_path / "state.db").touch()
    entry = {"name": "x", "cluster": {"server": "https://127.0.0.1:1"}}
    body = {"clusters": [entry], "contexts": [{"name": "x", "context": {"cluster": "x"}}], "current-context": "x"}
    (tmp_path / "kubeconfig").write_text(json.dumps(body))
    for place in (("--data", str(tmp_path)), ("--kubeconfig", str(tmp_path / "kubeconfig"))):
        result = CliRunner().invoke(group, ["tree", *place])
        assert result.exit_code == 1
        told = f"No plane is running on {tmp_path}: start it with 'homeport up --data {tmp_path}'"
        assert told in result.output.replace("\n", " ")


def test_a_server_that_is_not_a_plane_of_this_machine_is_named_with_what_to_check(tmp_path: Path) -> None:
    entry = {"name": "x", "cluster": {"server": "https://127.0.0.1:1"}}
    body = {"clusters": [entry], "contexts": [{"name": "x", "context": {"cluster": "x"}}], "current-context": "x"}
    (tmp_path / "other").write_text(json.dumps(body))
    result = CliRunner().invoke(group, ["tree", "--kubeconfig", str(tmp_path / "other")])
    assert "no connection to https://127.0.0.1:1: connection refused. Check that this server runs" in result.output


async def test_a_kubeconfig_without_the_ca_of_the_plane_is_named_as_the_cause(served: tuple[Plane, Path]) -> None:
    body = load(served[1].read_text())
    body["clusters"][0]["cluster"].pop("certificate-authority-data")
    path = served[1].with_name("distrustful")
    path.write_text(json.dumps(body))
    result = await run(path, "tree")
    assert "certificate chain. Check certificate-authority-data in the kubeconfig" in result.output


def test_a_directory_without_a_plane_is_named_in_the_next_command(tmp_path: Path) -> None:
    result = CliRunner().invoke(group, ["tree", "--data", str(tmp_path / "new")])
    assert f"start a plane with 'homeport up --data {tmp_path / 'new'}'" in result.output


@pytest.mark.parametrize("name", ["X_Y", "1st", "a/b", "-a", "a-", "a" * 64, "é"])
def test_a_cluster_name_that_can_not_work_is_refused_before_anything_is_asked(name: str, tmp_path: Path) -> None:
    words = ["create", "cluster", "--api", "cluster-api", "--data", str(tmp_path), "--", name]
    result = CliRunner().invoke(group, words)
    assert result.exit_code == 2
    assert f"NAME {name!r}: expected lower-case letters" in result.output


@pytest.mark.parametrize(
    "words",
    [("support-bundle", "{}"), ("create", "cluster", "quay", "--api", "tenant", "--provider-config", "x", "-o", "{}")],
)
def test_a_folder_that_does_not_exist_is_named_before_any_work(words: tuple[str, ...], tmp_path: Path) -> None:
    file = tmp_path / "none" / "file"
    result = CliRunner().invoke(group, [*(each.format(file) for each in words), "--data", str(tmp_path)])
    assert result.exit_code == 1
    assert result.output == f"Error: {file.parent} is not a directory: create it first\n"


def test_characters_that_a_terminal_lacks_are_written_in_ascii() -> None:
    written = io.BytesIO()
    stream = io.TextIOWrapper(written, encoding="latin-1")
    degrade(stream)
    stream.write("│ ├─Machine/é …☃\n")
    stream.flush()
    assert written.getvalue().decode("latin-1") == "| |-Machine/é ~?\n"


@pytest.mark.parametrize("words", [("describe", "cluster", ""), ("describe", "cluster/"), ("doctor", ""), ("tree", "")])
def test_an_empty_name_is_refused_before_the_plane_is_asked(words: tuple[str, ...], tmp_path: Path) -> None:
    result = CliRunner().invoke(group, [*words, "--data", str(tmp_path)])
    assert result.exit_code == 2
    assert "the name of the cluster is empty: expected 'cluster NAME'" in result.output
