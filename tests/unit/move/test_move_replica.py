"""What an object becomes on the target."""

from __future__ import annotations

from typing import Any

from homeport.api.meta import Resource, Unstructured
from homeport.capi.name import DELETE_FOR_MOVE, PAUSED
from homeport.move.kind import MovedKind
from homeport.move.node import Node
from homeport.move.replica import MARK, Mark, mark_of, render_copy, render_status
from homeport.move.side import SECRET

MACHINE = MovedKind(Resource("cluster.x-k8s.io", "v1beta2", "Machine", "machines"), status=True)


def machine(**more: Any) -> Node:
    meta = {
        "name": "m",
        "namespace": "a",
        "uid": "old",
        "resourceVersion": "7",
        "generation": 4,
        "creationTimestamp": "2026-01-01T00:00:00Z",
        "generateName": "m-",
        "finalizers": ["machine"],
        "labels": {"x": "y"},
        "managedFields": [{"manager": "user"}],
        "ownerReferences": [
            {"apiVersion": "v1", "kind": "Set", "name": "s", "uid": "set", "controller": True},
            {"apiVersion": "v1", "kind": "Other", "name": "o", "uid": "other"},
        ],
        **more,
    }
    return Node(MACHINE, Unstructured({"metadata": meta, "spec": {"a": 1}, "status": {"phase": "Running"}}))


def test_a_copy_has_the_new_uids_of_its_owners_and_nothing_of_the_old_server() -> None:
    node = machine(annotations={"kept": "1", DELETE_FOR_MOVE: ""})
    body = render_copy(node, Mark("id", "old"), {"set": "new"})
    meta = body["metadata"]
    assert meta["ownerReferences"] == [
        {"apiVersion": "v1", "kind": "Set", "name": "s", "uid": "new", "controller": True}
    ]
    assert set(meta) == {"name", "namespace", "finalizers", "labels", "annotations", "ownerReferences"}
    assert set(meta["annotations"]) == {"kept", PAUSED, MARK}
    assert mark_of(body) == Mark("id", "old")
    assert "status" not in body
    assert (body["apiVersion"], body["kind"], body["spec"]) == ("cluster.x-k8s.io/v1beta2", "Machine", {"a": 1})
    assert node.obj["status"] == {"phase": "Running"}


def test_what_pauses_nothing_is_not_paused() -> None:
    secret = Node(MovedKind(SECRET), Unstructured({"metadata": {"name": "s", "uid": "u"}, "data": {"a": "Yg=="}}))
    assert PAUSED not in render_copy(secret, Mark("id", "u"), {})["metadata"]["annotations"]


def test_the_pause_of_a_user_keeps_its_value() -> None:
    body = render_copy(machine(annotations={PAUSED: "by me"}), Mark("id", "old", paused=True), {})
    assert body["metadata"]["annotations"][PAUSED] == "by me"


def test_generations_in_the_status_are_those_of_the_copy() -> None:
    node = machine()
    node.obj["status"] = {
        "observedGeneration": 4,
        "conditions": [{"type": "A", "observedGeneration": 4}, {"type": "B", "observedGeneration": 3}],
    }
    assert render_status(node, 1) == {
        "observedGeneration": 1,
        "conditions": [{"type": "A", "observedGeneration": 1}, {"type": "B"}],
    }


def test_a_mark_that_somebody_else_wrote_is_of_no_object() -> None:
    assert mark_of({"metadata": {"annotations": {MARK: "nonsense"}}}) == Mark("", "")
    assert mark_of({"metadata": {}}) is None
