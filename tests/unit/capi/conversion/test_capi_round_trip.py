"""Whatever an object says in one version it says after a trip through another."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from homeport.api.meta import Object
from homeport.capi.conversion import converters
from homeport.capi.conversion.loss import ANNOTATION
from homeport.capi.definition.kind import KINDS
from homeport.machinery.crd.generate import generate
from homeport.machinery.schema import compile_checker
from unit.capi.conversion.capi_object import PROPERTY, objects

CONVERTERS = converters()
OLDER = [(older, kind.versions[-1]) for kind in KINDS for older in kind.versions[:-1]]
CHECKERS = {older: compile_checker(generate(older)) for older, _ in OLDER}
NAMES = [f"{older.__name__}-{older.__resource__.version}" for older, _ in OLDER]


def convert(obj: dict[str, Any], cls: type[Object]) -> dict[str, Any]:
    at = cls.__resource__
    return CONVERTERS[at.group, at.kind](copy.deepcopy(obj), at.version)


def full(obj: Any) -> Any:
    """Without what goes without saying: the namespace of references is filled in, and so is an empty required field."""
    if isinstance(obj, dict):
        kept = {name: full(value) for name, value in obj.items()}
        if kept.get("namespace") == "ns":
            del kept["namespace"]
        return {name: value for name, value in kept.items() if value is not False and value != {}}
    return [full(item) for item in obj] if isinstance(obj, list) else obj


@pytest.mark.parametrize(("older", "newest"), OLDER, ids=NAMES)
@given(data=st.data())
@PROPERTY
def test_an_older_object_comes_back_from_the_newest_version(
    older: type[Object], newest: type[Object], data: st.DataObject
) -> None:
    obj = data.draw(objects(older))
    back = convert(convert(obj, newest), older)
    assert full(back) == full(obj)


@pytest.mark.parametrize(("older", "newest"), OLDER, ids=NAMES)
@given(data=st.data())
@PROPERTY
def test_a_newest_object_comes_back_from_an_older_version(
    older: type[Object], newest: type[Object], data: st.DataObject
) -> None:
    obj = data.draw(objects(newest))
    back = convert(convert(obj, older), newest)
    back["metadata"]["annotations"].pop(ANNOTATION, None)  # what the older version adds on its own
    assert back == obj


# Nothing empty: it says the same as nothing, and conversion may leave it out.
WRONG: list[Any] = ["soon", 7, 1.5, True, ["x"], [{"name": "x"}], [7], {"x": "y"}]


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Paths of everything below a value."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for step, inner in items:
        yield (*path, step)
        yield from places(inner, (*path, step))


@pytest.mark.parametrize(("older", "newest"), OLDER, ids=NAMES)
@given(data=st.data())
@PROPERTY
def test_an_object_of_the_wrong_shape_is_converted_and_refused_afterwards(
    older: type[Object], newest: type[Object], data: st.DataObject
) -> None:
    """API servers convert before they ask a schema: who fails then turns a mistake of a user into a server error."""
    obj = data.draw(objects(older))
    found = list(places(obj.get("spec") or {}, ("spec",)))
    if not found:
        return
    *above, last = data.draw(st.sampled_from(found))
    part: Any = obj
    for step in above:
        part = part[step]
    part[last] = data.draw(st.sampled_from(WRONG))
    there = convert(obj, newest)
    back = convert(there, older)
    checker = CHECKERS[older]
    if checker.validate(copy.deepcopy(obj), flawed=True):
        at = newest.__resource__
        refused = CONVERTERS[at.group, at.kind].violations(there, None)
        assert refused or checker.validate(back, flawed=True)
