"""Strategic merge patch."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from homeport.machinery.patch import PatchError, same
from homeport.machinery.schema.node import Schema
from homeport.machinery.strategic import strategic_merge

_STRING = {"type": "string"}
CONTAINER = {
    "type": "object",
    "properties": {
        "name": _STRING,
        "image": _STRING,
        "args": {"type": "array", "items": _STRING},
        "ports": {
            "type": "array",
            "items": {"type": "object", "properties": {"containerPort": {"type": "integer"}, "protocol": _STRING}},
            "x-kubernetes-patch-strategy": "merge",
            "x-kubernetes-patch-merge-key": "containerPort",
        },
    },
}
SCHEMA = Schema(
    {
        "type": "object",
        "properties": {
            "labels": {"type": "object", "additionalProperties": _STRING},
            "finalizers": {"type": "array", "items": _STRING, "x-kubernetes-patch-strategy": "merge"},
            "plain": {"type": "array", "items": _STRING},
            "containers": {
                "type": "array",
                "items": {"$ref": "#/components/schemas/Container"},
                "x-kubernetes-patch-strategy": "merge",
                "x-kubernetes-patch-merge-key": "name",
            },
            "volumes": {
                "type": "array",
                "items": {"type": "object", "properties": {"name": _STRING}},
                "x-kubernetes-patch-strategy": "merge,retainKeys",
                "x-kubernetes-patch-merge-key": "name",
            },
            "strategy": {
                "type": "object",
                "properties": {"type": _STRING, "rolling": {"type": "object", "properties": {"max": _STRING}}},
                "x-kubernetes-patch-strategy": "retainKeys",
            },
            "whole": {"type": "object", "properties": {"a": _STRING}, "x-kubernetes-patch-strategy": "replace"},
        },
    },
    {"Container": CONTAINER},
)


def containers(*names: str) -> list[dict[str, Any]]:
    return [{"name": name} for name in names]


@pytest.mark.parametrize(
    ("doc", "patch", "expected"),
    [
        pytest.param({"labels": {"a": "1", "b": "2"}}, {"labels": {"a": None, "c": "3"}}, {"labels": {"b": "2", "c": "3"}}, id="maps merge"),
        pytest.param({"plain": ["a"]}, {"plain": ["b"]}, {"plain": ["b"]}, id="a list without strategy is replaced"),
        pytest.param({"finalizers": ["a", "b"]}, {"finalizers": ["c", "a"]}, {"finalizers": ["c", "a", "b"]}, id="a merged list of texts"),
        pytest.param({"whole": {"a": "1", "b": "2"}}, {"whole": {"a": "2"}}, {"whole": {"a": "2"}}, id="replace strategy"),
        pytest.param(
            {"containers": [{"name": "a", "image": "1"}, {"name": "b", "image": "1"}]},
            {"containers": [{"name": "b", "image": "2"}]},
            {"containers": [{"name": "a", "image": "1"}, {"name": "b", "image": "2"}]},
            id="items merge by key",
        ),
        pytest.param({"containers": containers("a")}, {"containers": containers("n")}, {"containers": containers("n", "a")}, id="a new item comes first without an order"),
        pytest.param(
            {"containers": [{"name": "a", "ports": [{"containerPort": 1}, {"containerPort": 2}]}]},
            {"containers": [{"name": "a", "ports": [{"containerPort": 2, "protocol": "UDP"}]}]},
            {"containers": [{"name": "a", "ports": [{"containerPort": 1}, {"containerPort": 2, "protocol": "UDP"}]}]},
            id="lists in lists merge through a reference",
        ),
        pytest.param({"containers": containers("a", "b")}, {"containers": [{"$patch": "delete", "name": "a"}]}, {"containers": containers("b")}, id="delete an item"),
        pytest.param({"containers": containers("a", "b")}, {"containers": [{"$patch": "replace"}, {"name": "c"}]}, {"containers": containers("c")}, id="replace the list"),
        pytest.param({"labels": {"a": "1"}}, {"labels": {"$patch": "replace", "b": "2"}}, {"labels": {"b": "2"}}, id="replace a map"),
        pytest.param({"labels": {"a": "1"}}, {"labels": {"$patch": "delete"}}, {"labels": {}}, id="delete a map"),
        pytest.param({}, {"labels": {"$patch": "delete"}}, {}, id="delete an absent map"),
        pytest.param({}, {"containers": [{"name": "a"}, {"name": "b", "$patch": "delete"}]}, {"containers": containers("a")}, id="directives never land in the object"),
        pytest.param({"finalizers": ["a", "b", "c"]}, {"$deleteFromPrimitiveList/finalizers": ["b"]}, {"finalizers": ["a", "c"]}, id="delete from a list of texts"),
        pytest.param(
            {"containers": containers("a", "b", "c")},
            {"$setElementOrder/containers": containers("c", "a"), "containers": []},
            {"containers": containers("b", "c", "a")},
            id="order with items that only the server has",
        ),
        pytest.param(
            {"containers": containers("a", "b")},
            {"$setElementOrder/containers": containers("b", "n", "a"), "containers": [{"name": "n", "image": "1"}]},
            {"containers": [{"name": "b"}, {"name": "n", "image": "1"}, {"name": "a"}]},
            id="order with a new item",
        ),
        pytest.param({"finalizers": ["a", "b"]}, {"$setElementOrder/finalizers": ["b", "a"]}, {"finalizers": ["b", "a"]}, id="order alone"),
        pytest.param(
            {"strategy": {"type": "Rolling", "rolling": {"max": "1"}}},
            {"strategy": {"$retainKeys": ["type"], "type": "Recreate"}},
            {"strategy": {"type": "Recreate"}},
            id="retain keys",
        ),
        pytest.param(
            {"volumes": [{"name": "v", "emptyDir": {}}]},
            {"volumes": [{"name": "v", "$retainKeys": ["name", "secret"], "secret": {"x": "1"}}]},
            {"volumes": [{"name": "v", "secret": {"x": "1"}}]},
            id="retain keys inside a list",
        ),
        pytest.param({}, {"labels": {"a": None, "b": "1"}}, {"labels": {"b": "1"}}, id="unmatched nulls vanish"),
        pytest.param({"plain": ["a"]}, {"plain": None}, {}, id="null removes a list"),
        pytest.param({"labels": "odd"}, {"labels": {"a": "1"}}, {"labels": {"a": "1"}}, id="another type is replaced"),
    ],
)  # fmt: skip
def test_a_strategic_patch_merges_by_the_schema(doc: Any, patch: Any, expected: Any) -> None:
    before = copy.deepcopy((doc, patch))
    assert strategic_merge(doc, patch, SCHEMA) == expected
    assert (doc, patch) == before


@pytest.mark.parametrize(
    ("doc", "patch", "message"),
    [
        ({"containers": containers("a")}, {"containers": [{"image": "x"}]}, "does not contain declared merge key: name"),
        ({"containers": containers("a")}, {"containers": [{"$patch": "delete"}]}, "does not contain declared merge key"),
        ({"containers": containers("a")}, {"containers": ["a"]}, "list element types are not identical"),
        ({"labels": {"a": "1"}}, {"labels": {"$patch": "shake"}}, "unknown patch type: shake"),
        ({"containers": containers("a")}, {"containers": [{"$patch": "merge", "name": "a"}]}, "merging lists cannot yet"),
        ({"strategy": {"type": "a"}}, {"strategy": {"$retainKeys": "type"}}, "invalid patch format of retainKeys"),
        ({"strategy": {"type": "a"}}, {"strategy": {"$retainKeys": ["x"], "type": "b"}}, "invalid patch format of retainKeys"),
        ({}, {"$setElementOrder/finalizers": "a", "finalizers": ["a"]}, "invalid patch format of setElementOrder list"),
        ({"finalizers": ["a"]}, {"$setElementOrder/finalizers": ["a"], "finalizers": ["b"]}, "doesn't match $setElementOrder list"),
        ({}, {"$deleteFromPrimitiveList": ["a"]}, "invalid patch format of primitive list"),
        ({}, [], "must be an object"),
    ],
)  # fmt: skip
def test_a_malformed_strategic_patch_is_refused(doc: Any, patch: Any, message: str) -> None:
    with pytest.raises(PatchError) as caught:
        strategic_merge(doc, patch, SCHEMA)
    assert message in str(caught.value)


def test_a_kind_without_schema_takes_no_strategic_patch() -> None:
    with pytest.raises(PatchError, match="strategic merge patch format is not supported"):
        strategic_merge({}, {}, None)


names = st.lists(st.sampled_from("abcde"), unique=True, max_size=4)
documents = st.fixed_dictionaries(
    {},
    optional={
        "containers": names.map(lambda found: containers(*found)),
        "finalizers": names,
        "labels": st.dictionaries(st.sampled_from("ab"), st.sampled_from("12")),
        "plain": names,
    },
)


@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(documents, documents)
def test_a_strategic_patch_is_idempotent(doc: Any, patch: Any) -> None:
    once = strategic_merge(doc, patch, SCHEMA)
    assert same(strategic_merge(once, patch, SCHEMA), once)


@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(documents, documents)
def test_merged_lists_hold_every_item_of_both_once(doc: Any, patch: Any) -> None:
    merged = strategic_merge(doc, patch, SCHEMA)
    for field in ("containers", "finalizers"):
        both = doc.get(field, []) + patch.get(field, [])
        items = merged.get(field, [])
        assert all(item in items for item in both)
        assert len(items) == len({str(item) for item in both})


@given(documents, names.filter(bool))
def test_an_order_directive_orders_the_items_it_names(doc: Any, order: list[str]) -> None:
    patch = {"$setElementOrder/containers": containers(*order), "containers": containers(*order)}
    merged = strategic_merge(doc, patch, SCHEMA)["containers"]
    assert [item["name"] for item in merged if item["name"] in order] == order


@given(documents)
def test_an_empty_strategic_patch_changes_nothing(doc: Any) -> None:
    assert strategic_merge(doc, {}, SCHEMA) == doc
