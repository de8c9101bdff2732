"""Our Nutanix provider on a real kube-apiserver, with upstream's definitions of its kinds in place of ours.

They are stricter than ours (references have one spelling) and know less: what we note in a status for whoever comes next
is dropped there.
"""

from __future__ import annotations

import asyncio
import contextlib
import tempfile
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from capikit import guide, upstream
from capikit.outside import OutsidePlane, prepare, serving, settled
from capikit.role import role_kubeconfig
from capikit.world import Site
from homeport.api.cluster.v1beta2 import Cluster, Machine, MachineDeployment
from homeport.api.controlplane.v1beta2 import KubeadmControlPlane
from homeport.api.nutanix.metro import NutanixMetro
from homeport.api.nutanix.v1beta1 import NutanixCluster, NutanixMachine, NutanixMachineTemplate
from homeport.app.platform import chosen
from homeport.capi.environment import Environment
from homeport.client.dial import DialOptions
from homeport.client.errors import Invalid
from homeport.client.protocol import Key, MergePatch, Query
from homeport.runtime.telemetry.explain import LogTail
from realkube import RealKube
from scenario.nutanix import manifest

pytestmark = [pytest.mark.timeout(300)]

NAME = guide.NAME
_SECONDS = 120.0


@dataclass
class Outside:
    plane: OutsidePlane
    site: Site
    environment: Environment

    async def begin(self) -> None:
        chosen().install(self.plane.manager, self.environment)
        await self.plane.start()

    async def restart(self) -> None:
        await self.plane.stop()
        self.plane.renew()
        await self.begin()

    async def running(self, control_planes: int, workers: int) -> list[Any]:
        await self.plane.until(NutanixCluster, Key("default", NAME), lambda c: c.status.ready, _SECONDS)
        await self.plane.until(KubeadmControlPlane, _key("kcp"), lambda k: settled(k, control_planes), _SECONDS)
        await self.plane.until(MachineDeployment, _key("md-0"), lambda m: settled(m, workers), _SECONDS)
        return list((await self.plane.client.list(NutanixMachine, Query(namespace="default"))).items)

    def vms(self) -> list[str]:
        return sorted(vm.name for vm in self.site.prism.world.vms)


def _key(part: str) -> Key:
    return Key("default", f"{NAME}-{part}")


def _definitions() -> list[dict[str, Any]]:
    """Upstream's where it has any, ours for the rest."""
    theirs = upstream.definitions("core", "bootstrap", "controlplane", newest=True) + upstream.definitions("nutanix")
    names = {crd["metadata"]["name"] for crd in theirs}
    assert "nutanixmachines.infrastructure.cluster.x-k8s.io" in names
    return [*theirs, *(dict(crd) for crd in chosen().definitions() if crd["metadata"]["name"] not in names)]


@pytest.fixture(scope="module")
def kube(binaries: dict[str, Path] | str) -> Iterator[RealKube]:
    if isinstance(binaries, str):
        pytest.skip(binaries)
    if reason := upstream.lacking("manifests"):
        pytest.skip(reason)
    with RealKube(binaries) as made:
        yield made


@pytest.fixture
async def outside(kube: RealKube) -> AsyncIterator[Outside]:
    crds = _definitions()
    with LogTail() as logs, tempfile.TemporaryDirectory(prefix="homeport-world-") as folder:
        role = await role_kubeconfig(kube)
        site, plane = Site(Path(folder)), OutsidePlane(kube.kubeconfig, crds, logs, role)
        facts = await site.start()
        dial = DialOptions(facts["proxy"], await asyncio.to_thread(Path(facts["authority"]).read_bytes))
        made = Outside(plane, site, Environment(plane.client, dial))
        hooks = chosen().register(made.environment)
        cloud = asyncio.create_task(site.run())
        try:
            async with serving(hooks, plane.client) as webhooks:
                await prepare(plane.client, hooks, crds, webhooks)
                await made.begin()
                yield made
                await plane.stop()
                plane.refuse_refusals()
        finally:
            cloud.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await cloud
            await plane.close()
            await site.close()


