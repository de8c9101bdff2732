"""Prism Central is away, or refuses us: what runs there is as available as before, and that we can't manage it is said."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from homeport.api.cluster.v1beta2 import Cluster, Machine, MachineDeployment
from homeport.api.controlplane.v1beta2 import KubeadmControlPlane
from homeport.api.nutanix.v1beta1 import NutanixCluster, NutanixMachine
from homeport.client.protocol import Key, MergePatch
from homeport.machinery import condition
from homeport.runtime.testing import virtual
from homeport.sim.engine.fault import Drop, Outage, Status
from scenario.nutanix import manifest
from scenario.nutanix.site import SECRET, Site, nutanix_site

NAME = "one"
REACHABLE = "InfrastructureReachable"


def _status(obj: object, kind: str) -> str:
    found = condition.find(obj.status.conditions, kind)  # type: ignore[attr-defined]
    return str(found["status"]) if found is not None else ""


async def _available(site: Site) -> None:
    cluster = await site.get(Cluster, NAME)
    assert _status(cluster, "Available") == "True", cluster.status.conditions
    assert _status(cluster, "InfrastructureReady") == "True"
    assert (cluster.status.control_plane.ready_replicas, cluster.status.workers.ready_replicas) == (1, 1)
    for machine in await site.list(Machine):
        assert (_status(machine, "Ready"), machine.status.phase) == ("True", "Running")


async def _reported(site: Site, reason: str) -> None:
    for kind, name in ((NutanixCluster, NAME), (Cluster, NAME)):
        await site.condition(kind, name, REACHABLE, "False", reason, timeout=1200)
    for each in await site.list(NutanixMachine):
        await site.condition(NutanixMachine, each.metadata.name, REACHABLE, "False", reason, timeout=1200)


async def _change_password(site: Site, password: str) -> None:
    body = {"stringData": manifest.secret(password)["stringData"]}
    await site.client.patch(SECRET, Key("default", "nutanix-credentials"), MergePatch(body))


@pytest.mark.parametrize(
    ("reason", "begin"),
    [
        ("Unreachable", lambda site: site.fault(Status(503))),
        ("Unreachable", lambda site: site.fault(Drop("before"))),
        ("AccessDenied", lambda site: site.fault(Status(401))),
    ],
    ids=["errors", "silence", "expired password"],
)
def test_a_cluster_stays_available_while_its_prism_central_can_not_be_asked(
    reason: str, begin: Callable[[Site], None]
) -> None:
    @virtual
    async def run() -> None:
        async with nutanix_site() as site:
            await site.have(*manifest.cluster_objects(NAME, 1, 1))
            await site.running(NAME, 1, 1)
            await site.condition(Cluster, NAME, REACHABLE, "True")
            begin(site)
            await _reported(site, reason)
            since = (await site.condition(Cluster, NAME, REACHABLE, "False"))["lastTransitionTime"]
            await asyncio.sleep(1800)
            await _available(site)
            assert (await site.condition(Cluster, NAME, REACHABLE, "False"))["lastTransitionTime"] == since
            site.clear_faults()
            for kind, name in ((NutanixCluster, NAME), (Cluster, NAME)):
                await site.condition(kind, name, REACHABLE, "True", timeout=1200)
            for each in await site.list(NutanixMachine):
                await site.condition(NutanixMachine, each.metadata.name, REACHABLE, "True", timeout=1200)
            await _available(site)

    run()


@pytest.mark.parametrize(
    ("begin", "said"),
    [
        (lambda site: site.fault(Status(503)), "Unreachable"),
        (lambda site: site.fault(Drop("before")), "Unreachable"),
        (lambda site: site.fault(Status(401)), "AccessDenied"),
        (lambda site: site.fault(Outage()), "does not know whether VM"),
    ],
    ids=["errors", "silence", "expired password", "lost cluster"],
)
def test_machines_that_run_report_within_two_seconds_what_a_new_one_has_found_out(
    begin: Callable[[Site], None], said: str
) -> None:
    """A minute is how often they look by themselves."""

    @virtual
    async def run() -> None:
        async with nutanix_site() as site:
            await site.have(*manifest.cluster_objects(NAME, 1, 1))
            await site.running(NAME, 1, 1)
            known = [each.metadata.name for each in await site.list(NutanixMachine)]
            await asyncio.sleep(61)  # to the beginning of a minute
            begin(site)
            await site.patch(MachineDeployment, f"{NAME}-md-0", {"spec": {"replicas": 2}})
            await site.until(MachineDeployment, f"{NAME}-md-0", lambda m: m.status.replicas == 2, 30)
            (new,) = {each.metadata.name for each in await site.list(NutanixMachine)} - set(known)
            words = () if said == "AccessDenied" else ("is not available",) if "know" in said else ("Prism Central",)
            await site.condition(NutanixMachine, new, "VMProvisioned", "False", *words, timeout=20)
            for each in known:
                await site.condition(NutanixMachine, each, REACHABLE, "False", said, timeout=2)

    run()


@virtual
async def test_credentials_that_are_missing_are_reported_and_change_nothing_for_the_workload() -> None:
    async with nutanix_site() as site:
        await site.have(*manifest.cluster_objects(NAME, 1, 1))
        await site.running(NAME, 1, 1)
        await _change_password(site, "wrong")
        await _reported(site, "AccessDenied")
        await asyncio.sleep(1800)
        await _available(site)
        # Restarted controllers know no better.
        await site.restart()
        await asyncio.sleep(1800)
        await _available(site)
        await _change_password(site, "your-password")
        await site.condition(Cluster, NAME, REACHABLE, "True", timeout=1200)
        await _available(site)


@virtual
async def test_what_is_wrong_with_a_node_is_seen_during_an_outage_and_new_machines_wait() -> None:
    async with nutanix_site() as site:
        await site.have(*manifest.cluster_objects(NAME, 1, 1))
        machines = await site.running(NAME, 1, 1)
        (worker,) = [each for each in machines if "-md-" in each.metadata.name]
        site.fault(Status(503))
        await _reported(site, "Unreachable")
        (vm,) = [each for each in site.vms() if each.name == worker.metadata.name]
        site.prism.power.off(vm.ext_id)
        await site.until(Machine, worker.metadata.name, lambda m: _status(m, "Ready") != "True", 1200)
        await site.patch(MachineDeployment, f"{NAME}-md-0", {"spec": {"replicas": 2}})
        await asyncio.sleep(600)
        (new,) = [each for each in await site.list(NutanixMachine) if not each.status.initialization.provisioned]
        assert _status(new, "Ready") == "False"
        assert _status(new, REACHABLE) in ("", "False")
        assert _status(await site.get(KubeadmControlPlane, f"{NAME}-kcp"), "Available") == "True"


@virtual
async def test_nodes_whose_power_state_prism_central_does_not_know_stay_available() -> None:
    """A Prism Element cluster has lost its connection to Prism Central: its VMs run as before."""
    async with nutanix_site() as site:
        await site.have(*manifest.cluster_objects(NAME, 1, 1))
        await site.running(NAME, 1, 1)
        site.fault(Outage())
        for each in await site.list(NutanixMachine):
            words = ("Unreachable", "does not know whether VM", "Prism Element")
            await site.condition(NutanixMachine, each.metadata.name, REACHABLE, "False", *words, timeout=1200)
        await asyncio.sleep(1800)
        await _available(site)
        site.clear_faults()
        for each in await site.list(NutanixMachine):
            await site.condition(NutanixMachine, each.metadata.name, REACHABLE, "True", timeout=1200)
        await _available(site)
