"""Sets of fields: their laws, their wire form, and how they read."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from homeport.machinery.apply import element
from homeport.machinery.apply.fieldset import FieldSet, recursive_difference

_STEPS = ["f:a", "f:b", "f:<c>", 'k:{"name":"x"}', 'k:{"port":80}', 'k:{"port":9}', 'v:"x"', "v:3", "v:20", "i:0"]
paths = st.lists(st.lists(st.sampled_from(_STEPS), min_size=1, max_size=3).map(tuple), max_size=6)
sets = paths.map(lambda found: FieldSet.of(*found))
relaxed = settings(suppress_health_check=[HealthCheck.too_slow], deadline=None)


def members(of: FieldSet) -> set[tuple[str, ...]]:
    return set(of.paths())


@relaxed
@given(paths)
def test_a_set_holds_exactly_the_paths_it_was_made_of(found: Any) -> None:
    assert members(FieldSet.of(*found)) == set(found)


@relaxed
@given(sets)
def test_a_set_survives_its_wire_form(one: FieldSet) -> None:
    wire = one.to_v1()
    assert members(FieldSet.from_v1(wire)) == members(one)
    assert FieldSet.from_v1(wire).to_v1() == wire


@relaxed
@given(sets, sets)
def test_operations_are_those_of_sets(one: FieldSet, two: FieldSet) -> None:
    left, right = one.to_v1(), two.to_v1()
    assert members(one.union(two)) == members(one) | members(two)
    assert members(one.difference(two)) == members(one) - members(two)
    assert members(one.intersection(two)) == members(one) & members(two)
    assert one.difference(two).empty is (members(one) <= members(two))
    assert (one.to_v1(), two.to_v1()) == (left, right)


@relaxed
@given(sets, sets)
def test_a_recursive_difference_takes_what_is_below_too(one: FieldSet, two: FieldSet) -> None:
    gone = members(two)
    expected = {path for path in members(one) if not any(path[:end] in gone for end in range(1, len(path) + 1))}
    assert members(FieldSet(recursive_difference(one.trie, two.trie))) == expected


@relaxed
@given(sets)
def test_a_union_with_itself_is_the_same_object(one: FieldSet) -> None:
    assert one.union(one).trie is one.trie


def test_has_and_leaves_tell_members_from_ways() -> None:
    fields = FieldSet.from_v1({"f:spec": {"f:ports": {".": {}, 'k:{"port":80}': {".": {}, "f:port": {}}}}})
    assert fields.has(("f:spec", "f:ports"))
    assert not fields.has(("f:spec",))
    assert fields.leaves() == [("f:spec", "f:ports", 'k:{"port":80}', "f:port")]
    assert len(fields) == 3


def test_steps_sort_as_kubernetes_sorts_them() -> None:
    fields = FieldSet.of(*((step,) for step in ['v:"b"', "v:10", "v:9", 'k:{"p":10}', 'k:{"p":9}', "f:b", "f:a"]))
    assert list(fields.to_v1()) == ["f:a", "f:b", 'k:{"p":9}', 'k:{"p":10}', "v:9", "v:10", 'v:"b"']


def test_steps_of_others_are_brought_into_canonical_form() -> None:
    fields = FieldSet.from_v1({'k:{"b": 1, "a": "<"}': {}, "z:future": {"f:x": {}}, "f:a": {"f:b": {}}})
    assert list(fields.to_v1()) == ["f:a", 'k:{"a":"\\u003c","b":1}']


@pytest.mark.parametrize("key", ["x", "fa", "k:[1]", "k:{", "v:", "i:x", 'i:"1"'])
def test_a_broken_step_is_refused(key: str) -> None:
    with pytest.raises(element.ElementError):
        FieldSet.from_v1({key: {}})


def test_something_else_than_an_object_is_refused() -> None:
    with pytest.raises(element.ElementError):
        FieldSet.from_v1({"f:a": [1]})


def test_paths_read_as_in_conflict_messages() -> None:
    fields = FieldSet.of(
        ("f:spec", 'k:{"containerPort":80,"protocol":"TCP"}', "f:name"), ("f:tags", 'v:"x"'), ("f:list", "i:0")
    )
    assert str(fields) == '.list[0]\n.spec[containerPort=80,protocol="TCP"].name\n.tags[="x"]'
