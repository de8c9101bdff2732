from __future__ import annotations

import pytest

from homeport.client.errors import Conflict
from homeport.client.protocol import Key, MergePatch, Propagation
from scenario.builtin.plane import (
    CLUSTER_ROLE,
    CONFIG_MAP,
    CRD,
    NAMESPACE,
    SECRET,
    WIDGET,
    OnPlane,
    Plane,
    owner_ref,
    widget_definition,
)


def _owned(plane: Plane, name: str) -> list[str]:
    record = plane.server.store.get("configmaps", f"default/{name}")
    assert record is not None, f"{name} is gone"
    import orjson

    return [ref["name"] for ref in orjson.loads(record.value)["metadata"].get("ownerReferences") or ()]


async def _chain(plane: Plane) -> None:
    root = await plane.make(CONFIG_MAP, "root")
    child = await plane.make(CONFIG_MAP, "child", owners=(root,))
    await plane.make(SECRET, "grandchild", owners=(child,))
    await plane.make(CONFIG_MAP, "bystander")


def test_a_background_deletion_takes_everything_below_and_nothing_else(on_plane: OnPlane) -> None:
    async def scenario(plane: Plane) -> None:
        await _chain(plane)
        await plane.delete(CONFIG_MAP, "root")
        assert not await plane.exists(CONFIG_MAP, "root")
        await plane.settle()
        assert plane.names("configmaps", "default/") == ["default/bystander", "default/kube-root-ca.crt"]
        assert plane.names("secrets", "default/") == []

    on_plane(scenario)


def test_a_foreground_deletion_removes_the_owner_last(on_plane: OnPlane) -> None:
    async def scenario(plane: Plane) -> None:
        await _chain(plane)
        gone: list[str] = []
        plane.server.store.subscribe(None, lambda changes: gone.extend(c.name for c in changes if c.record is None))
        await plane.delete(CONFIG_MAP, "root", "Foreground")
        assert (await plane.get(CONFIG_MAP, "root")).metadata["finalizers"] == ["foregroundDeletion"]
        await plane.settle()
        assert gone == ["default/grandchild", "default/child", "default/root"]

    on_plane(scenario)


def test_a_foreground_deletion_waits_for_a_dependent_held_by_a_finalizer(on_plane: OnPlane) -> None:
    async def scenario(plane: Plane) -> None:
        root = await plane.make(CONFIG_MAP, "root")
        await plane.make(CONFIG_MAP, "held", owners=(root,), finalizers=("example.com/hold",))
        await plane.make(CONFIG_MAP, "loose", owners=(root,))
        await plane.delete(CONFIG_MAP, "root", "Foreground")
        await plane.settle(3600)
        assert await plane.exists(CONFIG_MAP, "root")
        assert not await plane.exists(CONFIG_MAP, "loose")
        await plane.client.patch(CONFIG_MAP, Key("default", "held"), MergePatch({"metadata": {"finalizers": None}}))
        await plane.settle()
        assert not await plane.exists(CONFIG_MAP, "root")

    on_plane(scenario)


def test_only_dependents_that_say_so_block_a_foreground_deletion(on_plane: OnPlane) -> None:
    async def scenario(plane: Plane) -> None:
        root = await plane.make(CONFIG_MAP, "root")
        await plane.make(CONFIG_MAP, "slow", owners=(root,), finalizers=("example.com/hold",), block=False)
        await plane.delete(CONFIG_MAP, "root", "Foreground")
        await plane.settle()
        assert not await plane.exists(CONFIG_MAP, "root")
        slow = await plane.get(CONFIG_MAP, "slow")
        assert slow.metadata["deletionTimestamp"]

    on_plane(scenario)


def test_a_dependent_that_stops_blocking_lets_its_owner_go(on_plane: OnPlane) -> None:
    async def scenario(plane: Plane) -> None:
        root = await plane.make(CONFIG_MAP, "root")
        await plane.make(CONFIG_MAP, "held", owners=(root,), finalizers=("example.com/hold",))
        await plane.delete(CONFIG_MAP, "root", "Foreground")
        await plane.settle()
        assert await plane.exists(CONFIG_MAP, "root")
        refs = [owner_ref(root, block=False)]
        await plane.client.patch(
            CONFIG_MAP, Key("default", "held"), MergePatch({"metadata": {"ownerReferences": refs}})
        )
        await plane.settle()
        assert not await plane.exists(CONFIG_MAP, "root")

    on_plane(scenario)


