"""Sites on which clusters with hosted control planes are built: one for each provider, used alike by the tests."""

from __future__ import annotations

import base64
import contextlib
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from homeport.api.cluster.v1beta2 import Cluster, Machine, MachineDeployment
from homeport.api.meta import Resource
from homeport.hosted.flavour import STEWARD
from homeport.machinery import condition
from homeport.providers.harvester.infracluster.resource import CLAIM, DATA_VOLUME, LOAD_BALANCER, VM, VMI
from homeport.providers.harvester.infracluster.resource import SECRET as VM_SECRET
from homeport.sim.machine.workload.cluster import WorkloadCluster
from homeport.sim.machine.workload.kind import NODE
from scenario.harvester import manifest as harvester_manifest
from scenario.harvester.site import TOKEN, harvester_site, world
from scenario.harvester.site import Site as HarvesterSite
from scenario.hosted.estate import Estate
from scenario.nutanix import manifest as nutanix_manifest
from scenario.nutanix.site import Site as NutanixSite
from scenario.nutanix.site import nutanix_site

NAME = "shop"
DEPLOYMENT = f"{NAME}-md-0"
PLANE = STEWARD.control_plane
SECRET = Resource("", "v1", "Secret", "secrets")
Json = dict[str, Any]


class HostedSite:
    """One site. `site` has what all sites have alike: a plane, a user's verbs, and waiting."""

    old: str  # versions of Kubernetes that there are images of
    new: str
    credentials: Sequence[str]  # words that stand in the vendor's credentials and nowhere else

    def __init__(self, site: Any) -> None:
        self.site = site

    @property
    def estate(self) -> Estate:
        found = self.site.estate
        assert isinstance(found, Estate)
        return found

    @property
    def workload(self) -> WorkloadCluster:
        (found,) = self.site.fleet.clusters()
        assert isinstance(found, WorkloadCluster)
        return found

    def objects(self, workers: int) -> list[Json]:
        """A whole cluster, with kubelets that wait for a cloud controller manager."""
        raise NotImplementedError

    def newer_template(self) -> Json:
        raise NotImplementedError

    async def vms(self) -> list[str]:
        raise NotImplementedError

    async def nothing_is_left(self) -> None:
        raise NotImplementedError

    async def nodes(self) -> list[Any]:
        return list((await self.workload.client().list(NODE)).items)

    async def available(self, workers: int, timeout: float = 900.0) -> list[Machine]:
        """The Machines, once the Cluster is available with so many workers."""
        site = self.site
        await site.until(
            MachineDeployment,
            DEPLOYMENT,
            lambda m: (m.status.available_replicas or 0) == workers == (m.status.replicas or 0),
            timeout,
            what=f"{workers} workers available",
        )
        await site.until(Cluster, NAME, is_available, timeout, what="Available")
        found = (await site.client.list(Machine)).items
        return [each for each in found if each.spec.cluster_name == NAME]

    async def held(self) -> str:
        """Everything that the workload cluster stores, as text."""
        store = self.workload.server.store
        values = [record.value for bucket in store.buckets() for record in store.range(bucket)]
        for secret in (await self.workload.client().list(SECRET)).items:
            values += [base64.b64decode(each) for each in (secret.get("data") or {}).values()]
        return b"\n".join(values).decode(errors="replace")


def is_available(cluster: Any) -> bool:
    return condition.is_true(cluster.status.conditions, "Available")


def _hosted(objects: list[Json], version: str) -> list[Json]:
    """The same cluster with a control plane of Pods in place of machines."""
    kind = PLANE.__resource__
    kept = [each for each in objects if each["kind"] != "KubeadmControlPlane"]
    for each in kept:
        if each["kind"] == "Cluster":
            each["spec"]["controlPlaneRef"] |= {"kind": kind.kind, "name": NAME}
        if each["kind"].endswith("Cluster"):
            each["spec"].pop("controlPlaneEndpoint", None)
    spec = {"version": version, "replicas": 2, "addons": {"coreDNS": {}, "kubeProxy": {}}}
    meta = {"name": NAME, "namespace": "default"}
    return [*kept, {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": meta, "spec": spec}]


def _image(version: str) -> Json:
    return {"type": "name", "name": f"ubuntu-22.04-kube-{version}"}


class Nutanix(HostedSite):
    site: NutanixSite
    old, new = "v1.29.0", "v1.30.0"
    credentials = ("your-password",)

    def objects(self, workers: int) -> list[Json]:
        found = _hosted(nutanix_manifest.cluster_objects(NAME, 1, workers), self.old)
        for each in found:
            if each["kind"] == "MachineDeployment":
                each["spec"]["template"]["spec"]["version"] = self.old
            if each["kind"] == "NutanixMachineTemplate":
                each["spec"]["template"]["spec"]["image"] = _image(self.old)
        return found

    def newer_template(self) -> Json:
        return nutanix_manifest.template("newer", nutanix_manifest.machine_spec("16Gi", image=_image(self.new)))

    async def vms(self) -> list[str]:
        return [each.name for each in self.site.vms()]

    async def nothing_is_left(self) -> None:
        await self.site.empty(NAME)


class Harvester(HostedSite):
    site: HarvesterSite
    old, new = "v1.30.0", "v1.31.0"
    credentials = (TOKEN,)

    def objects(self, workers: int) -> list[Json]:
        return _hosted(harvester_manifest.external(harvester_manifest.cluster_objects(NAME, 1, workers)), self.old)

    def newer_template(self) -> Json:
        spec = harvester_manifest.machine_spec("16Gi", image=f"ubuntu-22.04-kube-{self.new}")
        return harvester_manifest.template("newer", spec)

    async def vms(self) -> list[str]:
        return [each.name for each in await self.site.there(VM)]

    async def nothing_is_left(self) -> None:
        await self.site.empty()
        for kind in (VM, VMI, CLAIM, DATA_VOLUME, VM_SECRET, LOAD_BALANCER):
            assert await self.site.there(kind) == [], kind.kind


@dataclass(frozen=True, slots=True)
class Place:
    """How to enter a HostedSite. pytest shows its name."""

    name: str
    enter: Callable[[], contextlib.AbstractAsyncContextManager[HostedSite]]


@contextlib.asynccontextmanager
async def _on_nutanix() -> AsyncIterator[HostedSite]:
    async with nutanix_site(hosted=True) as site:
        yield Nutanix(site)


@contextlib.asynccontextmanager
async def _on_harvester() -> AsyncIterator[HostedSite]:
    found = world()
    (image,) = (each for each in found.images if each.name == harvester_manifest.IMAGE)
    newer = msgspec.structs.replace(image, name=f"ubuntu-22.04-kube-{Harvester.new}")
    both = msgspec.structs.replace(found, images=(*found.images, newer))
    async with harvester_site(world_file=both, hosted=True) as site:
        yield Harvester(site)


PLACES = (Place("nutanix", _on_nutanix), Place("harvester", _on_harvester))
