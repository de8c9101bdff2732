"""homeport rollout, over the wire."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from homeport.api.cluster.v1beta2 import MachineDeployment
from homeport.api.meta import Resource
from homeport.capi.definition.kind import definitions
from homeport.cli.main import group
from homeport.client.protocol import Key, MergePatch
from homeport.runtime.testing import Plane, definition, plane

API = "cluster.x-k8s.io/v1beta2"
REVISION = "machinedeployment.clusters.x-k8s.io/revision"
TEMPLATE = Resource("provider.example.com", "v1", "FakeMachineTemplate", "fakemachinetemplates")
MD = Key("default", "md")


def spec(version: str, infra: str = "small") -> dict[str, Any]:
    return {
        "clusterName": "c1",
        "replicas": 1,
        "selector": {"matchLabels": {"a": "b"}},
        "template": {
            "metadata": {"labels": {"a": "b"}},
            "spec": {
                "clusterName": "c1",
                "version": version,
                "bootstrap": {"dataSecretName": "s"},
                "infrastructureRef": {"apiGroup": TEMPLATE.group, "kind": TEMPLATE.kind, "name": infra},
            },
        },
    }


def machine_set(number: int, version: str, uid: str, infra: str = "small") -> dict[str, Any]:
    owner = {"apiVersion": API, "kind": "MachineDeployment", "name": "md", "uid": uid, "controller": True}
    return {
        "apiVersion": API,
        "kind": "MachineSet",
        "metadata": {"name": f"md-{number}", "annotations": {REVISION: str(number)}, "ownerReferences": [owner]},
        "spec": {**spec(version, infra), "replicas": 0},
    }


@pytest.fixture
async def served(tmp_path: Path) -> AsyncIterator[tuple[Plane, Path]]:
    crd = definition(TEMPLATE)
    crd["metadata"]["labels"] = {"cluster.x-k8s.io/v1beta2": "v1"}
    async with plane(crds=[*definitions(), crd], serve=True) as p:
        annotations = {REVISION: "3"}
        body = {"apiVersion": API, "kind": "MachineDeployment", "metadata": {"name": "md", "annotations": annotations}}
        [md] = await p.have({**body, "spec": spec("v1.32.0")})
        await p.have(
            machine_set(1, "v1.30.0", md.uid, infra="gone"),
            machine_set(2, "v1.31.0", md.uid),
            machine_set(3, "v1.32.0", md.uid),
            {"apiVersion": TEMPLATE.api_version, "kind": TEMPLATE.kind, "metadata": {"name": "small"}},
        )
        path = tmp_path / "kubeconfig"
        path.write_text(p.server.pki.kubeconfig(p.server.url))
        yield p, path


async def run(path: Path, *args: str) -> Result:
    """In a thread of its own: the server needs the event loop."""
    line = ["rollout", *args, "md/md", "--kubeconfig", str(path)]
    return await asyncio.to_thread(CliRunner().invoke, group, line)


async def test_history_lists_revisions_and_marks_the_current(served: tuple[Plane, Path]) -> None:
    _, path = served
    result = await run(path, "history")
    assert result.exit_code == 0, result.output
    head, *rows = result.output.splitlines()
    assert head.split() == ["REVISION", "MACHINESET", "VERSION", "INFRASTRUCTURE", "BOOTSTRAP", "REPLICAS"]
    assert [row.split()[:3] for row in rows] == [
        ["1", "md-1", "v1.30.0"],
        ["2", "md-2", "v1.31.0"],
        ["3*", "md-3", "v1.32.0"],
    ]


async def test_undo_takes_the_template_back_by_one(served: tuple[Plane, Path]) -> None:
    p, path = served
    result = await run(path, "undo")
    assert result.exit_code == 0, result.output
    assert "is rolled back to revision 2 (v1.31.0)" in result.output
    assert (await p.client.get(MachineDeployment, MD)).spec.template.spec.version == "v1.31.0"


async def test_undo_to_a_revision_whose_templates_are_gone_is_refused(served: tuple[Plane, Path]) -> None:
    p, path = served
    result = await run(path, "undo", "--to-revision", "1")
    assert result.exit_code == 1
    assert "FakeMachineTemplate gone of revision 1 no longer exists" in result.output
    assert (await p.client.get(MachineDeployment, MD)).spec.template.spec.version == "v1.32.0"


async def test_undo_to_an_unknown_revision_says_which_there_are(served: tuple[Plane, Path]) -> None:
    _, path = served
    result = await run(path, "undo", "--to-revision", "9")
    assert result.exit_code == 1
    assert "has no revision 9 (it has: 1, 2, 3)" in result.output
    assert "revision-history-limit" in result.output


async def test_pause_and_resume_and_restart(served: tuple[Plane, Path]) -> None:
    p, path = served
    assert (await run(path, "pause")).exit_code == 0
    assert (await p.client.get(MachineDeployment, MD)).spec.paused is True
    refused = await run(path, "restart")
    assert refused.exit_code == 1
    assert "is paused: resume it first" in refused.output
    assert (await run(path, "resume")).exit_code == 0
    assert not (await p.client.get(MachineDeployment, MD)).spec.paused
    assert (await run(path, "restart")).exit_code == 0
    assert (await p.client.get(MachineDeployment, MD)).spec.rollout.after


async def test_status_tells_each_step_and_ends_when_it_is_over(served: tuple[Plane, Path]) -> None:
    p, path = served
    telling = asyncio.create_task(run(path, "status", "--timeout", "20"))
    now = {"observedGeneration": 1, "replicas": 1, "upToDateReplicas": 1, "availableReplicas": 1}
    await p.client.patch(MachineDeployment, MD, MergePatch({"status": now}), subresource="status")
    result = await telling
    assert result.exit_code == 0, result.output
    assert result.output.splitlines()[-1] == "machinedeployment/md has finished its rollout"


async def test_status_that_does_not_end_in_time_fails(served: tuple[Plane, Path]) -> None:
    _, path = served
    result = await run(path, "status", "--timeout", "0.2")
    assert result.exit_code == 1
    assert "has not finished its rollout after 0.2 s" in result.output


async def test_the_plane_of_kubeconfig_is_asked_as_by_kubectl(
    served: tuple[Plane, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, path = served
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("KUBECONFIG", str(path))
    found = await asyncio.to_thread(CliRunner().invoke, group, ["rollout", "history", "md/md"])
    assert found.exit_code == 0, found.output
    other = ["rollout", "history", "md/md", "--data", str(tmp_path / "other")]
    refused = await asyncio.to_thread(CliRunner().invoke, group, other)
    assert refused.exit_code == 1
    assert f"{tmp_path / 'other' / 'kubeconfig'} does not exist" in refused.output


async def test_a_namespace_of_the_context_is_used_and_the_hint_repeats_the_options(
    served: tuple[Plane, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    _, path = served
    monkeypatch.delenv("KUBECONFIG", raising=False)
    undone = await run(path, "undo")
    assert f"next: homeport rollout status machinedeployment/md --kubeconfig {path}\n" in undone.output
    path.write_text(
        path.read_text().replace("    cluster: homeport\n", "    cluster: homeport\n    namespace: other\n")
    )
    missing = await run(path, "history")
    assert missing.exit_code == 1
    named = await run(path, "history", "-n", "default")
    assert named.exit_code == 0, named.output


def test_a_target_of_another_form_is_refused() -> None:
    result = CliRunner().invoke(group, ["rollout", "undo", "deployment/x"])
    assert result.exit_code == 2
    assert "expected machinedeployment/NAME" in result.output
