"""Clusters that upstream's managers made, looked after by ours from then on: on the same server, with nothing replaced."""

from __future__ import annotations

import base64
import os
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from capikit import guide, upstream
from capikit.foreign import Managers
from capikit.ours import controllers
from capikit.world import WorldProcess
from homeport.api.cluster.v1beta2 import Cluster, Machine, MachineDeployment
from homeport.api.controlplane.v1beta2 import KubeadmControlPlane
from homeport.api.meta import Resource
from homeport.client import kubeconfig
from homeport.client.http import HttpClient
from homeport.client.protocol import Key, MergePatch, Query
from homeport.machinery import yaml
from realkube import RealKube
from scenario.nutanix import manifest

pytestmark = [pytest.mark.timeout(1500)]

ROOT = Path(__file__).resolve().parents[2]
SECRET = Resource("", "v1", "Secret", "secrets")
NODE = Resource("", "v1", "Node", "nodes", namespaced=False)
TEMPLATE = Resource("infrastructure.cluster.x-k8s.io", "v1beta1", "NutanixMachineTemplate", "nutanixmachinetemplates")
NEWER, NEWER_IMAGE = "v1.29.0", "ubuntu-22.04-kube-v1.29.0"
PLANE, WORKERS = Key("default", f"{guide.NAME}-kcp"), Key("default", f"{guide.NAME}-md-0")


@pytest.fixture
def world() -> Iterator[WorldProcess]:
    with WorldProcess() as made:
        yield made


@pytest.fixture
def kube(binaries: dict[str, Path] | str) -> Iterator[RealKube]:
    if not os.environ.get("HOMEPORT_UPSTREAM"):
        pytest.skip("takes minutes: `make upstream` runs it")
    if isinstance(binaries, str):
        pytest.skip(binaries)
    if reason := upstream.lacking("manifests", *upstream.MANAGERS):
        pytest.skip(reason)
    with RealKube(binaries) as made:
        yield made


@pytest.fixture
async def client(kube: RealKube) -> AsyncIterator[HttpClient]:
    async with HttpClient(kubeconfig.load(kube.kubeconfig)) as made:
        yield made


async def by_upstream(kube: RealKube, world: WorldProcess, client: HttpClient) -> dict[str, Machine]:
    """A cluster of three and two, made by upstream's managers, which are stopped then."""
    with Managers(kube, proxy=world.proxy, authority=world.authority) as managers:
        text = "---\n".join(yaml.dump(each) for each in guide.for_upstream(3, 2, world.port))
        applied = kube.kubectl("apply", "-f", "-", stdin=text)
        assert applied.returncode == 0, applied.stderr
        await guide.until_machines(client, guide.all_running(5), 600, managers.logs)
        return await guide.until_machines(client, in_order(5), 300, managers.logs)


def in_order(count: int, version: str = manifest.VERSION) -> Callable[[dict[str, Machine]], bool]:
    """So many Machines, all of them running, available and as their owners want them."""

    def fits(machines: dict[str, Machine]) -> bool:
        return len(machines) == count and all(
            m.status.phase == "Running"
            and m.spec.version == version
            and {"Available", "Ready", "UpToDate"} <= {c["type"] for c in m.status.conditions if c["status"] == "True"}
            for m in machines.values()
        )

    return fits


def prepare(kube: RealKube) -> None:
    """What docs/howto/clusterctl.md says: their webhooks go, our definitions come in place of theirs."""
    for kind in ("mutatingwebhookconfigurations", "validatingwebhookconfigurations"):
        done = kube.kubectl("delete", kind, "--all")
        assert done.returncode == 0, done.stderr
    folder = str(ROOT / "config" / "crds")
    for command in (("apply", "--server-side", "--force-conflicts"), ("replace",)):
        done = kube.kubectl(*command, "-f", folder)
        assert done.returncode == 0, done.stderr


async def nodes(kube_client: HttpClient, proxy: str) -> dict[str, str]:
    """Uid by name, as the workload cluster answers by the kubeconfig of whoever made it."""
    secret = await kube_client.get(SECRET, Key("default", f"{guide.NAME}-kubeconfig"))
    with tempfile.NamedTemporaryFile() as file:
        file.write(base64.b64decode(secret["data"]["value"]))
        file.flush()
        config = kubeconfig.load(Path(file.name))
    async with HttpClient(replace(config, proxy=proxy)) as workload:
        return {node.name: node.uid for node in (await workload.list(NODE, Query())).items}


async def templates(client: HttpClient) -> None:
    for name in ("cp", "worker"):
        body = manifest.template(f"{name}-newer", manifest.machine_spec(image={"type": "name", "name": NEWER_IMAGE}))
        await client.create(body, kind=TEMPLATE)


async def upgraded(client: HttpClient) -> None:
    await templates(client)
    plane = {"version": NEWER, "machineTemplate": {"spec": {"infrastructureRef": {"name": "cp-newer"}}}}
    await client.patch(KubeadmControlPlane, PLANE, MergePatch({"spec": plane}))


async def upgraded_workers(client: HttpClient) -> None:
    spec = {"version": NEWER, "infrastructureRef": {"name": "worker-newer"}}
    await client.patch(MachineDeployment, WORKERS, MergePatch({"spec": {"template": {"spec": spec}}}))


def planes_at(version: str, count: int) -> Callable[[dict[str, Machine]], bool]:
    def fits(machines: dict[str, Machine]) -> bool:
        planes = {k: m for k, m in machines.items() if "cluster.x-k8s.io/control-plane" in m.metadata.labels}
        return in_order(count, version)(planes)

    return fits


async def test_a_cluster_of_upstream_goes_on_with_our_controllers_and_no_machine_notices(
    kube: RealKube, world: WorldProcess, client: HttpClient
) -> None:
    before = await by_upstream(kube, world, client)
    touched, members = world.state()["touched"], await nodes(client, world.proxy)
    assert len(touched) == len(members) == 5
    prepare(kube)
    options = ("--namespace", "default", "--proxy", world.proxy, "--trust", str(world.authority))
    with controllers(kube.kubeconfig, *options) as log:

        def explain() -> str:
            return log.read_text()[-6000:]

        await client.patch(MachineDeployment, WORKERS, MergePatch({"spec": {"replicas": 3}}))
        after = await guide.until_machines(client, in_order(6), 300, explain)
        assert before.keys() < after.keys(), explain()
        assert {name: m.metadata.uid for name, m in before.items()}.items() <= {
            name: m.metadata.uid for name, m in after.items()
        }.items()
        assert touched.items() <= world.state()["touched"].items()
        assert members.items() <= (await nodes(client, world.proxy)).items()

        await upgraded(client)
        await guide.until_machines(client, planes_at(NEWER, 3), 600, explain)
        await upgraded_workers(client)
        await guide.until_machines(client, in_order(6, NEWER), 600, explain)
        assert not (await nodes(client, world.proxy)).keys() & members.keys()

        await client.delete(Cluster, Key("default", guide.NAME))
        await guide.until_machines(client, lambda machines: not machines, 300, explain)
        left: dict[str, Any] = world.state()
        assert left["vms"] == []
