"""Metro availability: what is said of it has to fit together, is kept while it is used, and nothing is placed by it."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import pytest

from conformance.provider.nutanix import open_nutanix
from conformance.provider.provider_plane import ProviderPlane, condition, key, provider_plane
from homeport.api.cluster.v1beta2 import Machine
from homeport.api.nutanix.metro import NutanixMetro, NutanixMetroSite, NutanixVirtualHADomain
from homeport.api.nutanix.v1beta1 import NutanixCluster, NutanixFailureDomain
from homeport.client.errors import Invalid
from homeport.client.protocol import MergePatch
from homeport.runtime.testing import virtual

OPEN = partial(open_nutanix, version="v4")


def body(kind: str, name: str, spec: Mapping[str, Any]) -> dict[str, Any]:
    meta = {"name": name, "namespace": "default"}
    return {"apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1", "kind": kind, "metadata": meta, "spec": spec}


def domain(number: int) -> dict[str, Any]:
    spec = {"prismElementCluster": f"nutanix-cluster-{number}", "subnets": [f"vm-network-{number}"]}
    return body("NutanixFailureDomain", f"fd-{number}", spec)


def metro(*domains: str) -> dict[str, Any]:
    return body("NutanixMetro", "m", {"failureDomains": [{"name": each} for each in domains]})


def site(preferred: str = "fd-1", name: str = "m") -> dict[str, Any]:
    return body("NutanixMetroSite", "s", {"metroRef": {"name": name}, "preferredFailureDomain": {"name": preferred}})


def plan(name: str, number: int) -> dict[str, Any]:
    category = {"key": "k8s-vha-native-site", "value": name}
    return {"category": category, "recoveryPlan": name, "failureDomainRef": {"name": f"fd-{number}"}}


def recovery(*plans: Mapping[str, Any]) -> dict[str, Any]:
    groups = [{"name": "all", "categoryRecoveryPlans": list(plans)}]
    spec = {"metroRef": {"name": "m"}, "protectionPolicy": "policy", "movementGroups": groups}
    return body("NutanixVirtualHADomain", "v", spec)


async def valid(g: ProviderPlane, kind: Any, name: str, type_: str, status: str, *words: str) -> Any:
    def fits(obj: Any) -> bool:
        found = condition(obj, type_)
        text = f"{found.get('reason')} {found.get('message')}"
        return found.get("status") == status and all(word in text for word in words)

    return await g.plane.until(kind, key(name), fits, 60, what=f"{type_} {status} {words}")


@virtual
async def test_a_metro_is_checked_and_says_that_nobody_acts_on_it() -> None:
    async with provider_plane(OPEN) as g:
        await g.plane.have(domain(1), metro("fd-1", "fd-2"))
        await valid(g, NutanixMetro, "m", "metroValidated", "False", "metroMisconfigured", "failureDomains[1]", "fd-2")
        await g.plane.have(domain(2))
        await valid(g, NutanixMetro, "m", "metroValidated", "True", "metroSpecValid")
        await valid(g, NutanixMetro, "m", "Ready", "False", "MetroNotSupported", "does not support metro availability")


@virtual
async def test_two_domains_on_one_prism_element_are_no_metro() -> None:
    async with provider_plane(OPEN) as g:
        second = domain(1)
        second["metadata"]["name"] = "fd-2"
        await g.plane.have(domain(1), second, metro("fd-1", "fd-2"))
        await valid(g, NutanixMetro, "m", "metroValidated", "False", "both", "nutanix-cluster-1")


@pytest.mark.parametrize("domains", [("fd-1",), ("fd-1", "fd-1"), ("fd-1", "fd-2", "fd-3"), ("fd-1", "")], ids=str)
def test_a_metro_has_exactly_two_domains(domains: tuple[str, ...]) -> None:
    @virtual
    async def run() -> None:
        async with provider_plane(OPEN, start=False) as g:
            with pytest.raises(Invalid, match="failureDomains"):
                await g.plane.have(metro(*domains))

    run()


@virtual
async def test_what_a_metro_is_made_of_can_not_be_changed() -> None:
    async with provider_plane(OPEN, start=False) as g:
        await g.plane.have(domain(1), domain(2), metro("fd-1", "fd-2"), site(), recovery(plan("a", 1), plan("b", 2)))
        for kind, name, spec in (
            (NutanixMetro, "m", {"failureDomains": [{"name": "fd-1"}, {"name": "fd-3"}]}),
            (NutanixMetroSite, "s", {"preferredFailureDomain": {"name": "fd-2"}}),
            (NutanixMetroSite, "s", {"metroRef": {"name": "n"}}),
            (NutanixVirtualHADomain, "v", {"metroRef": {"name": "n"}}),
        ):
            with pytest.raises(Invalid, match="can't be changed"):
                await g.client.patch(kind, key(name), MergePatch({"spec": spec}))
        await g.client.patch(NutanixMetroSite, key("s"), MergePatch({"spec": {"groupNameLabel": "east"}}))


@virtual
async def test_a_site_prefers_one_of_its_metros_domains() -> None:
    async with provider_plane(OPEN) as g:
        await g.plane.have(domain(1), domain(2), site("fd-3"))
        await valid(g, NutanixMetroSite, "s", "metroSiteValidated", "False", "NutanixMetro m does not exist", "fd-3")
        await g.plane.have(metro("fd-1", "fd-2"))
        await valid(g, NutanixMetroSite, "s", "metroSiteValidated", "False", "fd-1 and fd-2, not fd-3")


@virtual
async def test_what_is_used_stays_and_goes_with_its_last_user() -> None:
    async with provider_plane(OPEN) as g:
        await g.plane.have(domain(1), domain(2), metro("fd-1", "fd-2"), site())
        await valid(g, NutanixMetroSite, "s", "metroSiteValidated", "True", "metroSiteSpecValid")
        await g.client.delete(NutanixFailureDomain, key("fd-1"))
        await g.client.delete(NutanixMetro, key("m"))
        await valid(g, NutanixMetro, "m", "metroSafeForDeletion", "False", "metroInUse", "NutanixMetroSite s")
        await valid(g, NutanixFailureDomain, "fd-1", "FailureDomainSafeForDeletion", "False", "NutanixMetro m")
        await g.client.delete(NutanixMetroSite, key("s"))
        await g.plane.gone(NutanixMetroSite, key("s"), 60)
        await g.plane.gone(NutanixMetro, key("m"), 60)
        await g.plane.gone(NutanixFailureDomain, key("fd-1"), 60)


@virtual
async def test_recovery_plans_are_checked_and_left_on_prism_central() -> None:
    async with provider_plane(OPEN) as g:
        with pytest.raises(Invalid, match="one for each failure domain"):
            await g.plane.have(recovery(plan("a", 1), plan("b", 1)))
        await g.plane.have(domain(1), domain(2), metro("fd-1", "fd-2"), recovery(plan("a", 1), plan("b", 3)))
        found = await valid(g, NutanixVirtualHADomain, "v", "VHADomainSpecValidated", "False", "not fd-3")
        assert found.spec.protection_policy.name == "policy"
        assert not found.status.ready
        fixed = [{"name": "all", "categoryRecoveryPlans": [plan("a", 1), plan("b", 2)]}]
        await g.client.patch(NutanixVirtualHADomain, key("v"), MergePatch({"spec": {"movementGroups": fixed}}))
        await valid(g, NutanixVirtualHADomain, "v", "Ready", "False", "MetroNotSupported")
        await g.client.delete(NutanixVirtualHADomain, key("v"))
        await g.plane.gone(NutanixVirtualHADomain, key("v"), 60)
        (note,) = await g.events("RecoveryPlansKept")
        assert "'a', 'b', 'policy'" in note


@pytest.mark.parametrize("name", ["NutanixMetro/m", "NutanixMetroSite/s"])
def test_a_machine_that_names_a_metro_is_refused_and_not_placed_somewhere(name: str) -> None:
    @virtual
    async def run() -> None:
        async with provider_plane(OPEN) as g:
            await g.cluster()
            await g.plane.have(domain(1), domain(2), metro("fd-1", "fd-2"), site())
            await g.stop()
            await g.machine("a")
            await g.client.patch(Machine, key("a"), MergePatch({"spec": {"failureDomain": name}}))
            await g.start()
            text = await g.machine_says("a", "InvalidConfiguration", name)
            assert "name one of the two NutanixFailureDomains instead" in text
            await g.pass_time(600)
            assert g.vendor.machines() == []

    run()


@virtual
async def test_a_cluster_whose_control_plane_names_a_metro_is_reported_before_it_has_machines() -> None:
    async with provider_plane(OPEN) as g:
        await g.plane.have(domain(1), domain(2), metro("fd-1", "fd-2"))
        await g.stop()
        await g.cluster(provisioned=False)
        spec = {"controlPlaneFailureDomains": [{"name": "NutanixMetro/m"}]}
        await g.client.patch(NutanixCluster, key("one"), MergePatch({"spec": spec}))
        await g.start()
        text = await g.cluster_says("MetroNotSupported", type_="FailureDomainsValidated")
        assert "spec.controlPlaneFailureDomains[0]" in text
        await g.pass_time(60)
        assert not (await g.infra_cluster()).status.ready
