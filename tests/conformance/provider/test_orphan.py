"""Machines without objects: removed when it is proven that they are left over, reported and kept otherwise."""

from __future__ import annotations

from typing import Any

from conformance.provider.provider_plane import NAME, ProviderPlane, condition, key, provider_plane
from conformance.provider.vendor import Open
from homeport.api.cluster.v1beta2 import Cluster, Machine
from homeport.client.protocol import MergePatch
from homeport.infra.orphan.record import DELETED, REQUEST, Answer, Request, parse_deletions
from homeport.runtime.testing import virtual

HOUR = 3600.0


async def force_delete(g: ProviderPlane, name: str) -> None:
    """As users do it when a deletion hangs: the finalizers first, then the object, which is gone at once."""
    for kind in (g.vendor.machine_kind, Machine):
        await g.client.patch(kind, key(name), MergePatch({"metadata": {"finalizers": None}}))
        await g.client.delete(kind, key(name))
        await g.plane.gone(kind, key(name), 60)


async def machines(g: ProviderPlane, *names: str) -> Any:
    infra = await g.cluster()
    for name in names:
        await g.machine(name)
    await g.ready(*names)
    return infra


def names(g: ProviderPlane) -> set[str]:
    return {each.name for each in g.vendor.machines()}


async def ask(g: ProviderPlane, request: Request) -> Answer:
    patch = MergePatch({"metadata": {"annotations": {REQUEST: request.render()}}})
    await g.client.patch(g.vendor.cluster_kind, key(NAME), patch)
    answered = await g.plane.until(
        g.vendor.cluster_kind, key(NAME), lambda c: Answer.parse(c.metadata.annotations).request == request.id, 60
    )
    return Answer.parse(answered.metadata.annotations)


@virtual
async def test_a_machine_whose_object_was_deleted_by_force_is_removed_after_a_while(vendor: Open) -> None:
    async with provider_plane(vendor) as g:
        await machines(g, "a", "b")
        await g.answers()
        foreign = await g.vendor.create_foreign("somebody-elses")
        await force_delete(g, "a")
        text = await g.orphans_say("OrphanedMachines", "a (")
        assert "somebody-elses" not in text
        assert "removed after 10 minutes" in text
        assert names(g) == {"a", "b", "somebody-elses"}
        orphans = g.vendor.conditions.orphans
        await g.plane.until(g.vendor.cluster_kind, key(NAME), lambda c: condition(c, orphans)["status"] == "True", HOUR)
        assert names(g) == {"b", "somebody-elses"}
        assert foreign in {each.id for each in g.vendor.machines()}
        assert await g.events("OrphanRemoved")
        assert DELETED not in (await g.infra_cluster()).metadata.annotations


@virtual
async def test_the_record_of_a_deletion_survives_a_restart(vendor: Open) -> None:
    async with provider_plane(vendor) as g:
        await machines(g, "a", "b")
        await force_delete(g, "a")
        await g.plane.until(
            g.vendor.cluster_kind, key(NAME), lambda c: bool(parse_deletions(c.metadata.annotations)), 60
        )
        await g.restart()
        await g.answers()
        await g.pass_time(HOUR)
        assert names(g) == {"b"}


@virtual
async def test_a_machine_that_no_object_was_ever_deleted_for_is_reported_and_kept(vendor: Open) -> None:
    """As after a restore of a backup that is older than the machine, or in a copy of another plane."""
    async with provider_plane(vendor) as g:
        infra = await machines(g, "a")
        await g.answers()
        await g.vendor.create_orphan(infra, "newer")
        words = ("OrphanedMachines", "newer", "no record", f"homeport orphans list {NAME} -n default")
        await g.orphans_say(*words)
        assert len(await g.events("OrphanedMachine")) == 1
        await g.pass_time(3 * HOUR)
        assert names(g) == {"a", "newer"}


@virtual
async def test_objects_that_vanish_while_nobody_looks_prove_nothing(vendor: Open) -> None:
    async with provider_plane(vendor) as g:
        await machines(g, "a", "b")
        await g.stop()
        for kind in (g.vendor.machine_kind, Machine):
            await g.client.patch(kind, key("a"), MergePatch({"metadata": {"finalizers": None}}))
            await g.client.delete(kind, key("a"))
        await g.start()
        await g.answers()
        await g.pass_time(3 * HOUR)
        assert names(g) == {"a", "b"}


