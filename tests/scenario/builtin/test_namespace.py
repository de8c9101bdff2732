from __future__ import annotations

import asyncio

import pytest

from homeport.api.meta import Resource
from homeport.client.errors import Forbidden
from homeport.client.protocol import Key, MergePatch
from scenario.builtin.plane import (
    CLUSTER_ROLE,
    CONFIG_MAP,
    CRD,
    NAMESPACE,
    POD,
    SECRET,
    WIDGET,
    OnPlane,
    Plane,
    stated,
    widget_definition,
)

HOLD = "example.com/hold"


async def _let_go(plane: Plane, kind: Resource, name: str, namespace: str) -> None:
    await plane.client.patch(kind, Key(namespace, name), MergePatch({"metadata": {"finalizers": None}}))


def test_a_namespace_goes_with_everything_in_it_and_nothing_beside(on_plane: OnPlane) -> None:
    async def scenario(plane: Plane) -> None:
        for name in ("gone", "gone-not"):
            await plane.make(NAMESPACE, name)
            await plane.make(CONFIG_MAP, "c", namespace=name)
            await plane.make(SECRET, "s", namespace=name)
        await plane.make(CLUSTER_ROLE, "wide", rules=[])
        await plane.settle()
        await plane.delete(NAMESPACE, "gone")
        assert (await plane.get(NAMESPACE, "gone"))["status"]["phase"] == "Terminating"
        await plane.settle()
        assert not await plane.exists(NAMESPACE, "gone")
        left = [f"{b} {n}" for b in plane.server.store.buckets() for n in plane.names(b, "gone/")]
        assert left == []
        assert await plane.exists(CONFIG_MAP, "c", "gone-not")
        assert await plane.exists(CLUSTER_ROLE, "wide")

    on_plane(scenario)


def test_finalizers_hold_a_namespace_and_its_conditions_name_them(on_plane: OnPlane) -> None:
    async def scenario(plane: Plane) -> None:
        await plane.make(NAMESPACE, "slow")
        for n in range(3):
            await plane.make(CONFIG_MAP, f"c{n}", namespace="slow", finalizers=(HOLD,))
        await plane.delete(NAMESPACE, "slow")
        await plane.settle()
        conditions = (await plane.get(NAMESPACE, "slow"))["status"]["conditions"]
        assert len(conditions) == 5
        remaining = stated(conditions, "NamespaceContentRemaining")
        assert remaining["status"] == "True"
        assert remaining["message"] == "Some resources are remaining: configmaps. has 3 resource instances"
        finalizers = stated(conditions, "NamespaceFinalizersRemaining")
        assert finalizers["message"].endswith(f"{HOLD} in 3 resource instances")
        assert stated(conditions, "NamespaceDeletionContentFailure")["status"] == "False"
        await _let_go(plane, CONFIG_MAP, "c0", "slow")
        await plane.settle()
        conditions = (await plane.get(NAMESPACE, "slow"))["status"]["conditions"]
        assert "configmaps. has 2 resource" in stated(conditions, "NamespaceContentRemaining")["message"]
        for n in (1, 2):
            await _let_go(plane, CONFIG_MAP, f"c{n}", "slow")
        await plane.settle()
        assert not await plane.exists(NAMESPACE, "slow")

    on_plane(scenario)


def test_a_namespace_held_by_a_finalizer_causes_no_writes(on_plane: OnPlane) -> None:
    async def scenario(plane: Plane) -> None:
        await plane.make(NAMESPACE, "slow")
        await plane.make(CONFIG_MAP, "c", namespace="slow", finalizers=(HOLD,))
        await plane.delete(NAMESPACE, "slow")
        await plane.settle()
        before = plane.server.store.revision
        await plane.settle(1800)
        assert plane.server.store.revision == before

    on_plane(scenario)


def test_nothing_can_be_made_in_a_namespace_that_goes(on_plane: OnPlane) -> None:
    async def scenario(plane: Plane) -> None:
        await plane.make(NAMESPACE, "slow")
        await plane.make(CONFIG_MAP, "c", namespace="slow", finalizers=(HOLD,))
        await plane.delete(NAMESPACE, "slow")
        with pytest.raises(Forbidden, match="being terminated"):
            await plane.make(CONFIG_MAP, "late", namespace="slow")

    on_plane(scenario)