def test_orphans_stay_and_forget_their_owner(on_plane: OnPlane) -> None:
    async def scenario(plane: Plane) -> None:
        await _chain(plane)
        await plane.delete(CONFIG_MAP, "root", "Orphan")
        await plane.settle()
        assert not await plane.exists(CONFIG_MAP, "root")
        assert _owned(plane, "child") == []
        assert await plane.exists(SECRET, "grandchild")

    on_plane(scenario)


def test_a_dependent_lives_as_long_as_one_of_its_owners(on_plane: OnPlane) -> None:
    async def scenario(plane: Plane) -> None:
        one, two = await plane.make(CONFIG_MAP, "one"), await plane.make(CONFIG_MAP, "two")
        await plane.make(CONFIG_MAP, "child", owners=(one, two))
        await plane.delete(CONFIG_MAP, "one")
        await plane.settle()
        assert _owned(plane, "child") == ["two"]
        await plane.delete(CONFIG_MAP, "two")
        await plane.settle()
        assert not await plane.exists(CONFIG_MAP, "child")

    on_plane(scenario)


def test_a_foreground_deletion_does_not_take_what_has_another_owner(on_plane: OnPlane) -> None:
    async def scenario(plane: Plane) -> None:
        one, two = await plane.make(CONFIG_MAP, "one"), await plane.make(CONFIG_MAP, "two")
        await plane.make(CONFIG_MAP, "child", owners=(one, two))
        await plane.delete(CONFIG_MAP, "one", "Foreground")
        await plane.settle()
        assert not await plane.exists(CONFIG_MAP, "one")
        assert _owned(plane, "child") == ["two"]

    on_plane(scenario)


@pytest.mark.parametrize("policy", ["Background", "Foreground"])
@pytest.mark.parametrize("size", [1, 2, 3])
def test_a_circle_of_owners_can_be_deleted(on_plane: OnPlane, policy: Propagation, size: int) -> None:
    async def scenario(plane: Plane) -> None:
        made = [await plane.make(CONFIG_MAP, f"c{n}") for n in range(size)]
        for n, each in enumerate(made):
            patch = MergePatch({"metadata": {"ownerReferences": [owner_ref(made[n - 1])]}})
            await plane.client.patch(CONFIG_MAP, Key("default", each.name), patch)
        await plane.settle()
        assert len(plane.names("configmaps", "default/c")) == size, "a circle that nobody deletes stays"
        await plane.delete(CONFIG_MAP, "c0", policy)
        await plane.settle(60)
        assert plane.names("configmaps", "default/c") == []

    on_plane(scenario)


def test_a_dependent_of_an_owner_that_never_was_is_collected(on_plane: OnPlane) -> None:
    async def scenario(plane: Plane) -> None:
        owner = await plane.make(CONFIG_MAP, "owner")
        await plane.delete(CONFIG_MAP, "owner")
        await plane.make(CONFIG_MAP, "late", owners=(owner,))
        await plane.settle()
        assert not await plane.exists(CONFIG_MAP, "late")

    on_plane(scenario)


def test_a_namesake_of_a_dead_owner_owns_nothing(on_plane: OnPlane) -> None:
    async def scenario(plane: Plane) -> None:
        first = await plane.make(CONFIG_MAP, "owner")
        await plane.stop()
        await plane.make(CONFIG_MAP, "child", owners=(first,))
        await plane.delete(CONFIG_MAP, "owner")
        second = await plane.make(CONFIG_MAP, "owner")
        await plane.make(CONFIG_MAP, "heir", owners=(second,))
        await plane.start()
        await plane.settle()
        assert not await plane.exists(CONFIG_MAP, "child")
        assert await plane.exists(CONFIG_MAP, "owner")
        assert await plane.exists(CONFIG_MAP, "heir")

    on_plane(scenario)


