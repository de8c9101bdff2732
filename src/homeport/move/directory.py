"""A directory as the source or the target of a move: one file per object, readable by its owner alone."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import orjson

from homeport.api.clusterctl.v1alpha3 import Provider
from homeport.api.meta import Resource, Unstructured
from homeport.apiserver.auth.file import make_private_dir, sync_dir, write_private
from homeport.client.errors import BadRequest, already_exists, conflict, not_found
from homeport.client.protocol import ALL, DEFAULT_WRITE, Key, MergePatch, Page, Patch, Query, Write
from homeport.machinery.patch import merge_patch
from homeport.move.errors import MoveRefused
from homeport.move.kind import is_moved
from homeport.move.side import DEFINITION, NAMESPACE, Side, listed

_ITSELF = Key("", "kube-system")  # the namespace by whose UID planes are told apart
_PROVIDER = Provider.__resource__
_FRAME = (DEFINITION, NAMESPACE, _PROVIDER)  # what describes the objects; it is not moved itself


class Directory:
    """A Side. Nothing acts on the objects: they are only kept."""

    def __init__(self, path: Path) -> None:
        self._path = path

    # -- its life ------------------------------------------------------------------------------------------------

    async def prepare(self, source: Side) -> None:
        """Makes it a target: writes down the kinds and providers of the source."""
        if not self._is_ours() and any(self._path.iterdir()):
            raise MoveRefused([f"{self._path} is not empty: name an empty directory"])
        make_private_dir(self._path)
        if not self._is_ours():
            await self.create({"metadata": {"name": _ITSELF.name}}, kind=NAMESPACE)
        for definition in await listed(source, DEFINITION):
            if is_moved(definition):
                self._keep(DEFINITION, _reduced(definition))
        for provider in await listed(source, _PROVIDER):
            self._keep(_PROVIDER, provider)

    def check_source(self) -> None:
        if not self._is_ours():
            raise MoveRefused([f"{self._path} contains no objects of a move: name the directory that --to was given"])

    def clear(self) -> None:
        """Removes what describes the objects, after the last one has left."""
        frame = [file for kind in _FRAME for file in self._path.glob(f"{_prefix(kind)}_*.json")]
        if set(self._path.glob("*.json")) == set(frame):
            itself = self._file(NAMESPACE, _ITSELF)
            for file in sorted(frame, key=lambda each: each == itself):
                file.unlink()
            sync_dir(self._path)

    def _is_ours(self) -> bool:
        return self._file(NAMESPACE, _ITSELF).exists()

    # -- a Side --------------------------------------------------------------------------------------------------

    async def get(self, kind: Resource, key: Key, /) -> Unstructured:
        return self._read(kind, key)

    async def list(self, kind: Resource, query: Query = ALL, /) -> Page[Unstructured]:
        files = sorted(self._path.glob(f"{_prefix(kind)}_*.json"))
        found = [Unstructured(orjson.loads(file.read_bytes())) for file in files]
        return Page([each for each in found if query.namespace in ("", each.namespace)], "1")

    async def create(
        self, obj: Mapping[str, Any], options: Write = DEFAULT_WRITE, /, *, kind: Resource
    ) -> Unstructured:
        del options
        key = _key(obj)
        if self._file(kind, key).exists():
            raise already_exists(kind.group, kind.plural, key.name)
        meta = {**obj["metadata"], "uid": str(uuid.uuid4()), "generation": 1}
        return self._store(kind, key, {**obj, "metadata": meta})

    async def replace(
        self, obj: Mapping[str, Any], options: Write = DEFAULT_WRITE, /, *, kind: Resource
    ) -> Unstructured:
        del options
        known = self._read(kind, _key(obj))
        if obj["metadata"].get("resourceVersion") != known.resource_version:
            raise conflict(kind.group, kind.plural, known.name, "the object has been modified")
        status = {"status": known["status"]} if "status" in known else {}
        return self._store(kind, _key(obj), {**obj, **status})

    async def patch(
        self, kind: Resource, key: Key, patch: Patch, options: Write = DEFAULT_WRITE, /, *, subresource: str = ""
    ) -> Unstructured:
        del options, subresource  # whoever writes here writes one part at a time
        if not isinstance(patch, MergePatch):
            raise BadRequest("a directory takes merge patches alone")
        known = self._read(kind, key)
        self._check_uid(kind, known, (patch.body.get("metadata") or {}).get("uid") or "")
        return self._store(kind, key, merge_patch(known, patch.body))

    async def delete(self, kind: Resource, key: Key, /, *, uid: str = "") -> Unstructured:
        known = self._read(kind, key)
        self._check_uid(kind, known, uid)
        self._file(kind, key).unlink()
        sync_dir(self._path)
        return known

    # -- files ---------------------------------------------------------------------------------------------------

    def _file(self, kind: Resource, key: Key) -> Path:
        return self._path / f"{_prefix(kind)}_{key.namespace}_{key.name}.json"

    def _read(self, kind: Resource, key: Key) -> Unstructured:
        try:
            return Unstructured(orjson.loads(self._file(kind, key).read_bytes()))
        except FileNotFoundError:
            raise not_found(kind.group, kind.plural, key.name) from None

    def _store(self, kind: Resource, key: Key, obj: Mapping[str, Any]) -> Unstructured:
        meta = {**obj["metadata"], "resourceVersion": uuid.uuid4().hex}
        body = {**obj, **kind.type_meta, "metadata": meta}
        write_private(self._file(kind, key), orjson.dumps(body, option=orjson.OPT_INDENT_2))
        return Unstructured(body)

    def _keep(self, kind: Resource, obj: Mapping[str, Any]) -> None:
        self._store(kind, _key(obj), obj)

    @staticmethod
    def _check_uid(kind: Resource, known: Unstructured, uid: str) -> None:
        if uid and uid != known.uid:
            raise conflict(kind.group, kind.plural, known.name, f"its UID is {known.uid}, not {uid}")


def _prefix(kind: Resource) -> str:
    return f"{kind.kind}.{kind.group}" if kind.group else kind.kind


def _key(obj: Mapping[str, Any]) -> Key:
    meta = obj["metadata"]
    return Key(meta.get("namespace") or "", meta["name"])


def _reduced(definition: Mapping[str, Any]) -> dict[str, Any]:
    """With the stored version alone, without its schema: a directory does not convert and does not validate."""
    spec, meta = definition["spec"], definition["metadata"]
    versions: Iterable[dict[str, Any]] = (each for each in spec["versions"] if each.get("storage"))
    kept = [
        {**{n: v for n, v in each.items() if n == "subresources"}, **_SERVED, "name": each["name"]} for each in versions
    ]
    return {
        "metadata": {"name": meta["name"], "labels": meta.get("labels") or {}},
        "spec": {**{n: spec[n] for n in ("group", "names", "scope")}, "versions": kept},
    }


_SERVED = {"served": True, "storage": True}
