"""What is allowed in a definition but probably not meant."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from homeport.machinery.schema.format import recognised
from homeport.machinery.schema.violation import quote

Json = dict[str, Any]


def warnings(crd: Json, old: Json | None = None) -> list[str]:
    """Texts for Warning headers; on an update only those that are new."""
    before = set(_unrecognised(old)) if old is not None else set()
    return [f"unrecognized format {quote(each)}" for each in dict.fromkeys(_unrecognised(crd)) if each not in before]


def _unrecognised(crd: Json) -> Iterator[str]:
    for version in (crd.get("spec") or {}).get("versions") or ():
        schema = (version.get("schema") or {}).get("openAPIV3Schema")
        if isinstance(schema, Mapping):
            yield from _formats(schema)


def _formats(s: Mapping[str, Any]) -> Iterator[str]:
    format_ = s.get("format") or ""
    if format_ and not recognised(s.get("type") or "", format_):
        yield format_
    for name in ("items", "additionalProperties", "not"):
        if isinstance(s.get(name), Mapping):
            yield from _formats(s[name])
    for child in (s.get("properties") or {}).values():
        yield from _formats(child)
    for junctor in ("allOf", "anyOf", "oneOf"):
        for each in s.get(junctor) or ():
            yield from _formats(each)
