"""Other forms of objects: the Table that `kubectl get` prints, and objects reduced to their metadata."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any

import msgspec
import orjson

from homeport.apiserver.kinds.age import age
from homeport.apiserver.kinds.printer.row import printer_for
from homeport.apiserver.resource import Column, Json, ServedKind, Version
from homeport.client.errors import BadRequest


def _of_metadata(name: str, kind: str, form: str, text: str, field: str) -> Column:
    return Column(name, kind, form, 0, text, lambda obj: (obj.get("metadata") or {}).get(field))


_NAME = _of_metadata("Name", "string", "name", "Name must be unique within a namespace.", "name")
_AGE = _of_metadata("Age", "date", "", "How long ago the object was created.", "creationTimestamp")
Reader = Callable[[Json, datetime], list[Any]]


class _Peek(msgspec.Struct):
    metadata: msgspec.Raw


_PEEK = msgspec.json.Decoder(_Peek)


def metadata_bytes(obj: bytes) -> bytes:
    """The object's metadata as it stands, without decoding the rest."""
    return bytes(_PEEK.decode(obj).metadata)


def partial_metadata(obj: bytes, version: str = "v1") -> bytes:
    """A PartialObjectMetadata."""
    return b'{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/%s","metadata":%s}' % (
        version.encode(),
        metadata_bytes(obj),
    )


def partial_metadata_list(objects: Sequence[bytes], list_meta: Json, version: str = "v1") -> bytes:
    """A PartialObjectMetadataList."""
    items = b",".join([partial_metadata(obj, version) for obj in objects])
    return b'{"kind":"PartialObjectMetadataList","apiVersion":"meta.k8s.io/%s","metadata":%s,"items":[%s]}' % (
        version.encode(),
        orjson.dumps(list_meta),
        items,
    )


class TableForm:
    """Makes Tables of one kind. `include` is None, Metadata or Object: what stands behind each row."""

    def __init__(self, served: ServedKind, served_version: Version, include: str = "", version: str = "v1") -> None:
        if include not in ("", "None", "Metadata", "Object"):
            raise BadRequest(f'includeObject "{include}" is not known: use None, Metadata or Object')
        self._include = include or "Metadata"
        self._version = version
        self._columns, self._read = _layout(served, served_version)

    def render(self, objects: Sequence[bytes], list_meta: Json, *, header: bool = True) -> bytes:
        """The Table of some objects; later ones of a watch leave the header out."""
        now = datetime.now(UTC)
        columns = _definitions(self._columns) if header else b"null"
        rows = b",".join([self._row(obj, now) for obj in objects])
        return b'{"kind":"Table","apiVersion":"meta.k8s.io/%s","metadata":%s,"columnDefinitions":%s,"rows":[%s]}' % (
            self._version.encode(),
            orjson.dumps(list_meta),
            columns,
            rows,
        )

    def render_one(self, obj: bytes, *, header: bool = True) -> bytes:
        revision = (orjson.loads(metadata_bytes(obj))).get("resourceVersion", "")
        return self.render([obj], {"resourceVersion": revision} if revision else {}, header=header)

    def _row(self, obj: bytes, now: datetime) -> bytes:
        cells = orjson.dumps(self._read(orjson.loads(obj), now), default=str)
        return b'{"cells":%s,"object":%s}' % (cells, self._behind(obj))

    def _behind(self, obj: bytes) -> bytes:
        if self._include == "None":
            return b"null"
        return obj if self._include == "Object" else partial_metadata(obj, self._version)


def _layout(served: ServedKind, version: Version) -> tuple[tuple[Column, ...], Reader]:
    if not served.custom and not version.columns:
        printer = printer_for(served.group, served.kind)
        return printer.columns, printer.cells
    columns = version.columns or (_AGE,)
    if columns[0].format != "name":
        columns = (_NAME, *columns)
    return columns, lambda obj, now: [_cell(column, column.read(obj), now) for column in columns]


def _definitions(columns: tuple[Column, ...]) -> bytes:
    return orjson.dumps(
        [
            {
                "name": column.name,
                "type": column.type,
                "format": column.format,
                "description": column.description,
                "priority": column.priority,
            }
            for column in columns
        ]
    )


def _cell(column: Column, value: Any, now: datetime) -> Any:
    """The value in the column's type. What does not fit it is left empty."""
    if value is None:
        return None
    match column.type:
        case "date":
            return age(value, now)
        case "string":
            return _text(value)
        case "integer":
            fits = isinstance(value, (int, float)) and not isinstance(value, bool)
            return int(value) if fits else None
        case "number":
            fits = isinstance(value, (int, float)) and not isinstance(value, bool)
            return float(value) if fits else None
        case "boolean":
            return value if isinstance(value, bool) else None
    return None


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (dict, list)):
        return orjson.dumps(value).decode()
    return str(value)
