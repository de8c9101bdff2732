"""A machine's life: made once, shown as the contract has it, and gone only when it is seen to be gone."""

from __future__ import annotations

import asyncio

from conformance.provider.provider_plane import NAME, condition, key, provider_plane
from conformance.provider.vendor import Open
from homeport.client.protocol import MergePatch, Write
from homeport.runtime.testing import versions, virtual


@virtual
async def test_a_machine_comes_up_and_goes(vendor: Open) -> None:
    async with provider_plane(vendor) as g:
        await g.cluster()
        await g.machine("a")
        (machine,) = await g.ready("a")
        found = g.found("a")
        assert found.on
        assert machine.spec.provider_id.endswith(f"//{found.id}")
        internal = [each.address for each in machine.status.addresses if each.type == "InternalIP"]
        assert internal == list(found.addresses)
        assert machine.status.ready
        assert condition(machine, "Ready")["status"] == "True"
        # Other definitions of these kinds are about, which refuse messages that are there and empty.
        assert all(each.get("message", "?") for each in machine.status.conditions)
        await g.delete("a")
        await g.deleted("a")
        assert g.vendor.machines() == []


@virtual
async def test_a_machine_tells_that_it_waits_for_an_owner_only_if_that_lasts(vendor: Open) -> None:
    async with provider_plane(vendor) as g:
        await g.cluster()
        await g.plane.have(g.vendor.infra_machine("alone"))
        await g.plane.settle(quiet=0.1)
        assert condition(await g.infra_machine("alone"), "Ready") == {}
        assert "WaitingForOwner" in await g.machine_says("alone", timeout=5.0)


@virtual
async def test_a_cluster_leaves_nothing_behind(vendor: Open) -> None:
    async with provider_plane(vendor) as g:
        await g.cluster()
        await g.machine("a")
        await g.ready("a")
        await g.delete_cluster()
        text = await g.cluster_says("WaitingForMachines", "a")
        assert "1 machines" in text
        await g.delete("a")
        await g.plane.gone(g.vendor.cluster_kind, key(NAME), 600)
        assert g.vendor.machines() == []
        assert g.vendor.cluster_objects(NAME) == []


@virtual
async def test_a_cluster_that_never_got_through_is_deleted_without_credentials(vendor: Open) -> None:
    async with provider_plane(vendor) as g:
        await g.cluster(provisioned=False, secret=False)
        await g.cluster_says("Secret", "does not exist", type_=g.vendor.conditions.connection)
        await g.delete_cluster()
        await g.plane.gone(g.vendor.cluster_kind, key(NAME), 600)


@virtual
async def test_a_cluster_restored_with_an_empty_status_releases_what_it_owns(vendor: Open) -> None:
    async with provider_plane(vendor) as g:
        g.vendor.require_cluster_objects()
        await g.cluster()
        assert g.vendor.cluster_objects(NAME)
        await g.stop()
        patch = MergePatch({"status": None})
        await g.client.patch(g.vendor.cluster_kind, key(NAME), patch, Write(), subresource="status")
        await g.delete_cluster()
        assert not (await g.infra_cluster()).status.conditions
        await g.start()
        await g.plane.gone(g.vendor.cluster_kind, key(NAME), 600)
        assert g.vendor.cluster_objects(NAME) == []


@virtual
async def test_a_cluster_with_an_empty_status_stays_while_its_vendor_can_not_be_asked(vendor: Open) -> None:
    async with provider_plane(vendor) as g:
        g.vendor.require_cluster_objects()
        await g.cluster()
        await g.stop()
        patch = MergePatch({"status": None})
        await g.client.patch(g.vendor.cluster_kind, key(NAME), patch, Write(), subresource="status")
        await g.delete_cluster()
        g.vendor.refuse(503)
        await g.start()
        await g.cluster_says("Unreachable")
        await g.pass_time(600)
        assert g.vendor.cluster_objects(NAME)
        g.vendor.clear_faults()
        await g.plane.gone(g.vendor.cluster_kind, key(NAME), 600)
        assert g.vendor.cluster_objects(NAME) == []


