"""Checks a ClusterConfig of k0s by the fields, types and values that k0s knows (clusterconfig.json). Pure.

k0s does not start with a field that it does not know. A later k0s may know more fields than the file, so that one is
refused only if a known one comes near.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping
from importlib import resources
from typing import Any

import orjson

from homeport.machinery.schema.near import near_field
from homeport.machinery.schema.typename import is_type, shown_type, wanted_types

Json = Mapping[str, Any]
Problem = tuple[str, str]  # path below spec, what is wrong


@functools.cache
def schema() -> dict[str, Any]:
    """Of `spec`."""
    found: dict[str, Any] = orjson.loads(
        resources.files("homeport.capi.k0s").joinpath("clusterconfig.json").read_bytes()
    )
    return found


def problems(spec: Any) -> Iterator[Problem]:
    yield from _problems(schema(), spec, "")


def _problems(part: Json, value: Any, path: str) -> Iterator[Problem]:
    if value is None:
        return
    names = wanted_types(part)
    if names and not any(is_type(name, value) for name in names):
        yield path, f"must be {' or '.join(map(shown_type, names))}"
        return
    if "enum" in part and value not in part["enum"]:
        yield path, f"must be one of {', '.join(part['enum'])}"
    if isinstance(value, int) and not isinstance(value, bool):
        low, high = part.get("minimum", value), part.get("maximum", value)
        if not low <= value <= high:
            yield path, f"{value} is not between {low} and {high}"
    if isinstance(value, list):
        for number, item in enumerate(value):
            yield from _problems(part.get("items") or {}, item, f"{path}[{number}]")
    if isinstance(value, dict):
        yield from _fields(part, value, path)


def _fields(part: Json, value: dict[str, Any], path: str) -> Iterator[Problem]:
    known, rest = part.get("properties"), part.get("additionalProperties") or {}
    for name, below in value.items():
        at = f"{path}.{name}"
        if known and name in known:
            yield from _problems(known[name], below, at)
        elif known and (meant := near_field(part, name)):
            yield at, f'unknown field; did you mean "{meant}"?'
        elif not known:
            yield from _problems(rest, below, at)
