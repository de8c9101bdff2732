"""Whose machine is whose: nothing is made twice, nothing of others is touched, nothing of ours is forgotten."""

from __future__ import annotations

from conformance.provider.provider_plane import NAME, SECRET, ProviderPlane, condition, key, provider_plane
from conformance.provider.vendor import Open
from homeport.api.cluster.v1beta2 import Cluster, Machine
from homeport.capi.name import BLOCK_MOVE, MOVE_LABEL
from homeport.client.protocol import MergePatch, Write
from homeport.runtime.testing import virtual


@virtual
async def test_a_create_whose_answer_was_lost_is_not_done_twice(vendor: Open) -> None:
    async with provider_plane(vendor) as g:
        await g.cluster()
        g.vendor.lose_reply("create", "after", times=3)
        await g.machine("a")
        await g.ready("a")
        assert g.vendor.created.count("a") == 1
        assert len(g.vendor.machines()) == 1


@virtual
async def test_a_slow_create_whose_answer_was_lost_leaves_one_machine(vendor: Open) -> None:
    async with provider_plane(vendor) as g:
        await g.cluster()
        g.vendor.slow_operations(20.0)
        g.vendor.lose_reply("create", "after", times=1)
        await g.machine("a")
        await g.ready("a")
        await g.pass_time(300)
        assert len(g.vendor.machines()) == 1


@virtual
async def test_a_crash_between_create_and_record_makes_no_second_machine(vendor: Open) -> None:
    async with provider_plane(vendor) as g:
        await g.cluster()
        g.vendor.slow_operations(10.0)
        await g.machine("a")
        await g.being_created("a")
        await g.stop()
        # As if the last status had never been written.
        patch = MergePatch({"status": None})
        await g.client.patch(g.vendor.machine_kind, key("a"), patch, Write(), subresource="status")
        await g.start()
        await g.ready("a")
        await g.pass_time(120)
        assert g.vendor.created.count("a") == 1
        assert len(g.vendor.machines()) == 1


@virtual
async def test_a_restart_at_any_second_of_a_creation_makes_no_second_machine(vendor: Open) -> None:
    async with provider_plane(vendor) as g:
        await g.cluster()
        g.vendor.slow_operations(3.0)
        await g.machine("a")
        for _ in range(8):
            await g.pass_time(0.9)
            await g.restart()
        await g.ready("a")
        await g.pass_time(120)
        assert g.vendor.created == ["a"]


@virtual
async def test_a_machine_restored_with_an_empty_status_finds_itself_again(vendor: Open) -> None:
    async with provider_plane(vendor) as g:
        await g.cluster()
        await g.machine("a")
        (before,) = await g.ready("a")
        await g.stop()
        patch = MergePatch({"status": None})
        await g.client.patch(g.vendor.machine_kind, key("a"), patch, Write(), subresource="status")
        assert not (await g.infra_machine("a")).status.ready
        await g.start()
        (after,) = await g.ready("a")
        assert after.spec.provider_id == before.spec.provider_id
        assert after.status.addresses == before.status.addresses
        assert g.vendor.created == ["a"]


@virtual
async def test_a_status_that_is_lost_while_we_watch_is_written_again(vendor: Open) -> None:
    async with provider_plane(vendor) as g:
        await g.cluster()
        await g.machine("a")
        await g.ready("a")
        await g.pass_time(5)
        patch = MergePatch({"status": None})
        await g.client.patch(g.vendor.machine_kind, key("a"), patch, Write(), subresource="status")
        await g.ready("a", timeout=10)
        assert g.vendor.created == ["a"]


@virtual
async def test_a_machine_of_somebody_else_with_the_same_name_is_not_adopted(vendor: Open) -> None:
    async with provider_plane(vendor) as g:
        foreign = await g.vendor.create_foreign("a")
        await g.cluster()
        await g.machine("a")
        (machine,) = await g.ready("a")
        assert not machine.spec.provider_id.endswith(foreign)
        assert len(g.vendor.machines()) == 2
        await g.delete("a")
        await g.deleted("a")
        assert [each.id for each in g.vendor.machines()] == [foreign]


@virtual
async def test_a_vm_is_deleted_though_its_machine_was_removed_by_force(vendor: Open) -> None:
    async with provider_plane(vendor) as g:
        await g.cluster()
        await g.machine("a", infra_name="a-infra")
        await g.ready("a-infra")
        await g.client.delete(Machine, key("a"))  # the test's Machines have no finalizer
        await g.deleted("a-infra")
        assert g.vendor.machines() == []


