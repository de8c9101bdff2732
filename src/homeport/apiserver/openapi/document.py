"""/openapi/v3, a document per group and version, and /openapi/v2, one document of everything.

Documents are built when first asked for and kept as long as the kinds in them stay the same. What a v3 document is
known by (its hash, in URLs and ETags) comes from the definitions, so the index needs no document to be built.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Final

import orjson

from homeport.apiserver.discovery import JSON, Document, Groups
from homeport.apiserver.kinds.load import definitions, kubernetes_version
from homeport.apiserver.openapi.path import Route, item_v3, models_of, routes
from homeport.apiserver.openapi.schema import (
    V3,
    builtin_v3,
    custom_v3,
    descriptions,
    list_name,
    list_schema,
    model_name,
    references,
)
from homeport.apiserver.openapi.v2 import TOKEN, SwaggerDocument
from homeport.apiserver.resource import Catalog, Json, ServedKind, Version

_PROTO_ACCEPTED: Final = (
    "application/com.github.proto-openapi.spec.v2@v1.0+protobuf",
    "application/com.github.proto-openapi.spec.v2.v1.0+protobuf",
)
_PROTO_SENT: Final = _PROTO_ACCEPTED[1]
_Pairs = list[tuple[ServedKind, Version]]


@cache
def _builtin_digest() -> bytes:
    options = orjson.OPT_SORT_KEYS
    return hashlib.sha512(orjson.dumps([definitions(), descriptions()], option=options)).digest()


class OpenApi:
    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self._built_at = -1
        self._groups = Groups(catalog)
        self._hashes: dict[str, str] = {}
        self._kept: dict[str, Document] = {}  # v3 documents by hash, and v2
        self._swagger = {JSON: SwaggerDocument(proto=False), _PROTO_SENT: SwaggerDocument(proto=True)}
        self._digests: dict[int, tuple[Version, bytes]] = {}  # of custom schemas, by the identity of their Version

    def find(self, path: str, accept: str = "", wanted_hash: str | None = None) -> Document | None:
        """The document at a path; None where there is none. `wanted_hash` is the query parameter `hash`."""
        if not path.startswith("/openapi/"):
            return None
        self._refresh()
        path = path.rstrip("/")
        if path == "/openapi/v2":
            return self._v2(accept)
        if path == "/openapi/v3":
            return self._index()
        name = path.removeprefix("/openapi/v3/")
        digest = self._hashes.get(name)
        if digest is None:
            return None
        if wanted_hash is not None and wanted_hash != digest:
            return Document(b"", etag=digest, vary="Accept", location=f"{path}?hash={digest}")
        document = self._v3(name, digest)
        if wanted_hash is None:
            return document
        return Document(document.body, JSON, digest, "public, immutable", "Accept")

    def paths(self) -> list[str]:
        self._refresh()
        return ["/openapi/v2", "/openapi/v3", *(f"/openapi/v3/{name}" for name in self._hashes)]

    def _refresh(self) -> None:
        if self._built_at == self._catalog.changed:
            return
        self._built_at = self._catalog.changed
        self._groups = Groups(self._catalog)
        self._hashes = {
            f"apis/{group}/{version}" if group else f"api/{version}": self._hash(group, version, pairs)
            for group, versions in self._groups.versions.items()
            for version, pairs in versions.items()
        }
        current = set(self._hashes.values())
        self._kept = {key: document for key, document in self._kept.items() if key in current}
        served = {
            id(served_version)
            for versions in self._groups.versions.values()
            for found in versions.values()
            for _, served_version in found
        }
        self._digests = {key: value for key, value in self._digests.items() if key in served}

    def _hash(self, group: str, version: str, pairs: _Pairs) -> str:
        found = hashlib.sha512(f"{kubernetes_version()} {group}/{version}".encode())
        if any(not served.custom for served, _ in pairs):
            found.update(_builtin_digest())
        for served, served_version in pairs:
            facts = [
                served.plural,
                served.kind,
                served.namespaced,
                list(served.verbs),
                served_version.status,
                served_version.scale is not None,
            ]
            found.update(
                orjson.dumps([*facts, served.list_kind, list(served_version.selectable), dict(served.subresources)])
            )
            if served.custom:
                found.update(self._digest(served_version))
        return found.hexdigest().upper()

    def _digest(self, version: Version) -> bytes:
        known = self._digests.get(id(version))
        if known is None:
            known = self._digests[id(version)] = (version, hashlib.sha512(orjson.dumps(version.raw_schema)).digest())
        return known[1]

    def _index(self) -> Document:
        paths = {
            name: {"serverRelativeURL": f"/openapi/v3/{name}?hash={digest}"}
            for name, digest in sorted(self._hashes.items())
        }
        return Document(orjson.dumps({"paths": paths}))

    def _v3(self, name: str, digest: str) -> Document:
        kept = self._kept.get(digest)
        if kept is None:
            group, _, version = name.rpartition("/")
            pairs = self._groups.versions[group.partition("/")[2]][version]
            kept = Document(orjson.dumps(_document_v3(pairs)), JSON, digest, vary="Accept")
            self._kept[digest] = kept
        return kept

    def _v2(self, accept: str) -> Document:
        form = _PROTO_SENT if any(kind in accept for kind in _PROTO_ACCEPTED) else JSON
        kept = self._kept.get(form)
        if kept is None:
            every = [
                pair for versions in self._groups.versions.values() for pairs in versions.values() for pair in pairs
            ]
            # One hash for both forms: it names what they say.
            etag = hashlib.sha512("".join(sorted(self._hashes.values())).encode()).hexdigest().upper()
            kept = self._kept[form] = Document(self._swagger[form].render(every), form, etag, vary="Accept")
        return kept


def _all_routes(pairs: Iterable[tuple[ServedKind, Version]]) -> list[Route]:
    return sorted(
        (route for served, version in pairs for route in routes(served, version)), key=lambda route: route.path
    )


def _own_models(pairs: _Pairs) -> dict[str, Json]:
    """Schemas that no definition holds: custom kinds, and all lists."""
    found: dict[str, Json] = {}
    for served, version in pairs:
        if served.custom:
            found[model_name(served, version)] = custom_v3(served, version)
        if "list" in served.verbs:
            found[list_name(served, version)] = list_schema(served, version, V3)
    return found


def _closed(found: dict[str, Json], wanted: Iterable[str]) -> dict[str, Json]:
    """The schemas with every built-in definition that they need, sorted."""
    known: Mapping[str, object] = definitions()
    waiting = [*wanted, *(name for schema in found.values() for name in references(schema))]
    while waiting:
        name = waiting.pop()
        if name not in found and name in known:
            found[name] = builtin_v3(name)
            waiting.extend(references(found[name]))
    return dict(sorted(found.items()))


def _document_v3(pairs: _Pairs) -> Json:
    found = _all_routes(pairs)
    wanted = [name for route in found for name in models_of(route)] + [model_name(*pair) for pair in pairs]
    return {
        "openapi": "3.0.0",
        "info": {"title": "Kubernetes", "version": kubernetes_version()},
        "paths": {route.path: item_v3(route) for route in found},
        "components": {
            "schemas": _closed(_own_models(pairs), wanted),
            "securitySchemes": {"BearerToken": TOKEN},
        },
    }
