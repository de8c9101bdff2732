"""homeport preflight: the checks of a manifest by a simulated Prism Central."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from homeport.cli.main import group
from homeport.runtime.testing import versions
from scenario.nutanix.site import Site, nutanix_site

EXAMPLE = Path(__file__).parents[3] / "examples/02-cluster/cluster.yaml"


@pytest.fixture
async def served(tmp_path: Path) -> AsyncIterator[tuple[Site, list[str]]]:
    async with nutanix_site(start=False) as site:
        await site.plane.server.serve()
        path, trust = tmp_path / "kubeconfig", tmp_path / "ca.pem"
        path.write_text(site.plane.server.pki.kubeconfig(site.plane.server.url))
        trust.write_bytes(site.dial.ca_pem)
        yield site, ["--kubeconfig", str(path), "--proxy", site.dial.proxy, "--trust", str(trust)]


async def run(*args: str) -> Result:
    """In a thread of its own: the servers need the event loop."""
    return await asyncio.to_thread(CliRunner().invoke, group, list(args))


async def test_a_manifest_that_can_work_passes_and_nothing_is_created_anywhere(served: tuple[Site, list[str]]) -> None:
    site, where = served
    before = versions(site.plane)
    result = await run("preflight", "-f", str(EXAMPLE), *where)
    assert result.exit_code == 0, result.output
    for check in ("PrismClientInit", "ReferencesResolved", "CapacitySufficient", "NetworksDisjoint"):
        assert f"ok      NutanixCluster harbour: {check}" in result.output
    assert versions(site.plane) == before
    assert site.vms() == []
    assert site.categories() == []


async def test_a_wrong_image_fails_with_the_cure(served: tuple[Site, list[str]], tmp_path: Path) -> None:
    file = tmp_path / "wrong.yaml"
    file.write_text(EXAMPLE.read_text().replace("kube-v1.29.0}", "kube-v1.29.1}"))
    result = await run("preflight", "-f", str(file), "-o", "json", *served[1])
    assert result.exit_code == 1
    [failed] = [each for each in json.loads(result.output) if not each["ok"]]
    assert failed["check"] == "ReferencesResolved"
    assert "did you mean 'ubuntu-22.04-kube-v1.29.0'" in failed["message"]


async def test_a_wrong_password_fails_the_first_check(served: tuple[Site, list[str]], tmp_path: Path) -> None:
    file = tmp_path / "wrong.yaml"
    file.write_text(EXAMPLE.read_text().replace('"password": "password"', '"password": "wrong"'))
    result = await run("preflight", "-f", str(file), *served[1])
    assert result.exit_code == 1
    assert "failed  NutanixCluster harbour: PrismClientInit" in result.output


async def test_the_plan_shows_the_results_of_the_preflight(served: tuple[Site, list[str]]) -> None:
    result = await run("plan", "-f", str(EXAMPLE), *served[1])
    assert result.exit_code == 0, result.output
    assert "ok      NutanixCluster harbour: CapacitySufficient" in result.output


async def test_a_cluster_that_does_not_exist_is_named(served: tuple[Site, list[str]]) -> None:
    result = await run("preflight", "cluster", "nope", *served[1])
    assert result.exit_code == 1
    assert "no Cluster, TenantCluster or ClusterDeployment 'nope'" in result.output


def test_help_and_what_has_to_be_named() -> None:
    text = " ".join(CliRunner().invoke(group, ["preflight", "--help"]).output.split())
    assert "authentication, references and capacity" in text
    result = CliRunner().invoke(group, ["preflight"])
    assert result.exit_code == 2
    assert "use either -f FILE or 'cluster NAME'" in result.output