def test_an_owner_in_another_namespace_holds_nothing_deletes_nothing_and_is_pointed_out(on_plane: OnPlane) -> None:
    async def scenario(plane: Plane) -> None:
        await plane.make(NAMESPACE, "far")
        owner = await plane.make(CONFIG_MAP, "owner", namespace="far")
        await plane.make(CONFIG_MAP, "child", owners=(owner,))
        await plane.settle()
        assert await plane.exists(CONFIG_MAP, "child")
        warnings = [e for e in plane.objects("events") if e["reason"] == "OwnerRefInvalidNamespace"]
        assert [e["involvedObject"]["name"] for e in warnings] == ["child"]
        assert warnings[0]["type"] == "Warning"
        assert "ConfigMap owner" in warnings[0]["message"]
        await plane.delete(CONFIG_MAP, "owner", "Foreground", namespace="far")
        await plane.settle()
        assert not await plane.exists(CONFIG_MAP, "owner", "far"), "a foreign dependent must not block"
        assert await plane.exists(CONFIG_MAP, "child")
        await plane.stop()
        await plane.start()
        await plane.settle()
        assert await plane.exists(CONFIG_MAP, "child"), "a restart must not take it for an orphan"

    on_plane(scenario)


def test_a_foreign_owner_does_not_save_what_lost_its_own(on_plane: OnPlane) -> None:
    async def scenario(plane: Plane) -> None:
        await plane.make(NAMESPACE, "far")
        foreign = await plane.make(CONFIG_MAP, "foreign", namespace="far")
        near = await plane.make(CONFIG_MAP, "near")
        await plane.make(CONFIG_MAP, "child", owners=(foreign, near))
        await plane.delete(CONFIG_MAP, "near")
        await plane.settle()
        assert not await plane.exists(CONFIG_MAP, "child")
        assert await plane.exists(CONFIG_MAP, "foreign", "far")

    on_plane(scenario)


def test_a_cluster_wide_dependent_of_a_namespaced_owner_is_left_alone(on_plane: OnPlane) -> None:
    async def scenario(plane: Plane) -> None:
        owner = await plane.make(CONFIG_MAP, "owner")
        await plane.make(CLUSTER_ROLE, "wide", owners=(owner,), rules=[])
        await plane.delete(CONFIG_MAP, "owner")
        await plane.settle()
        assert await plane.exists(CLUSTER_ROLE, "wide")
        assert [e["reason"] for e in plane.objects("events")] == ["OwnerRefInvalidNamespace"]

    on_plane(scenario)


def test_a_cluster_wide_owner_owns_in_every_namespace(on_plane: OnPlane) -> None:
    async def scenario(plane: Plane) -> None:
        await plane.make(NAMESPACE, "far")
        owner = await plane.make(CLUSTER_ROLE, "owner", rules=[])
        await plane.make(CONFIG_MAP, "here", owners=(owner,))
        await plane.make(CONFIG_MAP, "there", namespace="far", owners=(owner,))
        await plane.settle()
        assert await plane.exists(CONFIG_MAP, "there", "far")
        await plane.delete(CLUSTER_ROLE, "owner", "Foreground")
        await plane.settle()
        assert not await plane.exists(CLUSTER_ROLE, "owner")
        assert not await plane.exists(CONFIG_MAP, "here")
        assert not await plane.exists(CONFIG_MAP, "there", "far")

    on_plane(scenario)


def test_custom_resources_own_and_are_owned(on_plane: OnPlane) -> None:
    async def scenario(plane: Plane) -> None:
        await plane.client.create(widget_definition(), kind=CRD)
        root = await plane.make(WIDGET, "root")
        child = await plane.make(WIDGET, "child", owners=(root,))
        await plane.make(SECRET, "leaf", owners=(child,))
        await plane.delete(WIDGET, "root", "Foreground")
        await plane.settle()
        assert plane.names("widgets.example.com") == []
        assert plane.names("secrets", "default/") == []

    on_plane(scenario)


