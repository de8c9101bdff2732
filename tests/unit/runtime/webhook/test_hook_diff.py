from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from homeport.machinery.patch import json_patch, same
from homeport.runtime.webhook.diff import json_patch_diff

_SCALARS = st.none() | st.booleans() | st.integers(-2, 2) | st.sampled_from(["", "a", "b"])
_KEYS = st.sampled_from(["a", "b", "a/b", "~", "~1", "", "0", "-"])
_VALUES = st.recursive(
    _SCALARS, lambda below: st.lists(below, max_size=5) | st.dictionaries(_KEYS, below, max_size=4), max_leaves=12
)
_OBJECTS = st.dictionaries(_KEYS, _VALUES, max_size=4)


@given(_OBJECTS, _OBJECTS)
def test_applying_the_difference_gives_the_other(before: Any, after: Any) -> None:
    kept = copy.deepcopy(before)
    assert same(json_patch(before, json_patch_diff(before, after)), after)
    assert same(before, kept)


@given(_OBJECTS)
def test_equal_objects_differ_in_nothing(value: Any) -> None:
    assert json_patch_diff(value, copy.deepcopy(value)) == []


@pytest.mark.parametrize(
    ("before", "after", "patch"),
    [
        ({"a": 1}, {"a": True}, [{"op": "replace", "path": "/a", "value": True}]),
        ({"a": 1}, {"a": None}, [{"op": "replace", "path": "/a", "value": None}]),
        ({"a/b": 1}, {}, [{"op": "remove", "path": "/a~1b"}]),
        ({}, {"x~y": {}}, [{"op": "add", "path": "/x~0y", "value": {}}]),
        ({"l": [1, 2, 3]}, {"l": [1, 9, 2, 3]}, [{"op": "add", "path": "/l/1", "value": 9}]),
        ({"l": [1, 2, 3]}, {"l": [1, 3]}, [{"op": "remove", "path": "/l/1"}]),
        ({"l": [{"n": 1, "v": 1}]}, {"l": [{"n": 1, "v": 2}]}, [{"op": "replace", "path": "/l/0/v", "value": 2}]),
    ],
)
def test_only_differences_are_in_the_patch(before: Any, after: Any, patch: Any) -> None:
    assert json_patch_diff(before, after) == patch