@virtual
async def test_a_vm_is_deleted_though_nothing_names_its_machine_any_more(vendor: Open) -> None:
    async with provider_plane(vendor) as g:
        await g.cluster()
        await g.machine("a", infra_name="a-infra")
        await g.ready("a-infra")
        orphaned = MergePatch({"metadata": {"ownerReferences": None}})
        await g.client.patch(g.vendor.machine_kind, key("a-infra"), orphaned, Write())
        await g.client.delete(Machine, key("a"))
        await g.delete("a-infra")
        await g.deleted("a-infra")
        assert g.vendor.machines() == []


@virtual
async def test_a_machine_deleted_behind_our_back_is_reported_and_never_recreated_silently(vendor: Open) -> None:
    async with provider_plane(vendor) as g:
        await g.cluster()
        await g.machine("a")
        await g.ready("a")
        await g.vendor.delete_machine("a")
        text = await g.machine_says("a", "InstanceGone")
        assert "delete the Machine" in text
        await g.pass_time(600)
        assert g.vendor.machines() == []
        assert g.vendor.created == ["a"]
        assert await g.events("InstanceGone")
        await g.delete("a")
        await g.deleted("a")


@virtual
async def test_a_machine_that_somebody_switched_off_is_reported_and_left_off(vendor: Open) -> None:
    async with provider_plane(vendor) as g:
        await g.cluster()
        await g.machine("a")
        await g.ready("a")
        await g.vendor.power_off("a")
        text = await g.machine_says("a", "PoweredOff")
        assert "power it on" in text
        await g.pass_time(600)
        assert not g.found("a").on
        await g.delete("a")
        await g.deleted("a")
        assert g.vendor.machines() == []


@virtual
async def test_a_machine_that_somebody_powers_on_again_is_ready_again(vendor: Open) -> None:
    async with provider_plane(vendor) as g:
        await g.cluster()
        await g.machine("a")
        await g.ready("a")
        await g.vendor.power_off("a")
        await g.machine_says("a", "PoweredOff")
        await g.vendor.power_on("a")
        kind = g.vendor.machine_kind
        await g.plane.until(kind, key("a"), lambda m: condition(m, "Ready")["status"] == "True", 900)
        assert g.vendor.created == ["a"]


async def moved(g: ProviderPlane, name: str) -> None:
    """As clusterctl leaves it on another plane: the status is lost, and the Machine still knows what it runs on."""
    infra = await g.infra_machine(name)
    known = {"spec": {"providerID": infra.spec.provider_id}}
    await g.client.patch(Machine, key(name), MergePatch(known))
    await g.client.patch(g.vendor.machine_kind, key(name), MergePatch({"status": None}), Write(), subresource="status")


@virtual
async def test_a_machine_that_is_gone_when_its_object_arrives_elsewhere_is_not_recreated(vendor: Open) -> None:
    async with provider_plane(vendor) as g:
        await g.cluster()
        await g.machine("a")
        await g.ready("a")
        await g.stop()
        await g.vendor.delete_machine("a")
        await moved(g, "a")
        await g.start()
        await g.machine_says("a", "InstanceGone")
        await g.pass_time(600)
        assert g.vendor.machines() == []
        assert g.vendor.created == ["a"]


@virtual
async def test_a_machine_that_is_off_when_its_object_arrives_elsewhere_is_left_off(vendor: Open) -> None:
    async with provider_plane(vendor) as g:
        await g.cluster()
        await g.machine("a")
        await g.ready("a")
        await g.stop()
        await g.vendor.power_off("a")
        await moved(g, "a")
        await g.start()
        await g.machine_says("a", "PoweredOff")
        await g.pass_time(600)
        assert not g.found("a").on


async def paused(g: ProviderPlane, value: bool) -> None:
    await g.client.patch(Cluster, key(NAME), MergePatch({"spec": {"paused": value}}))


@virtual
async def test_a_machine_that_is_being_made_is_not_moved_before_its_object_names_it(vendor: Open) -> None:
    """Another plane would know nothing of what is under way, and make a second one."""
    async with provider_plane(vendor) as g:
        await g.cluster()
        g.vendor.slow_operations(20.0)
        await g.machine("a")
        await g.being_created("a")
        assert BLOCK_MOVE in (await g.infra_machine("a")).metadata.annotations
        await paused(g, True)
        await g.plane.until(g.vendor.machine_kind, key("a"), lambda m: BLOCK_MOVE not in m.metadata.annotations, 60)
        assert (await g.infra_machine("a")).spec.provider_id.endswith(g.found("a").id)
        await paused(g, False)
        await g.ready("a")
        assert g.vendor.created == ["a"]
        assert BLOCK_MOVE not in (await g.infra_machine("a")).metadata.annotations


