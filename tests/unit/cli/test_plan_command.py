"""homeport plan, over the wire."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from homeport.app.platform import chosen
from homeport.cli.main import group
from homeport.cli.manifest import read_manifests
from homeport.runtime.testing import Plane, plane, versions

EXAMPLE = Path(__file__).parents[3] / "examples/02-cluster/cluster.yaml"


@pytest.fixture
async def served(tmp_path: Path) -> AsyncIterator[tuple[Plane, Path]]:
    async with plane(crds=chosen().definitions(), serve=True) as p:
        path = tmp_path / "kubeconfig"
        path.write_text(p.server.pki.kubeconfig(p.server.url))
        yield p, path


async def run(path: Path, *args: str) -> Result:
    """In a thread of its own: the server needs the event loop."""
    return await asyncio.to_thread(
        CliRunner().invoke, group, ["plan", "--no-preflight", *args, "--kubeconfig", str(path)]
    )


async def test_the_plan_of_a_new_cluster_lists_its_machines_and_writes_nothing(served: tuple[Plane, Path]) -> None:
    p, path = served
    before = versions(p)
    result = await run(path, "-f", str(EXAMPLE))
    assert result.exit_code == 0, result.output
    assert "Cluster/harbour created" in result.output
    assert "KubeadmControlPlane harbour: 3 created" in result.output
    assert "5 Machines: 5 created." in result.output
    assert "Not simulated:" in result.output
    assert versions(p) == before


async def test_json_has_a_row_for_each_machine(served: tuple[Plane, Path]) -> None:
    result = await run(served[1], "-f", str(EXAMPLE), "-o", "json")
    found = json.loads(result.output)
    assert [row["action"] for row in found["machines"]] == ["create"] * 5
    assert found["notSimulated"]


async def test_an_object_that_the_plane_refuses_ends_with_exit_code_1(
    served: tuple[Plane, Path], tmp_path: Path
) -> None:
    file = tmp_path / "wrong.yaml"
    file.write_text(EXAMPLE.read_text().replace("version: v1.29.0", "version: newest"))
    result = await run(served[1], "-f", str(file))
    assert result.exit_code == 1
    assert "KubeadmControlPlane/harbour refused" in result.output
    assert "The plane refuses this change" in result.output


def test_help_and_files_that_hold_no_object(tmp_path: Path) -> None:
    text = " ".join(CliRunner().invoke(group, ["plan", "--help"]).output.split())
    assert "Nothing is written" in text
    file = tmp_path / "empty.yaml"
    file.write_text("# nothing\n")
    result = CliRunner().invoke(group, ["plan", "-f", str(file), "--data", str(tmp_path)])
    assert result.exit_code == 1
    assert "no object found" in result.output
    file.write_text("kind: Cluster\n")
    result = CliRunner().invoke(group, ["plan", "-f", str(file), "--data", str(tmp_path)])
    assert "apiVersion, kind or metadata.name is missing" in result.output


def test_a_directory_means_all_its_manifests(tmp_path: Path) -> None:
    for name in ("a.yaml", "b.yml", "c.json"):
        body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name[0]}}
        (tmp_path / name).write_text(json.dumps(body))
    (tmp_path / "README.md").write_text("not a manifest")
    assert [each["metadata"]["name"] for each in read_manifests((str(tmp_path),))] == ["a", "b", "c"]
