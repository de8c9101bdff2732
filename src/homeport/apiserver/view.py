"""Stored bytes as a reader sees them: in the asked version, with labels and selectable fields at hand.

Most reads give the stored bytes verbatim. What had to be decoded or converted once is kept in the record's memo, which
lives and dies with that revision of the object.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

import msgspec
import orjson

from homeport.apiserver.resource import Json, ServedKind, Version
from homeport.client.errors import BadRequest
from homeport.machinery.jsonpath import compile_path
from homeport.machinery.selector import FieldSelector, LabelSelector, SelectorError, parse_fields, parse_labels
from homeport.store import Record


class _Meta(msgspec.Struct):
    labels: dict[str, str] | None = None


class _Peek(msgspec.Struct):
    metadata: _Meta


_PEEK = msgspec.json.Decoder(_Peek)
_NONE: Mapping[str, str] = {}
_NO_VIEWS: Mapping[str, tuple[Version, bytes]] = {}


class Memo:
    __slots__ = ("fields", "labels", "normal", "views")

    def __init__(self, normal: Version | None = None) -> None:
        self.normal = normal  # the version in which the stored bytes are served as they are
        self.labels: Mapping[str, str] | None = None
        self.fields: Mapping[str, str] | None = None
        # Others, by name: the Version (a redefinition makes a new one) and the bytes in it.
        self.views: Mapping[str, tuple[Version, bytes]] = _NO_VIEWS


def memo_of(record: Record) -> Memo:
    if record.memo is None:
        record.memo = Memo()
    return cast(Memo, record.memo)


def shrink_memo(record: Record) -> None:
    """Of an object that has not changed for a while: what is left is cheap to keep, the rest is made again if asked."""
    normal = record.memo.normal if isinstance(record.memo, Memo) else None
    record.memo = None if normal is None else Memo(normal)


def labels_of(record: Record) -> Mapping[str, str]:
    memo = memo_of(record)
    if memo.labels is None:
        memo.labels = _PEEK.decode(record.value).metadata.labels or _NONE
    return memo.labels


def fields_of(record: Record, served: ServedKind) -> Mapping[str, str]:
    memo = memo_of(record)
    if memo.fields is None:
        memo.fields = selectable_fields(orjson.loads(record.value), served)
    return memo.fields


def selectable_fields(obj: Json, served: ServedKind) -> Mapping[str, str]:
    meta = obj["metadata"]
    fields = {"metadata.name": meta.get("name", ""), "metadata.namespace": meta.get("namespace", "")}
    fields.update(served.strategy.fields(obj))
    for path in _storage_version(served).selectable:
        found = compile_path(path)(obj)
        fields[path.removeprefix(".")] = _text(found[0]) if found else ""
    return fields


def _storage_version(served: ServedKind) -> Version:
    return served.versions.get(served.storage) or next(iter(served.versions.values()))


def _text(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


class Selection:
    """A label and a field selector, parsed and checked for one kind. `all` when neither restricts anything."""

    __slots__ = ("_fields", "_labels", "_served", "all", "name")

    def __init__(self, served: ServedKind, version: Version, labels: str, fields: str) -> None:
        self._served = served
        try:
            self._labels: LabelSelector | None = parse_labels(labels) if labels else None
            self._fields: FieldSelector | None = parse_fields(fields) if fields else None
        except SelectorError as error:
            raise BadRequest(str(error)) from error
        if self._labels is not None and self._labels.empty:
            self._labels = None
        self.name: str | None = None
        if self._fields is not None:
            self._check_fields(version)
        self.all = self._labels is None and self._fields is None

    def _check_fields(self, version: Version) -> None:
        assert self._fields is not None
        names = self._fields.names()
        known = {"metadata.name", "metadata.namespace"} | {p.removeprefix(".") for p in version.selectable}
        unknown = names - known - set(self._served.field_names)
        if unknown:
            raise BadRequest(self._unsupported(sorted(unknown)[0]))
        self.name = self._fields.require("metadata.name")

    def _unsupported(self, name: str) -> str:
        """The API server words this in as many ways as there are places that check."""
        if not self._served.custom and not self._served.field_names:
            return f'"{name}" is not a known field selector: only "metadata.name", "metadata.namespace"'
        if self._served.group == "batch":
            return f'field label "{name}" not supported for {self._served.kind}'
        return f"field label not supported: {name}"

    def matches(self, record: Record) -> bool:
        if self._labels is not None and not self._labels.matches(labels_of(record)):
            return False
        if self._fields is None:
            return True
        return self._fields.matches(fields_of(record, self._served))


async def view(record: Record, served: ServedKind, version: Version) -> bytes:
    """The object's bytes in version `at`."""
    known = peek_view(record, served, version)
    return known if known is not None else (await views([record], served, version))[0]


def peek_view(record: Record, served: ServedKind, version: Version) -> bytes | None:
    """The bytes if they are at hand without work."""
    if not served.custom and version.resource.version == served.storage:
        return record.value
    memo = memo_of(record)
    if memo.normal is version:
        return record.value
    known = memo.views.get(version.resource.version)
    return known[1] if known is not None and known[0] is version else None


async def views(records: Sequence[Record], served: ServedKind, version: Version) -> list[bytes]:
    """Many at once: a conversion webhook is asked once for all."""
    result: list[bytes | None] = [peek_view(record, served, version) for record in records]
    todo = [i for i, known in enumerate(result) if known is None]
    if todo:
        objects = [orjson.loads(records[i].value) for i in todo]
        for i, obj in zip(todo, await convert(objects, served, version), strict=True):
            result[i] = _remember(records[i], version, orjson.dumps(obj))
    return cast(list[bytes], result)


def _remember(record: Record, version: Version, value: bytes) -> bytes:
    if value == record.value:  # most are stored as they are served: one copy is enough
        memo_of(record).normal = version
        return record.value
    value = bytes(memoryview(value))  # without the unused part of the encoder's buffer
    memo = memo_of(record)
    memo.views = {**memo.views, version.resource.version: (version, value)}
    return value


async def convert(objects: list[Json], served: ServedKind, version: Version) -> list[Json]:
    """Stored objects in version `at`, pruned and defaulted by its schema as a decode does."""
    target = version.resource.version
    if any(obj.get("apiVersion") != version.resource.api_version for obj in objects):
        objects = await to_version(objects, served, target, version.resource.api_version)
    if served.custom:
        for obj in objects:
            version.checker.settle(obj)
    return objects


async def to_version(objects: list[Json], served: ServedKind, version: str, api_version: str) -> list[Json]:
    if served.convert_async is not None:
        return await served.convert_async(objects, version)
    if served.convert is not None:
        return [served.convert(obj, version) for obj in objects]
    for obj in objects:
        obj["apiVersion"] = api_version
    return objects
