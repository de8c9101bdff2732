"""A plane installs the definitions of its release without a look at their schemas: these tests look."""

from __future__ import annotations

import copy
import importlib
from typing import Any

import pytest

from homeport.app.components import COMPONENTS
from homeport.app.platform import definitions_of
from homeport.machinery import crd

DEFINITIONS = [each for component in COMPONENTS for each in definitions_of(component)]


@pytest.fixture
def accepted(monkeypatch: pytest.MonkeyPatch) -> dict[bytes, None]:
    """What the server takes for sound, at first nothing."""
    known: dict[bytes, None] = {}
    monkeypatch.setattr(importlib.import_module("homeport.machinery.crd.check"), "_ACCEPTED", known)
    return known


def stored(definition: Any) -> dict[str, Any]:
    made: dict[str, Any] = copy.deepcopy(dict(definition))
    crd.default(made)
    crd.remember_storage_version(made)
    return made


@pytest.mark.parametrize("definition", DEFINITIONS, ids=lambda each: each["metadata"]["name"])
def test_a_definition_of_the_release_is_sound(definition: Any, accepted: dict[bytes, None]) -> None:
    assert crd.check(stored(definition)) == []
    assert accepted


@pytest.mark.parametrize("definition", DEFINITIONS, ids=lambda each: each["metadata"]["name"])
def test_a_trusted_definition_is_not_looked_at(definition: Any, accepted: dict[bytes, None]) -> None:
    crd.trust(definition)
    trusted = dict(accepted)
    assert crd.check(stored(definition)) == []
    assert accepted == trusted


def test_a_definition_that_differs_from_a_trusted_one_is_looked_at(accepted: dict[bytes, None]) -> None:
    definition = DEFINITIONS[0]
    crd.trust(definition)
    changed = stored(definition)
    changed["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["type"] = "nonsense"
    assert crd.check(changed) != []
