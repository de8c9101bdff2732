"""homeport upgrade, heal, and rollout of control planes, over the wire."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from homeport.api.controlplane.v1beta2 import KubeadmControlPlane
from homeport.app.platform import chosen
from homeport.cli.main import group
from homeport.client.protocol import Key
from homeport.machinery.yaml import load_all
from homeport.runtime.testing import Plane, plane, versions
from present import present

EXAMPLE = Path(__file__).parents[3] / "examples/02-cluster/cluster.yaml"


@pytest.fixture
async def served(tmp_path: Path) -> AsyncIterator[tuple[Plane, Path]]:
    async with plane(crds=chosen().definitions(), serve=True) as p:
        objects: list[dict[str, Any]] = load_all(EXAMPLE.read_text())
        await p.have(*objects)
        path = tmp_path / "kubeconfig"
        path.write_text(p.server.pki.kubeconfig(p.server.url))
        yield p, path


async def run(path: Path, *args: str) -> Result:
    """In a thread of its own: the server needs the event loop."""
    return await asyncio.to_thread(CliRunner().invoke, group, [*args, "--kubeconfig", str(path)])


async def test_an_upgrade_is_applied_only_when_told(served: tuple[Plane, Path]) -> None:
    p, path = served
    before = versions(p)
    words = ["upgrade", "cluster", "harbour", "--to", "v1.30.0", "--no-plan"]
    result = await run(path, *words)
    assert result.exit_code == 0, result.output
    assert "Add --apply to start the upgrade" in result.output
    assert versions(p) == before
    result = await run(path, *words, "--apply")
    assert result.exit_code == 0, result.output
    assert "NutanixMachineTemplate/harbour-control-plane-v1.30.0 created" in result.output
    kcp = await p.client.get(KubeadmControlPlane, Key("default", "harbour"))
    assert kcp.spec.version == "v1.30.0"
    assert present(kcp.spec.machine_template.spec.infrastructure_ref).name == "harbour-control-plane-v1.30.0"


async def test_an_upgrade_over_two_minor_versions_is_refused(served: tuple[Plane, Path]) -> None:
    result = await run(served[1], "upgrade", "cluster", "harbour", "--to", "v1.31.0")
    assert result.exit_code == 1
    assert "upgrade to v1.30 first" in result.output


async def test_control_planes_are_restarted_paused_and_resumed(served: tuple[Plane, Path]) -> None:
    p, path = served
    result = await run(path, "rollout", "pause", "kcp/harbour")
    assert "kubeadmcontrolplane/harbour is paused" in result.output
    result = await run(path, "rollout", "restart", "kcp/harbour")
    assert result.exit_code == 1
    assert "is paused: resume it first" in result.output
    assert "resumed" in (await run(path, "rollout", "resume", "kcp/harbour")).output
    result = await run(path, "rollout", "restart", "kubeadmcontrolplane/harbour")
    assert "kubeadmcontrolplane/harbour is restarted" in result.output
    assert (await p.client.get(KubeadmControlPlane, Key("default", "harbour"))).spec.rollout.after
    result = await run(path, "rollout", "status", "kcp/harbour", "--no-watch")
    assert "the change has not been observed yet" in result.output
    result = await run(path, "rollout", "history", "kcp/harbour")
    assert result.exit_code == 2
    assert "control planes keep no revisions" in result.output


async def test_healing_a_machine_that_does_not_exist_says_so(served: tuple[Plane, Path]) -> None:
    result = await run(served[1], "heal", "nope")
    assert result.exit_code == 1
    assert '"nope" not found' in result.output


def test_help_of_the_commands() -> None:
    text = " ".join(CliRunner().invoke(group, ["heal", "--help"]).output.split())
    assert "It refuses the only control plane machine" in text
    text = " ".join(CliRunner().invoke(group, ["upgrade", "cluster", "--help"]).output.split())
    assert "The control plane is upgraded first, then the workers" in text
