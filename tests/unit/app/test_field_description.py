"""Every field of every kind that we define is described, for `kubectl explain`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest

from homeport.api import description

# As the program installs them, with every version; config/crds is made from the same types.
PACKED = Path(__file__).resolve().parents[3] / "src/homeport/app/definitions.json"
DEFINITIONS = [crd for component in orjson.loads(PACKED.read_bytes()).values() for crd in component]
# Words of a style that `docs` and fields alike have left behind.
AVOIDED = (" shall ", " by and by", "nobody", " is no ", " anew")


def fields(schema: dict[str, Any], path: str = "") -> Iterator[tuple[str, str]]:
    """Every field below, with its description. A field of `items` is named after its list."""
    for name, part in (schema.get("properties") or {}).items():
        if path or name != "metadata":  # of a whole object it may say nothing: the server describes it
            yield f"{path}.{name}", str(part.get("description") or "")
        yield from fields(part, f"{path}.{name}")
    for below, mark in (("items", "[]"), ("additionalProperties", "{}")):
        if isinstance(schema.get(below), dict):
            yield from fields(schema[below], path + mark)


def wrong(text: str) -> str:
    """What is wrong with a description; '' if it is a sentence that says something."""
    if not text:
        return "is missing"
    if len(text.split()) < 4 or len(text) < 18:
        return f"says too little: {text!r}"
    if not text[0].isupper() and not text.startswith("etcd"):
        return f"is no sentence: {text!r}"
    if not text.endswith((".", ".]")):
        return f"does not end: {text!r}"
    return next((f"has {each!r}: {text!r}" for each in AVOIDED if each in f" {text} "), "")


@pytest.mark.parametrize("crd", DEFINITIONS, ids=lambda crd: crd["metadata"]["name"])
def test_every_field_says_what_to_write(crd: dict[str, Any]) -> None:
    for version in crd["spec"]["versions"]:
        schema = version["schema"]["openAPIV3Schema"]
        found = {"": schema.get("description", ""), **dict(fields(schema))}
        assert len(found) > 3
        faults = {f"{version['name']}{path}": fault for path, text in found.items() if (fault := wrong(text))}
        assert faults == {}


def test_all_kinds_are_looked_at() -> None:
    assert len(DEFINITIONS) >= 28
    assert sum(len(each["spec"]["versions"]) for each in DEFINITIONS) >= 46


def test_the_walk_finds_fields_that_say_nothing() -> None:
    inner = {"type": "object", "properties": {"name": {"type": "string", "description": "Name."}}}
    schema = {
        "properties": {
            "metadata": {"type": "object"},
            "spec": {"description": "What to make of it.", "properties": {"list": {"items": inner}}},
            "map": {"description": "Maps names to values.", "additionalProperties": inner},
        }
    }
    faults = [path for path, text in fields(schema) if wrong(text)]
    assert faults == [".spec.list", ".spec.list[].name", ".map{}.name"]


def test_a_group_may_mean_something_of_its_own() -> None:
    cluster = description.describe("homeport.api.cluster.v1beta2.machine", "MachineSpec", "failureDomain")
    nutanix = description.describe("homeport.api.nutanix.v1beta1", "MachineSpec", "image")
    assert "Machine" in cluster
    assert "{type: name, name: NAME}" in nutanix
    assert (
        description.describe("homeport.api.nutanix.v1beta1", "MachineSpec", "nosuch", "Its own type.")
        == "Its own type."
    )
