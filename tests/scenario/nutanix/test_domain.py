"""Control planes in several Prism Elements: spread when they are made, and still so when everything about it changed."""

from __future__ import annotations

from typing import Any

from homeport.api.cluster.v1beta2 import Cluster, Machine
from homeport.api.controlplane.v1beta2 import KubeadmControlPlane
from homeport.api.nutanix.v1beta1 import NutanixCluster
from homeport.runtime.clock import rfc3339
from homeport.runtime.testing import virtual
from scenario.nutanix import manifest
from scenario.nutanix.site import Site, nutanix_site

NAME = "one"
ELEMENTS = {number: f"nutanix-cluster-{number}" for number in (1, 2, 3)}
Json = dict[str, Any]


def domain_object(number: int) -> Json:
    spec = {"prismElementCluster": ELEMENTS[number], "subnets": [f"vm-network-{number}"]}
    meta = {"name": f"fd-{number}", "namespace": "default"}
    return {"apiVersion": manifest.INFRA, "kind": "NutanixFailureDomain", "metadata": meta, "spec": spec}


def spread_manifest(**domains: Any) -> list[Json]:
    """A cluster whose machines are placed by failure domains alone."""
    objects = manifest.cluster_objects(NAME, 3, 0)
    for each in objects:
        if each["kind"] == "NutanixCluster":
            each["spec"].update(domains)
        if each["kind"] == "NutanixMachineTemplate":
            for field in ("cluster", "subnet"):
                each["spec"]["template"]["spec"].pop(field)
    return objects


def elements_of(site: Site) -> list[str]:
    names = {each.ext_id: each.name for each in site.prism.world.clusters}
    return sorted(names[vm.cluster] for vm in site.vms())


@virtual
async def test_control_planes_are_spread_over_failure_domains_and_go_where_these_say() -> None:
    async with nutanix_site() as site:
        names = [{"name": f"fd-{number}"} for number in ELEMENTS]
        await site.have(*map(domain_object, ELEMENTS), *spread_manifest(controlPlaneFailureDomains=names))
        machines = await site.running(NAME, 3)
        assert sorted(each.spec.failure_domain for each in machines) == ["fd-1", "fd-2", "fd-3"]
        assert elements_of(site) == sorted(ELEMENTS.values())
        found = await site.condition(NutanixCluster, NAME, "FailureDomainsValidated", "True")
        assert found["reason"] == "Succeeded"


@virtual
async def test_domains_of_the_older_form_give_way_to_objects_and_the_spread_is_kept() -> None:
    async with nutanix_site() as site:
        inline = [
            {"name": f"pe-{n}", "cluster": element, "subnets": [f"vm-network-{n}"], "controlPlane": True}
            for n, element in ELEMENTS.items()
        ]
        await site.have(*spread_manifest(failureDomains=inline))
        old = await site.running(NAME, 3)
        assert sorted(each.spec.failure_domain for each in old) == ["pe-1", "pe-2", "pe-3"]

        await site.have(*map(domain_object, ELEMENTS))
        names = [{"name": f"fd-{number}"} for number in ELEMENTS]
        body = {"failureDomains": None, "controlPlaneFailureDomains": names}
        await site.patch(NutanixCluster, NAME, {"spec": body})
        await site.until(
            Cluster, NAME, lambda c: sorted(d.name for d in c.status.failure_domains) == ["fd-1", "fd-2", "fd-3"]
        )
        await site.plane.settle(quiet=30)
        assert len(site.created) == 3  # machines that run are left where they are until somebody wants others

        after = rfc3339(site.clock.now())
        await site.patch(KubeadmControlPlane, f"{NAME}-kcp", {"spec": {"rollout": {"after": after}}})
        for each in old:
            await site.gone(Machine, each.metadata.name, timeout=3600)
        fresh = await site.running(NAME, 3)
        await site.plane.settle(quiet=30)
        assert sorted(each.spec.failure_domain for each in fresh) == ["fd-1", "fd-2", "fd-3"]
        assert elements_of(site) == sorted(ELEMENTS.values())
        assert len(site.created) == 6