def test_what_slipped_in_while_its_namespace_went_is_cleared_up(on_plane: OnPlane) -> None:
    """A slow admission webhook lets an object through after its namespace is gone."""

    async def scenario(plane: Plane) -> None:
        store = plane.server.store
        await plane.make(NAMESPACE, "brief")
        await plane.settle()
        record = store.get("configmaps", "brief/kube-root-ca.crt")
        assert record is not None
        template = record.value
        await plane.delete(NAMESPACE, "brief")
        await plane.settle()
        await store.put("configmaps", "brief/late", lambda revision: template, expect=0)
        await plane.settle()
        assert plane.names("configmaps", "brief/") == []

    on_plane(scenario)


def test_custom_resources_go_with_their_namespace_also_when_their_kind_came_late(on_plane: OnPlane) -> None:
    async def scenario(plane: Plane) -> None:
        await plane.make(NAMESPACE, "gone")
        await plane.client.create(widget_definition(), kind=CRD)
        await plane.make(WIDGET, "w", namespace="gone")
        await plane.make(WIDGET, "w")
        await plane.delete(NAMESPACE, "gone")
        await plane.settle()
        assert not await plane.exists(NAMESPACE, "gone")
        assert plane.names("widgets.example.com") == ["default/w"]

    on_plane(scenario)


def test_a_namespace_with_finalizers_of_its_own_stays_until_they_go(on_plane: OnPlane) -> None:
    async def scenario(plane: Plane) -> None:
        await plane.make(NAMESPACE, "held", finalizers=(HOLD,))
        await plane.make(CONFIG_MAP, "c", namespace="held")
        await plane.delete(NAMESPACE, "held")
        await plane.settle()
        held = await plane.get(NAMESPACE, "held")
        assert not held["spec"].get("finalizers")
        assert plane.names("configmaps", "held/") == []
        await plane.client.patch(NAMESPACE, Key("", "held"), MergePatch({"metadata": {"finalizers": None}}))
        assert not await plane.exists(NAMESPACE, "held")

    on_plane(scenario)


def test_pods_go_before_what_they_use(on_plane: OnPlane) -> None:
    async def scenario(plane: Plane) -> None:
        await plane.make(NAMESPACE, "gone")
        await plane.settle()
        spec = {"nodeName": "n", "containers": [{"name": "c", "image": "i"}]}
        await plane.make(POD, "p", namespace="gone", spec=spec)
        await plane.make(SECRET, "s", namespace="gone")
        await plane.delete(NAMESPACE, "gone")
        await plane.settle()
        assert await plane.exists(SECRET, "s", "gone"), "the Pod has its grace period"
        await plane.client.delete(POD, Key("gone", "p"), grace_seconds=0)
        await plane.settle()
        assert not await plane.exists(NAMESPACE, "gone")

    on_plane(scenario)


def test_a_restart_continues_a_deletion(on_plane: OnPlane) -> None:
    async def scenario(plane: Plane) -> None:
        await plane.make(NAMESPACE, "gone")
        await plane.make(CONFIG_MAP, "c", namespace="gone")
        await plane.stop()
        await plane.delete(NAMESPACE, "gone")
        await plane.settle()
        assert await plane.exists(NAMESPACE, "gone")
        await plane.start()
        await plane.settle()
        assert not await plane.exists(NAMESPACE, "gone")

    on_plane(scenario)


def test_a_namespace_of_the_same_name_made_in_the_meantime_loses_nothing(on_plane: OnPlane) -> None:
    async def scenario(plane: Plane) -> None:
        await plane.make(NAMESPACE, "twice")
        await plane.settle()
        await plane.delete(NAMESPACE, "twice")
        while await plane.exists(NAMESPACE, "twice"):  # noqa: ASYNC110  (the very moment counts)
            await asyncio.sleep(0)
        await plane.make(NAMESPACE, "twice")
        await plane.make(CONFIG_MAP, "c", namespace="twice")
        await plane.settle(60)
        assert await plane.exists(CONFIG_MAP, "c", "twice")
        assert await plane.exists(CONFIG_MAP, "kube-root-ca.crt", "twice")

    on_plane(scenario)


def test_an_owner_in_a_namespace_that_goes_takes_only_its_own_along(on_plane: OnPlane) -> None:
    async def scenario(plane: Plane) -> None:
        await plane.make(NAMESPACE, "gone")
        owner = await plane.make(CONFIG_MAP, "owner", namespace="gone")
        await plane.make(CONFIG_MAP, "child", namespace="gone", owners=(owner,))
        await plane.make(CONFIG_MAP, "foreign", owners=(owner,))
        await plane.delete(NAMESPACE, "gone")
        await plane.settle(60)
        assert not await plane.exists(NAMESPACE, "gone")
        assert await plane.exists(CONFIG_MAP, "foreign")

    on_plane(scenario)
