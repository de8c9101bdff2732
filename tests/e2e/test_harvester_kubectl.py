"""Real kubectl against a simulated Harvester: the commands of the guide to Harvester."""

from __future__ import annotations

import asyncio
import json
import subprocess
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from e2e.cluster import Cluster, Output, finish, stop
from homeport.runtime.testing import shared_pki
from homeport.sim.harvester.harvester import Harvester
from unit.sim.harvester.harvester_kit import class_of, vm_manifest


@pytest.fixture
async def simulated() -> AsyncIterator[Harvester]:
    made = await Harvester.open(shared_pki())
    try:
        await made.serve()
        yield made
    finally:
        await made.close()


@pytest.fixture
def cluster(simulated: Harvester, kubectl: str, tmp_path: Path) -> Cluster:
    simulated.server.pki.write_kubeconfig(tmp_path / "kubeconfig", simulated.server.url)
    return Cluster("harvester", kubectl, tmp_path / "kubeconfig", tmp_path)


async def run(cluster: Cluster, *args: str, stdin: str = "") -> Output:
    return await asyncio.to_thread(finish, cluster.start(*args), stdin)


async def ok(cluster: Cluster, *args: str, stdin: str = "") -> str:
    output = await run(cluster, *args, stdin=stdin)
    assert output.code == 0, output
    return output.out


async def test_kubectl_shows_the_world_of_the_guide(simulated: Harvester, cluster: Cluster) -> None:
    nodes = await ok(cluster, "get", "nodes")
    assert [line.split()[:2] for line in nodes.splitlines()[1:]] == [
        ["harvester-node-0", "Ready"],
        ["harvester-node-1", "Ready"],
        ["harvester-node-2", "Ready"],
    ]
    images = await ok(cluster, "get", "virtualmachineimage", "-n", "default")
    assert images.splitlines()[0].split()[:2] == ["NAME", "BACKEND"]
    assert [line.split()[0] for line in images.splitlines()[1:]] == ["rocky-9-cloud", "talos-1.9"]
    described = await ok(cluster, "describe", "virtualmachineimage", "talos-1.9", "-n", "default")
    assert "Display Name:" in described
    assert "Progress:            100" in described
    names = await ok(cluster, "get", "net-attach-def,keypairs,clusternetworks,settings", "-A", "-o", "name")
    assert {
        "networkattachmentdefinition.k8s.cni.cncf.io/workloads",
        "keypair.harvesterhci.io/butler-ssh",
        "clusternetwork.network.harvesterhci.io/mgmt",
        "setting.harvesterhci.io/server-version",
    } <= set(names.split())
    classes = await ok(cluster, "get", "storageclass")
    assert "harvester-longhorn (default)" in classes
    available = await ok(cluster, "wait", "--for=condition=Available", "deploy/harvester", "-n", "harvester-system")
    assert "condition met" in available


@pytest.mark.parametrize("name", ["harvester", "harvester-harvester"])
async def test_kubectl_logs_shows_the_requests(simulated: Harvester, cluster: Cluster, name: str) -> None:
    await ok(cluster, "get", "nodes")
    lines = await ok(cluster, "logs", "-n", "harvester-system", f"deploy/{name}")
    assert any(line.startswith("GET /api/v1/nodes") and " 200 " in line for line in lines.splitlines())


async def test_kubectl_follows_the_log(simulated: Harvester, cluster: Cluster) -> None:
    following = cluster.start("logs", "-n", "harvester-system", "deploy/harvester-harvester", "-f")
    try:
        await ok(cluster, "get", "keypairs")
        await asyncio.to_thread(_read_until, following, "GET /apis/harvesterhci.io/v1beta1/namespaces/default/keypairs")
    finally:
        stop(following)


def _read_until(process: subprocess.Popen[str], text: str) -> None:
    assert process.stdout is not None
    for line in process.stdout:
        if line.startswith(text):
            return
    raise AssertionError(f"the log ended without {text}")


async def test_kubectl_runs_describes_and_stops_a_vm(simulated: Harvester, cluster: Cluster) -> None:
    manifest = {"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachine"}
    manifest |= vm_manifest("worker-0", await class_of(simulated), strategy="Manual")
    await ok(cluster, "apply", "-f", "-", stdin=json.dumps(manifest))
    path = "/apis/subresources.kubevirt.io/v1/namespaces/default/virtualmachines/worker-0"
    await ok(cluster, "replace", "--raw", f"{path}/start", "-f", "-", stdin="{}")
    await ok(cluster, "wait", "--for=condition=AgentConnected", "vmi/worker-0", "--timeout=30s")
    shown = await ok(cluster, "get", "virtualmachine", "-A")
    header, line = shown.splitlines()
    assert header.split() == ["NAMESPACE", "NAME", "AGE", "STATUS", "READY"]
    assert line.split()[:2] + line.split()[3:] == ["default", "worker-0", "Running", "True"]
    described = await ok(cluster, "describe", "virtualmachine", "worker-0", "-n", "default")
    assert "Printable Status:" in described
    instances = await ok(cluster, "get", "vmi")
    assert instances.splitlines()[0].split()[:5] == ["NAME", "AGE", "PHASE", "IP", "NODENAME"]
    assert "10.40." in instances
    again = await run(cluster, "replace", "--raw", f"{path}/start", "-f", "-", stdin="{}")
    assert "VM is already running" in again.err
    await ok(cluster, "replace", "--raw", f"{path}/stop", "-f", "-", stdin="{}")
    await ok(cluster, "wait", "--for=delete", "vmi/worker-0", "--timeout=30s")
    await ok(cluster, "delete", "vm", "worker-0", "--timeout=30s")


async def test_kubectl_learns_what_is_wrong_with_a_vm(simulated: Harvester, cluster: Cluster) -> None:
    manifest = {"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachine", **vm_manifest("worker-0", "fast")}
    output = await run(cluster, "create", "-f", "-", stdin=json.dumps(manifest))
    assert output.code == 1
    assert (
        'admission webhook "validator.harvesterhci.io" denied the request: failed to get storage class fast'
        in output.err
    )
    explained = await ok(cluster, "explain", "virtualmachine.spec.runStrategy")
    assert "runStrategy" in explained
