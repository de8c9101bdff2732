"""The kinds of Steward accept every field of upstream's, with the same types, defaults and choices.

`steward_fields.json` is the record of upstream's: paths, types, defaults, columns. No text of it is in the project.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from homeport.hosted.definition import definitions
from homeport.hosted.flavour import FLAVOURS, KAMAJI, STEWARD
from homeport.machinery.crd.check import check

UPSTREAM: dict[str, Any] = json.loads((Path(__file__).parent / "steward_fields.json").read_text())
OURS = {crd["metadata"]["name"]: crd for crd in definitions(STEWARD)}
ALL = [crd for flavour in FLAVOURS for crd in definitions(flavour)]


def find(schema: dict[str, Any], path: str) -> dict[str, Any] | None:
    """The schema of a field; {} where anything is accepted."""
    for step in path.split("."):
        if schema.get("x-kubernetes-preserve-unknown-fields") and "properties" not in schema:
            return {}
        name, *lists = step.split("[]")
        found = (schema.get("properties") or {}).get(name)
        if found is None:
            return None
        for _ in lists:
            found = found.get("items", {})
        schema = found
    return schema


@pytest.mark.parametrize("name", UPSTREAM)
def test_every_field_of_upstream_is_accepted_with_its_type_default_and_choices(name: str) -> None:
    schema = OURS[name]["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    wrong = []
    for path, fact in UPSTREAM[name]["fields"].items():
        found = find(schema, path)
        if found is None:
            wrong.append(f"{path} is missing")
        elif (
            found
            and "type" in fact
            and found.get("type") != fact["type"]
            and not found.get("x-kubernetes-preserve-unknown-fields")
        ):
            wrong.append(f"{path} has type {found.get('type')}, upstream {fact['type']}")
        elif found:
            wrong += [
                f"{path}: {each} is {found.get(each)!r}, upstream {fact[each]!r}"
                for each in ("default", "enum")
                if each in fact and path.startswith("spec") and found.get(each) != fact[each]
            ]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("name", UPSTREAM)
def test_names_columns_and_scale_are_those_of_upstream(name: str) -> None:
    spec, known = OURS[name]["spec"], UPSTREAM[name]
    version = spec["versions"][0]
    assert spec["scope"] == known["scope"]
    assert spec["names"].get("shortNames", []) == known["shortNames"]
    columns = [[each["name"], each["jsonPath"]] for each in version["additionalPrinterColumns"]]
    assert [each for each in known["columns"] if each not in columns] == []
    assert (version.get("subresources") or {}).get("scale") == known["scale"]


@pytest.mark.parametrize("crd", ALL, ids=[crd["metadata"]["name"] for crd in ALL])
def test_a_definition_is_sound(crd: dict[str, Any]) -> None:
    crd["status"] = {"conditions": [], "acceptedNames": {"plural": "", "kind": ""}, "storedVersions": ["v1alpha1"]}
    crd["spec"].setdefault("conversion", {"strategy": "None"})
    assert check(crd) == []


def test_kamaji_has_the_same_fields_and_no_short_name_that_would_be_ambiguous() -> None:
    for ours, theirs in zip(definitions(STEWARD), definitions(KAMAJI), strict=True):
        assert "tcp" not in theirs["spec"]["names"].get("shortNames", ())
        fields = [
            each["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]
            for each in (ours, theirs)
        ]
        assert fields[0] == fields[1]
