"""The kinds of k0s and k0smotron are converted between v1beta1 and v1beta2 without loss."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from homeport.api.meta import Object
from homeport.capi.conversion.loss import ANNOTATION
from homeport.capi.conversion.registration import converters_of
from homeport.capi.k0s import conversion as k0s
from homeport.hosted.k0smotron import conversion as k0smotron
from unit.capi.conversion.capi_object import PROPERTY, objects

KINDS = (*k0s.KINDS, *k0smotron.KINDS)
CONVERTERS = converters_of(KINDS)
PAIRS = [versions for versions, _ in KINDS]
NAMES = [versions[-1].__name__ for versions in PAIRS]


def convert(obj: dict[str, Any], cls: type[Object]) -> dict[str, Any]:
    at = cls.__resource__
    return CONVERTERS[at.group, at.kind](copy.deepcopy(obj), at.version)


@pytest.mark.parametrize(("older", "newest"), PAIRS, ids=NAMES)
@given(data=st.data())
@PROPERTY
def test_a_v1beta1_object_comes_back_from_v1beta2(
    older: type[Object], newest: type[Object], data: st.DataObject
) -> None:
    obj = data.draw(objects(older))
    back = convert(convert(obj, newest), older)
    assert back["metadata"] == obj["metadata"]
    assert back.get("spec") == obj.get("spec")
    assert all(back["status"][name] == value for name, value in obj.get("status", {}).items())


@pytest.mark.parametrize(("older", "newest"), PAIRS, ids=NAMES)
@given(data=st.data())
@PROPERTY
def test_a_v1beta2_object_comes_back_from_v1beta1(
    older: type[Object], newest: type[Object], data: st.DataObject
) -> None:
    obj = data.draw(objects(newest))
    back = convert(convert(obj, older), newest)
    back["metadata"]["annotations"].pop(ANNOTATION, None)  # what the older version adds on its own
    assert back == obj
