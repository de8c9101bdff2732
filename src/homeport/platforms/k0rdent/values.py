"""Checks values against the JSON schema of a template, and names what the user may have meant. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from homeport.machinery.schema.near import near_field
from homeport.machinery.schema.typename import TYPES, is_type, shown_type, wanted_types


@dataclass(frozen=True, slots=True)
class Fault:
    field: str
    message: str


def faults(schema: Mapping[str, Any], value: Any, path: str) -> Iterator[Fault]:
    """Everything that is wrong. null counts as not set, as in Helm."""
    if value is None:
        return
    if options := schema.get("anyOf"):
        yield from _any(options, value, path)
        return
    if not _has_type(schema, value):
        yield Fault(path, f"must be {_expected(schema)}, not {_shown(value)}")
        return
    yield from _limits(schema, value, path)
    if isinstance(value, dict):
        yield from _fields(schema, value, path)
    elif isinstance(value, list):
        for number, item in enumerate(value):
            yield from faults(schema.get("items") or {}, item, f"{path}[{number}]")


def _any(options: list[Mapping[str, Any]], value: Any, path: str) -> Iterator[Fault]:
    """The shape that has the value's type is the one that is meant."""
    shapes = list(_shapes(options))
    for shape in shapes:
        if _has_type(shape, value):
            yield from faults(shape, value, path)
            return
    yield Fault(path, f"must be {' or '.join(map(_expected, shapes))}, not {_shown(value)}")


def _shapes(options: Iterable[Mapping[str, Any]]) -> Iterator[Mapping[str, Any]]:
    for option in options:
        if "anyOf" in option:
            yield from _shapes(option["anyOf"])
        else:
            yield option


def _has_type(schema: Mapping[str, Any], value: Any) -> bool:
    names = wanted_types(schema)
    whole = isinstance(value, float) and value.is_integer()
    return not names or any(is_type(name, value) or (name == "integer" and whole) for name in names)


def _expected(schema: Mapping[str, Any]) -> str:
    return " or ".join(map(shown_type, wanted_types(schema)))


def _shown(value: Any) -> str:
    """Values are not repeated: one may be a password that stands in the wrong place."""
    name = next((name for name, kinds in TYPES.items() if type(value) in kinds), "")
    if not name:
        return "this"
    return "a number" if name == "integer" else shown_type(name)


def _limits(schema: Mapping[str, Any], value: Any, path: str) -> Iterator[Fault]:
    if "enum" in schema and value not in schema["enum"]:
        yield Fault(path, f"must be one of {', '.join(map(repr, schema['enum']))}")
    if isinstance(value, str):
        if len(value) < schema.get("minLength", 0):
            yield Fault(path, "must not be empty")
        if (pattern := schema.get("pattern")) and not re.search(pattern, value):
            yield Fault(path, f"must match {pattern}")
    elif isinstance(value, int | float) and not isinstance(value, bool):
        if value < schema.get("minimum", value):
            yield Fault(path, f"{value}: must be at least {schema['minimum']}")
        if value > schema.get("maximum", value):
            yield Fault(path, f"{value}: must be at most {schema['maximum']}")


def _fields(schema: Mapping[str, Any], value: dict[str, Any], path: str) -> Iterator[Fault]:
    known, rest = schema.get("properties") or {}, schema.get("additionalProperties", True)
    for name, part in value.items():
        if name in known:
            yield from faults(known[name], part, f"{path}.{name}")
        elif isinstance(rest, Mapping):
            yield from faults(rest, part, f"{path}.{name}")
        elif rest is False:
            meant = near_field(schema, name)
            text = f'; did you mean "{meant}"?' if meant else f"; known fields: {', '.join(sorted(known))}"
            yield Fault(f"{path}.{name}", f"unknown field{text}")
    for name in schema.get("required") or ():
        if name not in value:
            yield Fault(f"{path}.{name}", "is required")
