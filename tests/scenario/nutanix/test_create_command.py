"""homeport create cluster: on a simulated Prism Central, by flags and by questions."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from homeport.api.cluster.v1beta2 import Cluster, MachineDeployment
from homeport.cli.cluster import create
from homeport.cli.main import group
from homeport.client.protocol import Key
from homeport.machinery.yaml import load_all
from homeport.runtime.testing import versions
from scenario.nutanix.site import Site, nutanix_site

SOURCE = ["--api", "cluster-api", "--secret", "prism", "--address", "prism-central.example.com"]
PLACE = ["--place", "nutanix-cluster-1", "--network", "vm-network", "--endpoint", "10.0.0.105"]


@pytest.fixture
async def served(tmp_path: Path) -> AsyncIterator[tuple[Site, list[str]]]:
    async with nutanix_site(start=False) as site:
        account = [{"type": "basic_auth", "data": {"prismCentral": {"username": "admin", "password": "password"}}}]
        meta = {"name": "prism", "namespace": "default"}
        data = {"credentials": json.dumps(account)}
        await site.have({"apiVersion": "v1", "kind": "Secret", "metadata": meta, "stringData": data})
        await site.plane.server.serve()
        path, trust = tmp_path / "kubeconfig", tmp_path / "ca.pem"
        path.write_text(site.plane.server.pki.kubeconfig(site.plane.server.url))
        trust.write_bytes(site.dial.ca_pem)
        yield site, ["--kubeconfig", str(path), "--proxy", site.dial.proxy, "--trust", str(trust)]


async def run(*args: str, answers: str | None = None) -> Result:
    """In a thread of its own: the servers need the event loop."""
    return await asyncio.to_thread(CliRunner().invoke, group, ["create", "cluster", *args], answers)


async def test_flags_alone_make_a_manifest_without_passwords_show_the_plan_and_apply_it(
    served: tuple[Site, list[str]], tmp_path: Path
) -> None:
    site, where = served
    file = tmp_path / "quay.yaml"
    words = ["quay", *SOURCE, *PLACE, "--image", "ubuntu-22.04-kube-v1.30.0", "--workers", "3", "-o", str(file)]
    result = await run(*words, "--apply", *where)
    assert result.exit_code == 0, result.output
    assert "4 Machines: 4 created." in result.output
    assert "ok      NutanixCluster quay: CapacitySufficient" in result.output
    objects = load_all(file.read_text())
    assert [each["kind"] for each in objects if each["kind"] in ("Cluster", "Secret", "ClusterAddon")] == [
        "Cluster",
        "ClusterAddon",
    ]
    assert '"password"' not in file.read_text()
    assert (await site.get(Cluster, "quay")).spec.cluster_network.pods.cidr_blocks == ["192.168.0.0/16"]
    workers = await site.client.get(MachineDeployment, Key("default", "quay-workers"))
    assert (workers.spec.replicas, workers.spec.template.spec.version) == (3, "v1.30.0")


async def test_on_a_terminal_the_command_asks_with_what_the_plane_and_the_hypervisor_have(
    served: tuple[Site, list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    site, where = served
    await site.have({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "other"}, "stringData": {"key": "x"}})
    monkeypatch.setattr(create, "on_terminal", lambda: True)
    before = versions(site.plane)
    source = ["", "", "prism-central.example.com"]  # provider, Secret, address
    size = ["3", "4", "4", "8Gi", ""]
    answers = [*source, "2", "", "", "10.0.0.105", *size, "n"]
    result = await run("quay", "--api", "cluster-api", "--no-plan", *where, answers="".join(f"{a}\n" for a in answers))
    assert result.exit_code == 0, result.output
    assert "  1. prism\nSecret with the credentials of the hypervisor [1]:" in result.output
    assert "2. nutanix-cluster-1" in result.output
    assert "Image of the machines [6]:" in result.output  # the newest Kubernetes
    assert "Network of the machines [1]:" in result.output
    assert "vm-network is 10.0.0.0/22; choose an address outside of 10.0.0.110-10.0.0.250" in result.output
    manifest = load_all(result.stdout)
    [control] = [each["spec"] for each in manifest if each["kind"] == "KubeadmControlPlane"]
    assert (control["replicas"], control["version"]) == (3, "v1.30.0")
    machine = next(each for each in manifest if each["kind"] == "NutanixMachineTemplate")["spec"]["template"]["spec"]
    assert (machine["vcpuSockets"], machine["memorySize"], machine["systemDiskSize"]) == (4, "8Gi", "40Gi")
    assert versions(site.plane) == before


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (
            ("--api", "cluster-api", "--provider", "nutanix", "-n", "kube-system"),
            "no Secret in namespace kube-system has credentials for nutanix: create one and run this command again",
        ),
        (("--api", "deployment", "--provider", "nutanix"), "there is no Credential in namespace default"),
        (("--api", "tenant"), "there is no ProviderConfig"),
    ],
)
async def test_on_a_terminal_what_has_to_be_created_first_is_named(
    served: tuple[Site, list[str]], monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], told: str
) -> None:
    monkeypatch.setattr(create, "on_terminal", lambda: True)
    result = await run("quay", *words, *served[1])
    assert result.exit_code == 1
    assert told in result.output


async def test_a_dry_run_is_validated_and_writes_nothing(served: tuple[Site, list[str]]) -> None:
    site, where = served
    before = versions(site.plane)
    words = ["quay", *SOURCE, *PLACE, "--image", "ubuntu-22.04-kube-v1.30.0", "--no-plan", "--dry-run"]
    result = await run(*words, *where)
    assert result.exit_code == 0, result.output
    assert "Cluster/quay applied (dry run)" in result.output
    assert versions(site.plane) == before


async def test_names_that_the_hypervisor_does_not_have_are_answered_with_near_ones(
    served: tuple[Site, list[str]],
) -> None:
    result = await run("quay", *SOURCE, *PLACE, "--image", "ubuntu-kube-v1.30.0", *served[1])
    assert result.exit_code == 1
    assert "--image ubuntu-kube-v1.30.0: not found; there are ubuntu-22.04-kube-v1.30.0" in result.output


def test_help_and_what_is_missing_without_a_terminal(tmp_path: Path) -> None:
    text = " ".join(CliRunner().invoke(group, ["create", "cluster", "--help"]).output.split())
    assert "It contains no password" in text
    result = CliRunner().invoke(group, ["create", "cluster", "quay", "--data", str(tmp_path)])
    assert result.exit_code == 2
    assert "--api is required: cluster-api, tenant or deployment" in result.output
