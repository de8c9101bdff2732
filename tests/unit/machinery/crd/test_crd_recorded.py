"""Definitions against what kube-apiserver 1.37 said of them (recorded_definitions.json)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from homeport.machinery import crd

RECORDED = json.loads(Path(__file__).with_name("recorded_definitions.json").read_text())


@pytest.mark.parametrize("recorded", RECORDED, ids=[each["definition"]["metadata"]["name"] for each in RECORDED])
def test_a_definition_is_judged_as_by_a_real_server(recorded: dict[str, Any]) -> None:
    definition = json.loads(json.dumps(recorded["definition"]))
    crd.default(definition)
    crd.remember_storage_version(definition)
    found = {(each.field, each.message, each.reason) for each in crd.check(definition)}
    assert found == {tuple(cause) for cause in recorded["causes"]}