@virtual
async def test_a_machine_that_can_not_be_made_does_not_keep_others_from_being_moved(vendor: Open) -> None:
    async with provider_plane(vendor) as g:
        await g.cluster()
        g.vendor.refuse(500, "create")
        await g.machine("a")
        await g.plane.until(g.vendor.machine_kind, key("a"), lambda m: BLOCK_MOVE in m.metadata.annotations, 60)
        await g.pass_time(5)
        await paused(g, True)
        await g.plane.until(g.vendor.machine_kind, key("a"), lambda m: BLOCK_MOVE not in m.metadata.annotations, 60)
        g.vendor.clear_faults()
        await g.pass_time(60)
        assert g.vendor.machines() == []
        await paused(g, False)
        await g.ready("a")


@virtual
async def test_deleting_twice_and_what_is_gone_already_is_no_error(vendor: Open) -> None:
    async with provider_plane(vendor) as g:
        g.vendor.slow_operations(5.0)
        await g.cluster()
        await g.machine("a")
        await g.machine("b")
        await g.ready("a", "b")
        await g.delete("a")
        await g.delete("b")
        await g.pass_time(1)
        await g.delete("a")
        await g.vendor.delete_machine("b")
        await g.restart()
        await g.deleted("a", "b")
        assert g.vendor.machines() == []


@virtual
async def test_a_machine_deleted_while_it_is_being_made_leaves_nothing(vendor: Open) -> None:
    async with provider_plane(vendor) as g:
        g.vendor.slow_operations(6.0)
        await g.cluster()
        for number in range(12):
            await g.machine(f"m{number}")
        names = [f"m{number}" for number in range(12)]
        for name in names:
            await g.pass_time(1.1)
            await g.delete(name)
        await g.deleted(*names)
        await g.pass_time(60)
        assert g.vendor.machines() == []


@virtual
async def test_a_machine_deleted_during_its_creation_and_a_restart_leaves_nothing(vendor: Open) -> None:
    async with provider_plane(vendor) as g:
        g.vendor.slow_operations(6.0)
        await g.cluster()
        await g.machine("a")
        await g.being_created("a")
        await g.stop()
        await g.delete("a")
        await g.start()
        await g.deleted("a")
        await g.pass_time(60)
        assert g.vendor.machines() == []


@virtual
async def test_a_machine_that_an_object_names_by_id_is_no_orphan_whatever_its_mark(vendor: Open) -> None:
    """Objects that were moved to another management cluster have other UIDs."""
    async with provider_plane(vendor) as g:
        infra = await g.cluster()
        moved = await g.vendor.create_orphan(infra, "moved")
        await g.stop()
        await g.machine("moved")
        body = {"spec": {"providerID": f"x://{moved}"}}
        await g.client.patch(g.vendor.machine_kind, key("moved"), MergePatch(body))
        annotations = {"metadata": {"annotations": {"cluster.x-k8s.io/paused": ""}}}
        await g.client.patch(g.vendor.machine_kind, key("moved"), MergePatch(annotations))
        await g.start()
        await g.pass_time(3000)
        assert [each.id for each in g.vendor.machines()] == [moved]


@virtual
async def test_credentials_stay_while_a_cluster_needs_them_and_then_go(vendor: Open) -> None:
    """Deleting everything at once takes away nothing that the deletion needs."""
    async with provider_plane(vendor) as g:
        await g.cluster()
        await g.machine("a")
        await g.ready("a")
        secret = g.vendor.credentials()["metadata"]["name"]
        held = await g.plane.until(SECRET, key(secret), lambda s: bool(s.metadata.get("finalizers")))
        assert MOVE_LABEL in held.metadata["labels"], "clusterctl must take it along"
        await g.client.delete(SECRET, key(secret))
        await g.delete_cluster()
        await g.delete("a")
        await g.plane.gone(g.vendor.cluster_kind, key(NAME), 600)
        await g.plane.gone(SECRET, key(secret), 600)
        assert g.vendor.machines() == []
        assert g.vendor.cluster_objects(NAME) == []


@virtual
async def test_credentials_that_two_clusters_share_stay_for_the_other_and_are_never_deleted(vendor: Open) -> None:
    async with provider_plane(vendor) as g:
        await g.cluster("one")
        await g.cluster("two", secret=False)
        secret = g.vendor.credentials()["metadata"]["name"]
        await g.delete_cluster("one")
        await g.plane.gone(g.vendor.cluster_kind, key("one"), 600)
        await g.pass_time(10)
        assert (await g.client.get(SECRET, key(secret))).metadata.get("finalizers")
        await g.machine("a", "two")
        await g.ready("a")
        await g.delete("a")
        await g.deleted("a")
        await g.delete_cluster("two")
        await g.plane.gone(g.vendor.cluster_kind, key("two"), 600)
        kept = await g.plane.until(SECRET, key(secret), lambda s: not s.metadata.get("finalizers"))
        assert not kept.metadata.get("deletionTimestamp")
