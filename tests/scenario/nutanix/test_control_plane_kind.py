"""Clusters on Nutanix whose control plane is not kubeadm's: hosted ones, and machines of other kinds."""

from __future__ import annotations

from typing import Any

from capikit.generic import definition
from homeport.api.meta import Resource
from homeport.api.nutanix.v1beta1 import NutanixCluster
from homeport.runtime.definition import establish
from homeport.runtime.testing import virtual
from scenario.nutanix import manifest
from scenario.nutanix.site import Site, nutanix_site

NAME = "one"
GROUP = "controlplane.example.com"
HOSTED = Resource(GROUP, "v1", "HostedControlPlane", "hostedcontrolplanes")
MACHINES = Resource(GROUP, "v1", "OtherControlPlane", "othercontrolplanes")
Json = dict[str, Any]


def _objects(kind: Resource, **template: Any) -> list[Json]:
    """A cluster whose control plane is of this kind, without the control plane itself."""
    objects = [each for each in manifest.cluster_objects(NAME, 1, 0) if each["kind"] != "KubeadmControlPlane"]
    for each in objects:
        if each["kind"] == "Cluster":
            each["spec"]["controlPlaneRef"] = {"apiVersion": f"{GROUP}/v1", "kind": kind.kind, "name": NAME}
        if each["kind"] == "NutanixMachineTemplate":
            each["spec"]["template"]["spec"].update(template)
        if each["kind"] == "NutanixCluster" and kind is HOSTED:
            each["spec"].pop("controlPlaneEndpoint")
    return objects


def _plane(kind: Resource, spec: Json) -> Json:
    meta = {"name": NAME, "namespace": "default"}
    return {"apiVersion": f"{GROUP}/v1", "kind": kind.kind, "metadata": meta, "spec": spec}


def _machines(replicas: int) -> Json:
    ref = {"apiVersion": manifest.INFRA, "kind": "NutanixMachineTemplate", "name": f"{NAME}-cp-mt"}
    return _plane(MACHINES, {"replicas": replicas, "version": "v1.28.0", "machineTemplate": {"infrastructureRef": ref}})


async def _install(site: Site) -> None:
    await establish(site.client, definition(HOSTED, "v1beta2"), definition(MACHINES, "v1beta1"))


@virtual
async def test_a_hosted_control_plane_supplies_the_endpoint() -> None:
    async with nutanix_site() as site:
        await _install(site)
        await site.have(*_objects(HOSTED))
        kind = "ControlPlaneEndpointFree"
        await site.condition(NutanixCluster, NAME, kind, "False", "HostedControlPlane one does not exist yet")
        await site.have(_plane(HOSTED, {"replicas": 2}))
        infra = await site.until(NutanixCluster, NAME, lambda c: c.status.initialization.provisioned, 10)
        assert not infra.spec.control_plane_endpoint.host
        assert site.categories() == [NAME]


@virtual
async def test_a_control_plane_of_machines_still_needs_an_endpoint() -> None:
    async with nutanix_site() as site:
        await _install(site)
        objects = _objects(MACHINES)
        next(each for each in objects if each["kind"] == "NutanixCluster")["spec"].pop("controlPlaneEndpoint")
        await site.have(*objects, _machines(3))
        await site.condition(NutanixCluster, NAME, "ControlPlaneEndpointFree", "False", "EndpointMissing")


@virtual
async def test_capacity_counts_machines_of_any_control_plane_kind() -> None:
    async with nutanix_site() as site:
        await _install(site)
        await site.have(*_objects(MACHINES, memorySize="1Ti"), _machines(3))
        await site.condition(NutanixCluster, NAME, "CapacitySufficient", "False", "need 3072 GiB")


@virtual
async def test_an_image_that_another_bootstrap_provider_wants_is_not_refused() -> None:
    async with nutanix_site() as site:
        await _install(site)
        await site.have(*_objects(MACHINES, image="talos-1.9"), _machines(1))
        await site.condition(NutanixCluster, NAME, "ReferencesResolved", "True")
        await site.until(NutanixCluster, NAME, lambda c: c.status.initialization.provisioned)
