"""/openapi/v2: one document of everything, put together from a part per kind and version.

With a hundred custom kinds it is several megabytes. Parts are encoded once, so a change of one kind costs one part.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from typing import Final

import orjson

from homeport.apiserver.kinds.load import definitions, kubernetes_version
from homeport.apiserver.openapi.path import item_v2, models_of, routes
from homeport.apiserver.openapi.proto import encode_document, encode_path_item, encode_schema
from homeport.apiserver.openapi.schema import V2, builtin_v2, custom_v2, list_name, list_schema, model_name, references
from homeport.apiserver.resource import Json, ServedKind, Version

TOKEN: Final = {"type": "apiKey", "description": "Bearer Token authentication", "name": "authorization", "in": "header"}
_Encoded = dict[str, bytes]


@dataclass(frozen=True, slots=True)
class _Part:
    """The paths and own definitions of one kind in one version, encoded, and the built-in definitions they need."""

    version: Version
    paths: _Encoded
    models: _Encoded
    needed: frozenset[str]


class SwaggerDocument:
    """`proto`: in protobuf instead of JSON."""

    def __init__(self, *, proto: bool) -> None:
        self._proto = proto
        self._parts: dict[int, _Part] = {}  # by the identity of the Version, which the part keeps alive

    def render(self, pairs: Iterable[tuple[ServedKind, Version]]) -> bytes:
        parts = {
            id(version): self._parts.get(id(version)) or self._encode(served, version) for served, version in pairs
        }
        self._parts = parts
        models = {name: found for part in parts.values() for name, found in part.models.items()}
        builtin = _proto_definition if self._proto else _json_definition
        for name in _joined(part.needed for part in parts.values()) - models.keys():
            models[name] = builtin(name)
        paths = {path: found for part in parts.values() for path, found in part.paths.items()}
        head: Json = {"swagger": "2.0", "info": {"title": "Kubernetes", "version": kubernetes_version()}}
        foot: Json = {"securityDefinitions": {"BearerToken": TOKEN}, "security": [{"BearerToken": []}]}
        if self._proto:
            return encode_document({**head, **foot}, dict(sorted(paths.items())), dict(sorted(models.items())))
        body = {"paths": _fragments(paths), "definitions": _fragments(models)}
        return orjson.dumps({**head, **body, **foot})

    def _encode(self, served: ServedKind, version: Version) -> _Part:
        found = list(routes(served, version))
        items = {route.path: item_v2(route) for route in found}
        models: dict[str, Json] = {}
        if served.custom:
            models[model_name(served, version)] = custom_v2(served, version)
        if "list" in served.verbs:
            models[list_name(served, version)] = list_schema(served, version, V2)
        wanted = {model_name(served, version), *(name for route in found for name in models_of(route))}
        wanted.update(name for model in models.values() for name in references(model))
        needed = _joined(_closure(name) for name in wanted if name in definitions())
        if self._proto:
            return _Part(version, _each(items, encode_path_item), _each(models, encode_schema), needed)
        return _Part(version, _each(items, orjson.dumps), _each(models, orjson.dumps), needed)


def _each(found: dict[str, Json], encode: Callable[[Json], bytes]) -> _Encoded:
    return {name: encode(value) for name, value in found.items()}


def _joined(sets: Iterable[frozenset[str]]) -> frozenset[str]:
    return frozenset(name for found in sets for name in found)


def _fragments(found: _Encoded) -> dict[str, orjson.Fragment]:
    return {name: orjson.Fragment(found[name]) for name in sorted(found)}


@cache
def _closure(name: str) -> frozenset[str]:
    """A built-in definition and all that it leads to."""
    seen: set[str] = set()
    waiting = [name]
    while waiting:
        found = waiting.pop()
        if found not in seen and found in definitions():
            seen.add(found)
            waiting.extend(references(builtin_v2(found)))
    return frozenset(seen)


@cache
def _json_definition(name: str) -> bytes:
    return orjson.dumps(builtin_v2(name))


@cache
def _proto_definition(name: str) -> bytes:
    return encode_schema(builtin_v2(name))
