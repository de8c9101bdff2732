from __future__ import annotations

from typing import Any

import pytest

from homeport.api.cluster.v1beta2 import Cluster, Machine
from homeport.api.meta import ObjectMeta, OwnerReference, Resource, Unstructured
from homeport.capi.object.ownership import (
    OwnedElsewhere,
    adoptable,
    controller_of,
    ensure_owner,
    is_controlled_by,
    is_owned_by,
    owner_of_kind,
    owner_patch,
    owner_reference,
    with_owner,
)
from homeport.client.errors import Conflict
from homeport.client.protocol import Key, MergePatch, Write
from homeport.runtime.testing import plane

CONFIG_MAP = Resource("", "v1", "ConfigMap", "configmaps")
MACHINE = Machine(metadata=ObjectMeta(name="m", namespace="default", uid="u-m"))
CLUSTER = Cluster(metadata=ObjectMeta(name="c", namespace="default", uid="u-c"))


def reference(kind: str, name: str, uid: str, *, controller: bool = False, version: str = "v1beta2") -> dict[str, Any]:
    made: dict[str, Any] = {"apiVersion": f"cluster.x-k8s.io/{version}", "kind": kind, "name": name, "uid": uid}
    return made | ({"controller": True, "blockOwnerDeletion": True} if controller else {})


def test_references() -> None:
    assert owner_reference(MACHINE, controller=True) == reference("Machine", "m", "u-m", controller=True)
    assert owner_reference(CLUSTER) == reference("Cluster", "c", "u-c")
    untyped = Unstructured({"apiVersion": "a/v1", "kind": "X", "metadata": {"name": "x", "uid": "u"}})
    assert owner_reference(untyped)["kind"] == "X"


def test_owners_are_found() -> None:
    child = Unstructured(
        {"metadata": {"ownerReferences": [owner_reference(CLUSTER), owner_reference(MACHINE, controller=True)]}}
    )
    assert controller_of(child) == owner_reference(MACHINE, controller=True)
    assert is_controlled_by(child, MACHINE)
    assert not is_controlled_by(child, CLUSTER)
    assert is_owned_by(child, CLUSTER)
    assert owner_of_kind(child, Cluster.__resource__) == owner_reference(CLUSTER)
    assert not adoptable(child)


def test_an_object_without_controller_can_be_adopted_unless_it_is_deleted() -> None:
    assert adoptable(Unstructured({"metadata": {"ownerReferences": [owner_reference(CLUSTER)]}}))
    assert not adoptable(Unstructured({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}}))
    assert adoptable(Machine(metadata=ObjectMeta(name="m")))


def test_an_owner_of_an_old_version_or_uid_is_replaced() -> None:
    old = reference("Machine", "m", "old", version="v1beta1")
    assert with_owner([old], owner_reference(MACHINE)) == [owner_reference(MACHINE)]


def test_the_one_who_made_it_can_be_left_out() -> None:
    maker = reference("MachineSet", "s", "u-s", controller=True)
    wanted = owner_reference(MACHINE, controller=True)
    assert with_owner([maker], wanted, without=[("cluster.x-k8s.io", "MachineSet")]) == [wanted]


def test_there_is_one_controller() -> None:
    with pytest.raises(OwnedElsewhere, match="controlled by MachineSet 's'"):
        with_owner([reference("MachineSet", "s", "u-s", controller=True)], owner_reference(MACHINE, controller=True))


def test_nothing_is_written_when_all_is_there() -> None:
    machine = Machine(
        metadata=ObjectMeta(
            name="m",
            labels={"a": "b", "other": "x"},
            finalizers=["f"],
            owner_references=[
                OwnerReference(api_version="cluster.x-k8s.io/v1beta2", kind="Cluster", name="c", uid="u-c")
            ],
        )
    )
    assert owner_patch(machine, owner_reference(CLUSTER), labels={"a": "b"}, finalizers=["f"]) == {}


async def test_owner_labels_and_finalizer_come_in_one_write_that_holds_for_the_state_that_was_read() -> None:
    async with plane() as p:
        (stale,) = await p.have({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}})
        options = Write(field_manager="test")
        wanted = owner_reference(CLUSTER, controller=True)
        made = await ensure_owner(
            p.client, CONFIG_MAP, stale, wanted, options, labels={"a": "b"}, finalizers=["example.com/f"]
        )
        assert made.metadata["ownerReferences"] == [wanted]
        assert made.metadata["labels"] == {"a": "b"}
        assert made.metadata["finalizers"] == ["example.com/f"]
        assert await ensure_owner(p.client, CONFIG_MAP, made, wanted, options) is made
        await p.client.patch(CONFIG_MAP, Key("default", "a"), MergePatch({"data": {"x": "y"}}))
        with pytest.raises(Conflict):
            await ensure_owner(p.client, CONFIG_MAP, stale, wanted, options)
