from __future__ import annotations

import orjson

from homeport.builtin.graph import Graph, concerns


def _object(
    uid: str, *owners: str, finalizers: tuple[str, ...] = (), deleting: bool = False, block: bool = True
) -> bytes:
    meta: dict[str, object] = {"uid": uid, "name": uid}
    if owners:
        meta["ownerReferences"] = [
            {"apiVersion": "v1", "kind": "ConfigMap", "name": o, "uid": o, "blockOwnerDeletion": block} for o in owners
        ]
    if finalizers:
        meta["finalizers"] = list(finalizers)
    if deleting:
        meta["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    return orjson.dumps({"metadata": meta, "data": {"k": "v"}})


def _put(graph: Graph, uid: str, *owners: str, **more: object) -> None:
    graph.put("configmaps", f"ns/{uid}", 1, _object(uid, *owners, **more))  # type: ignore[arg-type]


def test_objects_without_owners_are_not_kept() -> None:
    assert not concerns(_object("a"))
    assert not concerns(_object("a", deleting=True, finalizers=("example.com/x",)))
    assert concerns(_object("a", "b"))
    assert concerns(_object("a", deleting=True, finalizers=("foregroundDeletion",)))
    graph = Graph()
    _put(graph, "a")
    assert not graph.nodes


def test_a_mention_of_owner_references_in_data_or_managed_fields_is_no_owner() -> None:
    value = orjson.dumps({"metadata": {"uid": "a", "managedFields": [{"fieldsV1": {"f:ownerReferences": {}}}]}})
    assert not concerns(value)
    graph = Graph()
    text = orjson.dumps({"metadata": {"uid": "a"}, "data": {"ownerReferences": "x"}})
    assert graph.put("configmaps", "ns/a", 1, text) == (None, None)


def test_references_are_forgotten_with_the_objects() -> None:
    graph = Graph()
    _put(graph, "a", "root", "other")
    _put(graph, "b", "root")
    assert [n.uid for n in graph.dependents("root")] == ["a", "b"]
    _put(graph, "a", "other")
    assert [n.uid for n in graph.dependents("root")] == ["b"]
    graph.drop("b")
    graph.drop("a")
    assert not graph.has_dependents("root")
    assert not graph.has_dependents("other")
    assert not graph.nodes


def test_references_that_read_the_same_are_kept_once() -> None:
    graph = Graph()
    _put(graph, "a", "root")
    _put(graph, "b", "root")
    assert graph.nodes["a"].owners[0] is graph.nodes["b"].owners[0]


def test_a_dependent_with_block_owner_deletion_blocks() -> None:
    graph = Graph()
    _put(graph, "root", deleting=True, finalizers=("foregroundDeletion",))
    root = graph.nodes["root"]
    assert not graph.blocked(root)
    _put(graph, "loose", "root", block=False)
    assert not graph.blocked(root)
    _put(graph, "tight", "root")
    assert graph.blocked(root)


def test_a_cycle_does_not_block_but_a_third_object_does() -> None:
    graph = Graph()
    waiting = {"deleting": True, "finalizers": ("foregroundDeletion",)}
    _put(graph, "a", "b", **waiting)
    _put(graph, "b", "a", **waiting)
    assert not graph.blocked(graph.nodes["a"])
    _put(graph, "c", "a")
    assert graph.blocked(graph.nodes["a"])