@virtual
async def test_a_machine_that_is_a_node_is_kept_though_its_object_was_deleted(vendor: Open) -> None:
    async with provider_plane(vendor) as g:
        await machines(g, "a", "b")
        spec = {"providerID": (await g.infra_machine("a")).spec.provider_id}
        await g.plane.have({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "x"}, "spec": spec})
        await g.answers()
        await force_delete(g, "a")
        await g.orphans_say("it is Node x of the workload cluster")
        await g.pass_time(3 * HOUR)
        assert names(g) == {"a", "b"}


@virtual
async def test_nothing_is_removed_while_the_workload_cluster_does_not_answer(vendor: Open) -> None:
    async with provider_plane(vendor) as g:
        await machines(g, "a", "b")
        await force_delete(g, "a")
        await g.orphans_say("does not report whether it uses the machine")
        await g.pass_time(3 * HOUR)
        assert names(g) == {"a", "b"}


@virtual
async def test_nothing_is_removed_while_a_machine_that_an_object_names_is_missing(vendor: Open) -> None:
    async with provider_plane(vendor) as g:
        await machines(g, "a", "b")
        await g.answers()
        await force_delete(g, "a")
        await g.vendor.delete_machine("b")
        await g.orphans_say("machine b of the cluster is missing")
        await g.pass_time(3 * HOUR)
        assert names(g) == {"a"}


@virtual
async def test_objects_that_are_moved_to_another_plane_leave_their_machines(vendor: Open) -> None:
    """clusterctl pauses the Cluster, removes finalizers and deletes. The Cluster that stays may be unpaused again."""
    async with provider_plane(vendor) as g:
        await machines(g, "a", "b")
        await g.answers()
        await g.client.patch(Cluster, key(NAME), MergePatch({"spec": {"paused": True}}))
        await g.pass_time(1)
        await force_delete(g, "a")
        await g.client.patch(Cluster, key(NAME), MergePatch({"spec": {"paused": False}}))
        moved = {"metadata": {"annotations": {"clusterctl.cluster.x-k8s.io/delete-for-move": ""}}}
        await g.client.patch(g.vendor.machine_kind, key("b"), MergePatch(moved))
        await force_delete(g, "b")
        await g.pass_time(3 * HOUR)
        assert names(g) == {"a", "b"}


@virtual
async def test_a_cluster_that_goes_takes_along_what_was_deleted_by_force(vendor: Open) -> None:
    async with provider_plane(vendor) as g:
        await machines(g, "a")
        await force_delete(g, "a")
        await g.delete_cluster()
        await g.plane.gone(g.vendor.cluster_kind, key(NAME), 600)
        assert g.vendor.machines() == []
        assert g.vendor.cluster_objects(NAME) == []


@virtual
async def test_a_cluster_that_goes_waits_for_its_user_to_decide_about_other_orphans(vendor: Open) -> None:
    async with provider_plane(vendor) as g:
        infra = await g.cluster()
        id_ = await g.vendor.create_orphan(infra, "newer")
        await g.delete_cluster()
        await g.cluster_says("OrphanedMachines", "newer", "homeport orphans list", timeout=600)
        await g.pass_time(HOUR)
        assert names(g) == {"newer"}
        await ask(g, Request("1", (id_,), force=True))
        await g.plane.gone(g.vendor.cluster_kind, key(NAME), 600)
        assert g.vendor.machines() == []
        assert g.vendor.cluster_objects(NAME) == []


@virtual
async def test_a_user_learns_of_orphans_at_once_and_removes_those_that_are_named(vendor: Open) -> None:
    async with provider_plane(vendor) as g:
        infra = await machines(g, "a")
        await g.answers()
        left = await g.vendor.create_orphan(infra, "left-over")
        used = await g.vendor.create_orphan(infra, "used")
        await g.plane.have({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "used"}})
        found = await ask(g, Request("1"))
        assert {each.owned.name for each in found.found} == {"left-over", "used"}
        assert [each.role.node for each in found.found if each.role is not None] == ["used"]
        # One that the cluster uses stays unless it is forced, and a machine that has an object is not for removal.
        own = (await g.infra_machine("a")).spec.provider_id.rpartition("/")[2]
        found = await ask(g, Request("2", (left, used, own)))
        assert [each.owned.name for each in found.found if each.removing] == ["left-over"]
        await g.pass_time(60)
        assert names(g) == {"a", "used"}
        await ask(g, Request("3", (used, own), force=True))
        await g.pass_time(60)
        assert names(g) == {"a"}


@virtual
async def test_a_request_is_answered_with_the_error_when_the_infrastructure_can_not_be_asked(vendor: Open) -> None:
    async with provider_plane(vendor) as g:
        await machines(g, "a")
        g.vendor.refuse(500)
        found = await ask(g, Request("1"))
        assert found.error
        assert found.found == ()