def test_an_owner_of_a_kind_that_is_not_served_can_not_be_judged(on_plane: OnPlane) -> None:
    async def scenario(plane: Plane) -> None:
        ref = {
            "apiVersion": "example.com/v1",
            "kind": "Widget",
            "name": "w",
            "uid": "00000000-0000-0000-0000-000000000001",
        }
        body = {"metadata": {"name": "child", "namespace": "default", "ownerReferences": [ref]}}
        await plane.client.create(body, kind=CONFIG_MAP)
        await plane.settle(3600)
        assert await plane.exists(CONFIG_MAP, "child"), "nobody can say that the owner is gone"
        await plane.client.create(widget_definition(), kind=CRD)
        await plane.settle()
        assert not await plane.exists(CONFIG_MAP, "child"), "now it is certain"

    on_plane(scenario)


def test_deleting_a_definition_takes_its_objects_and_what_they_own(on_plane: OnPlane) -> None:
    async def scenario(plane: Plane) -> None:
        await plane.client.create(widget_definition(), kind=CRD)
        owner = await plane.make(WIDGET, "owner")
        await plane.make(CONFIG_MAP, "child", owners=(owner,))
        await plane.delete(CRD, "widgets.example.com")
        await plane.settle()
        assert not await plane.exists(CRD, "widgets.example.com")
        assert not await plane.exists(CONFIG_MAP, "child")

    on_plane(scenario)


def test_dependents_that_come_while_the_owner_goes_are_taken_along(on_plane: OnPlane) -> None:
    async def scenario(plane: Plane) -> None:
        root = await plane.make(CONFIG_MAP, "root")
        await plane.make(CONFIG_MAP, "held", owners=(root,), finalizers=("example.com/hold",))
        await plane.delete(CONFIG_MAP, "root", "Foreground")
        await plane.settle()
        await plane.make(CONFIG_MAP, "late", owners=(root,))
        await plane.settle()
        assert not await plane.exists(CONFIG_MAP, "late")
        assert await plane.exists(CONFIG_MAP, "root")

    on_plane(scenario)


@pytest.mark.parametrize("policy", ["Background", "Foreground", "Orphan"])
def test_a_restart_in_the_middle_of_a_deletion_loses_nothing(on_plane: OnPlane, policy: Propagation) -> None:
    async def scenario(plane: Plane) -> None:
        await _chain(plane)
        await plane.stop()
        await plane.delete(CONFIG_MAP, "root", policy)
        await plane.start()
        await plane.settle()
        assert not await plane.exists(CONFIG_MAP, "root")
        assert await plane.exists(CONFIG_MAP, "child") == (policy == "Orphan")
        assert await plane.exists(SECRET, "grandchild") == (policy == "Orphan")
        assert await plane.exists(CONFIG_MAP, "bystander")

    on_plane(scenario)


def test_an_object_that_was_adopted_a_moment_ago_is_not_deleted(on_plane: OnPlane) -> None:
    """The decision to delete was made on an older version: the precondition saves the object."""

    async def scenario(plane: Plane) -> None:
        one, two = await plane.make(CONFIG_MAP, "one"), await plane.make(CONFIG_MAP, "two")
        await plane.make(CONFIG_MAP, "child", owners=(one,))
        node = next(n for n in plane.collector.graph.nodes.values() if n.name == "default/child")
        refs = [owner_ref(two)]
        await plane.client.patch(
            CONFIG_MAP, Key("default", "child"), MergePatch({"metadata": {"ownerReferences": refs}})
        )
        with pytest.raises(Conflict):
            await plane.collector._delete(node, "Background")
        await plane.delete(CONFIG_MAP, "one")
        await plane.settle()
        assert _owned(plane, "child") == ["two"]

    on_plane(scenario)


def test_a_living_object_that_asks_for_orphans_keeps_them_when_it_is_collected(on_plane: OnPlane) -> None:
    async def scenario(plane: Plane) -> None:
        root = await plane.make(CONFIG_MAP, "root")
        child = await plane.make(CONFIG_MAP, "child", owners=(root,), finalizers=("orphan",))
        await plane.make(CONFIG_MAP, "grandchild", owners=(child,))
        await plane.delete(CONFIG_MAP, "root")
        await plane.settle()
        assert not await plane.exists(CONFIG_MAP, "child")
        assert _owned(plane, "grandchild") == []

    on_plane(scenario)
