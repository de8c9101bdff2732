"""Schemas made from types."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar

import msgspec
import pytest

from homeport.api.description import shared
from homeport.api.field import Conditions, Count, IntOrString, LabelSelector, Long, Raw, Time
from homeport.api.meta import Model, Object, resource
from homeport.api.schema import (
    Default,
    Description,
    Enum,
    Format,
    ListType,
    Mark,
    Pattern,
    Preserve,
    Range,
    Required,
    Rule,
    Size,
)
from homeport.machinery.crd.generate import generate


class Inner(Model):
    """A part of it."""

    __schema__: ClassVar[tuple[Mark, ...]] = (Size(1), Rule("self.a != ''", "a is empty"))

    a: Required[str] = ""
    b: bool | None = None


class Spec(Model):
    text: Annotated[str, Size(1, 63), Pattern("^a$")] = ""
    choice: Annotated[str, Enum(("A", "B")), Default("A")] = ""
    count: Count | None = None
    long: Long = 0
    bare: Annotated[int, Format("")] = 0
    ranged: Annotated[int, Range(1, 9)] = 0
    share: IntOrString | None = None
    when: Time | None = None
    raw: Raw = None
    free: Annotated[dict[str, Any], Preserve()] = {}
    tags: dict[str, str] = {}
    ready: bool | None = None
    failed: Annotated[bool, Description("True if it failed.")] = False
    message: Annotated[Inner, Description("What it says.")] = msgspec.field(default_factory=Inner)
    words: Annotated[list[Annotated[str, Size(1)]], Size(None, 3), ListType("set")] = []
    parts: Annotated[list[Inner], ListType("map", ("a",))] = []
    part: Inner = msgspec.field(default_factory=Inner)
    odd_name: str = msgspec.field(default="", name="oddNAME")


class Status(Model):
    conditions: Conditions = []
    selector: LabelSelector = {}


@resource("example.com", "v1", "Widget", "widgets")
class Widget(Object):
    """Something
    to test with."""

    spec: Required[Spec] = msgspec.field(default_factory=Spec)
    status: Status = msgspec.field(default_factory=Status)


SCHEMA = generate(Widget)
SPEC = SCHEMA["properties"]["spec"]["properties"]
INNER = {
    "type": "object",
    "description": "A part of it.",
    "properties": {"a": {"type": "string"}, "b": {"type": "boolean"}},
    "required": ["a"],
    "minProperties": 1,
    "x-kubernetes-validations": [{"rule": "self.a != ''", "message": "a is empty"}],
}

FIELDS: list[tuple[str, Any]] = [
    ("text", {"type": "string", "minLength": 1, "maxLength": 63, "pattern": "^a$"}),
    ("choice", {"type": "string", "enum": ["A", "B"], "default": "A"}),
    ("count", {"type": "integer", "format": "int32", "minimum": 0}),
    ("long", {"type": "integer", "format": "int64"}),
    ("bare", {"type": "integer"}),
    ("ranged", {"type": "integer", "format": "int32", "minimum": 1, "maximum": 9}),
    ("share", {"anyOf": [{"type": "integer"}, {"type": "string"}], "x-kubernetes-int-or-string": True}),
    ("when", {"type": "string", "format": "date-time"}),
    ("raw", {"x-kubernetes-preserve-unknown-fields": True}),
    ("free", {"type": "object", "x-kubernetes-preserve-unknown-fields": True}),
    ("tags", {"type": "object", "additionalProperties": {"type": "string"}}),
    ("ready", {"type": "boolean", "description": shared.FIELDS["ready"]}),
    ("failed", {"type": "boolean", "description": "True if it failed."}),
    ("message", {**INNER, "description": "What it says."}),
    (
        "words",
        {"type": "array", "items": {"type": "string", "minLength": 1}, "maxItems": 3, "x-kubernetes-list-type": "set"},
    ),
    (
        "parts",
        {"type": "array", "items": INNER, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["a"]},
    ),
    ("part", INNER),
    ("oddNAME", {"type": "string"}),
]


@pytest.mark.parametrize(("name", "schema"), FIELDS, ids=[name for name, _ in FIELDS])
def test_a_field_says_what_its_type_and_marks_say(name: str, schema: Any) -> None:
    assert SPEC[name] == schema


def test_a_kind_has_its_docstring_its_metadata_and_what_it_needs() -> None:
    assert SCHEMA["description"] == "Something to test with."
    assert SCHEMA["required"] == ["spec"]
    assert SCHEMA["properties"]["metadata"] == {"type": "object"}
    assert list(SCHEMA["properties"]) == ["apiVersion", "kind", "metadata", "spec", "status"]


def test_conditions_are_merged_by_type_though_we_read_them_as_dicts() -> None:
    conditions = SCHEMA["properties"]["status"]["properties"]["conditions"]
    assert conditions["x-kubernetes-list-map-keys"] == ["type"]
    assert conditions["items"]["required"] == ["lastTransitionTime", "message", "reason", "status", "type"]


def test_a_choice_of_types_is_refused() -> None:
    @resource("example.com", "v1", "Odd", "odds")
    class Odd(Object):
        spec: list[str] | dict[str, str] = []

    with pytest.raises(TypeError, match=r"int \| str alone"):
        generate(Odd)
