"""Secrets and ConfigMaps that an object refers to, found by the usual spellings of references."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

_KINDS = ("Secret", "ConfigMap")
# Fields that hold a name, or an object with a name. Compared in lower case, without a plural `s`.
_SUFFIXES = {
    "secretref": "Secret",
    "secretreference": "Secret",
    "secretname": "Secret",
    "secretkeyref": "Secret",
    "credentialsref": "Secret",
    "credentialref": "Secret",
    "configmapref": "ConfigMap",
    "configmapname": "ConfigMap",
    "configmapkeyref": "ConfigMap",
}
_WHOLE = {"secret": "Secret", "configmap": "ConfigMap"}


class Reference(NamedTuple):
    kind: str
    namespace: str
    name: str


def references(obj: Mapping[str, Any]) -> set[Reference]:
    """What the spec of an object names. A reference without a namespace is to the namespace of the object."""
    own = str((obj.get("metadata") or {}).get("namespace") or "")
    return set(_walk(obj.get("spec"), own))


def _walk(value: Any, own: str) -> Iterator[Reference]:
    if isinstance(value, Mapping):
        yield from _stated(value, own)
        for field, item in value.items():
            kind = _named(field)
            if kind:
                yield from _read(kind, item, own)
            yield from _walk(item, own)
    elif isinstance(value, list):
        for item in value:
            yield from _walk(item, own)


def _stated(value: Mapping[str, Any], own: str) -> Iterator[Reference]:
    """A reference that says its kind."""
    kind = value.get("kind")
    if kind in _KINDS:
        yield from _read(str(kind), value, own)


def _named(field: str) -> str:
    plain = field.lower()
    if plain in _WHOLE:
        return _WHOLE[plain]
    return next((kind for suffix, kind in _SUFFIXES.items() if plain.endswith(suffix)), "")


def _read(kind: str, item: Any, own: str) -> Iterator[Reference]:
    if isinstance(item, str) and item:
        yield Reference(kind, own, item)
    elif isinstance(item, Mapping) and isinstance(item.get("name"), str) and item.get("kind", kind) == kind:
        yield Reference(kind, str(item.get("namespace") or own), item["name"])
    elif isinstance(item, list):
        for each in item:
            yield from _read(kind, each, own)