@virtual
async def test_nothing_is_written_about_a_machine_that_runs(vendor: Open) -> None:
    async with provider_plane(vendor) as g:
        await g.cluster()
        await g.machine("a")
        await g.ready("a")
        await g.pass_time(120)
        before = versions(g.plane)
        await g.pass_time(1800)
        assert versions(g.plane) == before


@virtual
async def test_running_machines_cost_few_requests(vendor: Open) -> None:
    async with provider_plane(vendor) as g:
        await g.cluster()
        names = [f"m{number}" for number in range(5)]
        for name in names:
            await g.machine(name)
        await g.ready(*names)
        await g.pass_time(60)
        before = g.vendor.requests()
        await g.pass_time(600)
        assert g.vendor.requests() - before <= 5 * 11 + 6


@virtual
async def test_fifty_machines_come_up_together_and_go_together(vendor: Open) -> None:
    async with provider_plane(vendor) as g:
        g.vendor.slow_operations(4.0)
        await g.cluster()
        names = [f"m{number:02}" for number in range(50)]
        for name in names:
            await g.machine(name)
        started = g.plane.clock.monotonic()
        machines = await g.ready(*names)
        assert g.plane.clock.monotonic() - started < 60
        assert sorted(g.vendor.created) == names
        assert len({each.spec.provider_id for each in machines}) == 50
        assert len({each.status.addresses[0].address for each in machines}) == 50
        await asyncio.gather(*(g.delete(name) for name in names))
        await g.deleted(*names)
        assert g.vendor.machines() == []


@virtual
async def test_a_paused_machine_is_left_alone_and_says_so(vendor: Open) -> None:
    async with provider_plane(vendor) as g:
        await g.cluster()
        kind = g.vendor.machine_kind
        await g.client.patch(_cluster(), key(NAME), MergePatch({"spec": {"paused": True}}))
        await g.machine("a")
        paused = await g.plane.until(kind, key("a"), lambda m: condition(m, "Paused").get("status") == "True")
        assert "spec.paused" in condition(paused, "Paused")["message"]
        await g.pass_time(300)
        assert g.vendor.machines() == []
        await g.client.patch(_cluster(), key(NAME), MergePatch({"spec": {"paused": None}}))
        (machine,) = await g.ready("a")
        assert condition(machine, "Paused")["status"] == "False"


@virtual
async def test_a_paused_machine_is_not_deleted_until_it_goes_on(vendor: Open) -> None:
    async with provider_plane(vendor) as g:
        await g.cluster()
        await g.machine("a")
        await g.ready("a")
        annotation = "cluster.x-k8s.io/paused"
        body = {"metadata": {"annotations": {annotation: ""}}}
        await g.client.patch(g.vendor.machine_kind, key("a"), MergePatch(body))
        await g.delete("a")
        await g.pass_time(300)
        assert g.found("a").on
        body = {"metadata": {"annotations": {annotation: None}}}  # type: ignore[dict-item]
        await g.client.patch(g.vendor.machine_kind, key("a"), MergePatch(body))
        await g.deleted("a")
        assert g.vendor.machines() == []


@virtual
async def test_infrastructure_that_somebody_else_manages_is_left_alone(vendor: Open) -> None:
    async with provider_plane(vendor, start=False) as g:
        await g.cluster(provisioned=False)
        body = {"metadata": {"annotations": {"cluster.x-k8s.io/managed-by": "terraform"}}}
        await g.client.patch(g.vendor.cluster_kind, key(NAME), MergePatch(body))
        await g.start()
        await g.pass_time(300)
        infra = await g.infra_cluster()
        assert not infra.metadata.finalizers
        assert not infra.status.conditions
        assert g.vendor.requests() == 0


def _cluster() -> type:
    from homeport.api.cluster.v1beta2 import Cluster

    return Cluster
