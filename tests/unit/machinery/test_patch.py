"""JSON patch and merge patch."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from homeport.machinery import patch as patch_module
from homeport.machinery.patch import PatchError, PatchTooLarge, diff_merge, json_patch, merge_patch, same

DOC = {"a": {"b": [1, 2, 3], "c/d": 1, "e~f": 2, "n": None}, "list": [{"x": 1}]}


@pytest.mark.parametrize(
    ("operation", "path", "expected"),
    [
        ({"op": "add", "path": "/a/new", "value": 1}, ("a", "new"), 1),
        ({"op": "add", "path": "/a/b/1", "value": 9}, ("a", "b"), [1, 9, 2, 3]),
        ({"op": "add", "path": "/a/b/-", "value": 9}, ("a", "b"), [1, 2, 3, 9]),
        ({"op": "add", "path": "/a/b/-1", "value": 9}, ("a", "b"), [1, 2, 3, 9]),
        ({"op": "remove", "path": "/a/b/-1"}, ("a", "b"), [1, 2]),
        ({"op": "remove", "path": "/a/b/0"}, ("a", "b"), [2, 3]),
        ({"op": "replace", "path": "/a/b/1", "value": 7}, ("a", "b"), [1, 7, 3]),
        ({"op": "replace", "path": "/a/absent", "value": 7}, ("a", "absent"), 7),
        ({"op": "replace", "path": "/a/c~1d", "value": 7}, ("a", "c/d"), 7),
        ({"op": "replace", "path": "/a/e~0f", "value": 7}, ("a", "e~f"), 7),
        ({"op": "copy", "from": "/a/b", "path": "/a/z"}, ("a", "z"), [1, 2, 3]),
        ({"op": "move", "from": "/a/b", "path": "/z"}, ("z",), [1, 2, 3]),
        ({"op": "add", "path": "/list/0/y", "value": {"k": 1}}, ("list",), [{"x": 1, "y": {"k": 1}}]),
        ({"op": "test", "path": "/a/b", "value": [1, 2, 3]}, ("a", "b"), [1, 2, 3]),
        ({"op": "test", "path": "/a/absent", "value": None}, ("list",), [{"x": 1}]),
        ({"op": "test", "path": "/a/n", "value": None}, ("list",), [{"x": 1}]),
    ],
)
def test_an_operation_changes_what_it_says_and_not_its_input(
    operation: dict[str, Any], path: tuple[str, ...], expected: Any
) -> None:
    before = copy.deepcopy(DOC)
    result = json_patch(before, [operation])
    at: Any = result
    for step in path:
        at = at[step]
    assert at == expected
    assert before == DOC


@pytest.mark.parametrize(
    ("operation", "message"),
    [
        (
            {"op": "add", "path": "/x/y", "value": 1},
            'add operation does not apply: doc is missing path: "/x/y": missing value',
        ),
        ({"op": "add", "path": "/a/b/9", "value": 1}, "Unable to access invalid index: 9"),
        ({"op": "add", "path": "/a/b/one", "value": 1}, "value was not a proper array index: 'one'"),
        ({"op": "remove", "path": "/zz"}, "Unable to remove nonexistent key: zz: missing value"),
        ({"op": "replace", "path": "/a/b/9", "value": 1}, "doc is missing key: /a/b/9"),
        ({"op": "test", "path": "/a/c~1d", "value": True}, "testing value /a/c~1d failed: test failed"),
        ({"op": "move", "from": "/zz", "path": "/y"}, "Unable to remove nonexistent key: zz"),
        ({"op": "copy", "path": "/y"}, "copy operation failed to decode from"),
        ({"op": "dance", "path": "/y"}, "Unexpected kind: dance"),
        ({"path": "/y"}, "Unexpected kind: unknown"),
        ({"op": "add", "value": 1}, "failed to decode path"),
        ({"op": "add", "path": "", "value": 1}, "doc is missing path"),
        ({"op": "replace", "path": "", "value": 1}, "value must be object or array"),
    ],
)
def test_a_failing_operation_names_its_place(operation: dict[str, Any], message: str) -> None:
    with pytest.raises(PatchError) as caught:
        json_patch(DOC, [{"op": "add", "path": "/ok", "value": 1}, operation])
    assert message in str(caught.value)
    assert caught.value.index == 1


@pytest.mark.parametrize("operations", [{}, "x", None, [1]])
def test_something_else_than_a_list_of_operations_is_refused(operations: Any) -> None:
    with pytest.raises(PatchError):
        json_patch(DOC, operations)


def test_too_many_operations_are_refused() -> None:
    operation = {"op": "test", "path": "/absent", "value": None}
    json_patch({}, [operation] * patch_module.MAX_OPERATIONS)
    with pytest.raises(PatchTooLarge):
        json_patch({}, [operation] * (patch_module.MAX_OPERATIONS + 1))


def test_copies_that_double_a_document_again_and_again_are_stopped() -> None:
    doubling = [{"op": "copy", "from": "/a", "path": "/a/-"} for _ in range(40)]
    with pytest.raises(PatchError, match="accumulated size increase"):
        json_patch({"a": ["x" * 1000]}, doubling)


def test_a_copy_does_not_follow_later_changes_of_its_source() -> None:
    result = json_patch(
        {"a": {}},
        [
            {"op": "add", "path": "/a/x", "value": 1},
            {"op": "copy", "from": "/a", "path": "/b"},
            {"op": "add", "path": "/a/x", "value": 2},
        ],
    )
    assert result == {"a": {"x": 2}, "b": {"x": 1}}


def test_a_later_operation_does_not_change_an_earlier_ones_value() -> None:
    value = {"k": 1}
    result = json_patch({}, [{"op": "add", "path": "/a", "value": value}, {"op": "add", "path": "/a/k", "value": 2}])
    assert result == {"a": {"k": 2}}
    assert value == {"k": 1}


def test_replacing_the_whole_document_works() -> None:
    assert json_patch({"a": 1}, [{"op": "replace", "path": "", "value": {"b": 1}}]) == {"b": 1}


@pytest.mark.parametrize(
    ("doc", "patch", "expected"),
    [
        ({"a": 1}, {"a": 2}, {"a": 2}),
        ({"a": 1}, {"a": None}, {}),
        ({}, {"a": None}, {}),
        ({"a": {"b": 1, "c": 2}}, {"a": {"b": None}}, {"a": {"c": 2}}),
        ({"a": [1]}, {"a": {"b": None, "c": 1}}, {"a": {"c": 1}}),
        ({"a": 1}, {"a": {"b": {"c": None}}}, {"a": {"b": {}}}),
        ({"a": [1, 2]}, {"a": [None, {"x": None}]}, {"a": [None, {}]}),
    ],
)
def test_a_merge_patch_merges_objects_and_replaces_the_rest(doc: Any, patch: Any, expected: Any) -> None:
    before = copy.deepcopy(doc)
    assert merge_patch(doc, patch) == expected
    assert doc == before


def test_a_merge_patch_that_is_not_an_object_is_refused() -> None:
    with pytest.raises(PatchError):
        merge_patch({}, [1])


def test_true_and_one_are_different() -> None:
    assert not same(True, 1)
    assert not same({"a": [False]}, {"a": [0]})
    assert same(1, 1.0)
    assert diff_merge({"a": 1}, {"a": True}) == {"a": True}


scalars = st.one_of(st.booleans(), st.integers(-5, 5), st.text(max_size=3))
values = st.recursive(
    scalars,
    lambda below: st.one_of(st.lists(below, max_size=3), st.dictionaries(st.sampled_from("abc"), below, max_size=3)),
    max_leaves=12,
)
documents = st.dictionaries(st.sampled_from("abcd"), values, max_size=4)


@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(documents, documents)
def test_the_difference_of_two_documents_leads_from_one_to_the_other(before: Any, after: Any) -> None:
    patch = diff_merge(before, after)
    assert same(merge_patch(before, patch), after)
    assert (patch == {}) is same(before, after)


@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(documents, documents)
def test_a_merge_patch_is_idempotent(doc: Any, patch: Any) -> None:
    once = merge_patch(doc, patch)
    assert same(merge_patch(once, patch), once)


def test_patches_nested_too_deeply_are_refused_not_fatal() -> None:
    deep: Any = 1
    for _ in range(5000):
        deep = {"a": deep}
    with pytest.raises(PatchError, match="too deeply"):
        merge_patch({}, deep)
    with pytest.raises(PatchError, match="too deeply"):
        json_patch(deep, [{"op": "test", "path": "", "value": {"a": {"a": deep}}}])
    with pytest.raises(PatchError, match="too deeply"):
        json_patch({"x": deep}, [{"op": "copy", "from": "/x", "path": "/y"}])