async def _versions(outside: Outside) -> dict[str, str]:
    kinds: tuple[Any, ...] = (NutanixMachine, NutanixCluster)
    found = [each for kind in kinds for each in (await outside.plane.client.list(kind, Query())).items]
    return {f"{type(each).__name__} {each.metadata.name}": each.metadata.resource_version for each in found}


async def _quiet(outside: Outside) -> None:
    """Until nothing was written for a while; who writes on and on is found out by the time limit."""
    async with asyncio.timeout(60):
        before: dict[str, str] = {}
        while before != (now := await _versions(outside)):
            before = now
            await asyncio.sleep(3.0)


async def test_a_cluster_comes_up_scales_and_goes_with_upstreams_definitions(outside: Outside) -> None:
    plane = outside.plane
    await plane.have(*manifest.cluster_objects(NAME, 1, 1))
    machines = await outside.running(1, 1)
    assert {f"nutanix://{vm.ext_id}" for vm in outside.site.prism.world.vms} == {m.spec.provider_id for m in machines}
    assert all(m.status.ready and m.status.addresses for m in machines)
    assert not any(m.status.initialization.provisioned for m in machines), "upstream's definitions have no such field"

    # What the server drops of a status is no news: it is not written again and again.
    await _quiet(outside)
    before = await _versions(outside)
    await outside.restart()
    await _quiet(outside)
    assert await _versions(outside) == before

    await plane.client.patch(MachineDeployment, _key("md-0"), MergePatch({"spec": {"replicas": 3}}))
    await plane.client.patch(KubeadmControlPlane, _key("kcp"), MergePatch({"spec": {"replicas": 3}}))
    await outside.running(3, 3)
    assert len(outside.vms()) == 6

    await plane.client.patch(MachineDeployment, _key("md-0"), MergePatch({"spec": {"replicas": 1}}))
    await plane.client.patch(KubeadmControlPlane, _key("kcp"), MergePatch({"spec": {"replicas": 1}}))
    await outside.running(1, 1)
    assert len(outside.vms()) == 2

    await plane.client.delete(Cluster, Key("default", NAME))
    await plane.gone(Cluster, Key("default", NAME), _SECONDS)
    for kind in (Machine, NutanixMachine, NutanixCluster):
        assert not (await plane.client.list(kind, Query())).items
    state = outside.site.state()
    assert (state["vms"], state["categories"]) == ([], [])


async def test_what_is_wrong_is_refused_by_our_webhooks(outside: Outside) -> None:
    small = manifest.template("small", {**manifest.machine_spec(), "systemDiskSize": "5Gi"})
    with pytest.raises(Invalid, match="20Gi"):
        await outside.plane.have(small)
    template = manifest.template("fixed", manifest.machine_spec())
    await outside.plane.have(template)
    change = MergePatch({"spec": {"template": {"spec": {"vcpuSockets": 8}}}})
    with pytest.raises(Invalid, match="create a template with another name"):
        await outside.plane.client.patch(NutanixMachineTemplate, Key("default", "fixed"), change)
    body = {
        "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1",
        "kind": "NutanixMetro",
        "metadata": {"name": "m", "namespace": "default"},
        "spec": {"failureDomains": [{"name": "a"}, {"name": "b"}]},
    }
    await outside.plane.have(body)
    change = MergePatch({"spec": {"failureDomains": [{"name": "a"}, {"name": "c"}]}})
    with pytest.raises(Invalid, match="failureDomains"):
        await outside.plane.client.patch(NutanixMetro, Key("default", "m"), change)
    await outside.plane.client.delete(NutanixMetro, Key("default", "m"))
    await outside.plane.gone(NutanixMetro, Key("default", "m"), 30)
    await outside.plane.client.delete(NutanixMachineTemplate, Key("default", "fixed"))
