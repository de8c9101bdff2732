"""Whatever an object says in one version it says after a trip through another."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from homeport.api.meta import Object
from homeport.capi.conversion import converters
from homeport.capi.conversion.loss import ANNOTATION
from homeport.capi.definition.kind import KINDS
from unit.capi.conversion.capi_object import PROPERTY, objects

CONVERTERS = converters()
OLDER = [(older, kind.versions[-1]) for kind in KINDS for older in kind.versions[:-1]]
NAMES = [f"{older.__name__}-{older.__resource__.version}" for older, _ in OLDER]


def convert(obj: dict[str, Any], cls: type[Object]) -> dict[str, Any]:
    at = cls.__resource__
    return CONVERTERS[at.group, at.kind](copy.deepcopy(obj), at.version)


def full(obj: Any) -> Any:
    """Without what goes without saying: the namespace of references is filled in."""
    if isinstance(obj, dict):
        kept = {name: full(value) for name, value in obj.items()}
        if kept.get("namespace") == "ns":
            del kept["namespace"]
        return {name: value for name, value in kept.items() if value is not False}
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
