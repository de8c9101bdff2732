"""What a structural schema declares to expressions: types, fields, sizes, and how to read raw values."""

from __future__ import annotations

import base64
import binascii
import datetime
import functools
import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from homeport.machinery.cel import types as t
from homeport.machinery.cel.errors import EvaluationError
from homeport.machinery.cel.library import clock
from homeport.machinery.cel.names import escape
from homeport.machinery.cel.types import CelType
from homeport.machinery.cel.values import Duration, MapList, ObjectValue, SetList, Timestamp, Unknown

MAX_REQUEST: Final = 3 * 1024 * 1024
_NAME_LENGTH: Final = 253

Schema = Mapping[str, Any]
Convert = Callable[[Any], Any]


class Declared:
    """One node of a schema.

    A node is `plain` when its raw JSON already is a value of the language. Other nodes are read through
    `convert`, but only where a value leaves the paths that are known while compiling.
    """

    def __init__(self, kind: str, type_: CelType | None, *, max_elements: int = 0, min_size: int = 2) -> None:
        self.kind = kind  # object, map, list, scalar, or unknown when expressions can't reach it
        self.type: CelType = type_ or CelType("struct", "object", declared=self)
        self.max_elements = max_elements
        self.min_size = min_size
        self.plain = True
        self.nullable = False
        self.fields: dict[str, Declared] = {}
        self.raw_names: dict[str, str] = {}
        self.properties: dict[str, Declared] = {}
        self.element: Declared | None = None
        self.convert: Convert = _same

    def property(self, name: str) -> Declared | None:
        return self.properties.get(name)

    def raw_name(self, identifier: str) -> str:
        """The property behind a field, where a reserved word may be written as it is."""
        return self.raw_names.get(identifier) or self.raw_names[f"__{identifier}__"]

    def field(self, identifier: str) -> Declared:
        return self.properties[self.raw_name(identifier)]

    @functools.cached_property
    def as_list(self) -> Declared:
        """An ordinary list of such nodes."""
        made = Declared("list", t.list_of(self.type), max_elements=0)
        made.element, made.plain = self, self.plain
        made.convert = _same if self.plain else _list_converter(self.convert, list)
        return made


def _same(value: Any) -> Any:
    return value


def declare(schema: Schema, *, root: bool = False) -> Declared | None:
    """The declaration of a schema, or None when expressions can't see it."""
    found = _declare(schema, root)
    if found is not None:
        found.nullable = bool(schema.get("nullable"))
    return found


def _declare(schema: Schema, root: bool) -> Declared | None:
    if schema.get("x-kubernetes-int-or-string"):
        length = schema.get("maxLength")
        size = MAX_REQUEST - 2 if length is None else max(length, 0) * 4
        return Declared("scalar", t.DYN, max_elements=size, min_size=1)
    if root:
        schema = with_metadata(schema)
    kind = schema.get("type")
    if kind == "array":
        return _array(schema)
    if kind == "object":
        return _object(schema, root)
    if kind == "string":
        return _string(schema)
    if kind == "boolean":
        return Declared("scalar", t.BOOL, min_size=4)
    if kind == "integer":
        return Declared("scalar", t.INT, min_size=1)
    if kind == "number":
        made = Declared("scalar", t.DOUBLE, min_size=1)
        made.plain, made.convert = False, _double
        return made
    return None


def with_metadata(schema: Schema) -> Schema:
    """A resource: kind, apiVersion and two fields of its metadata are visible whatever the schema says."""
    properties = dict(schema.get("properties") or {})
    known = (properties.get("metadata") or {}).get("properties") or {}
    string = {"type": "string"}
    complete = all((properties.get(name) or {}).get("type") == "string" for name in ("kind", "apiVersion"))
    if complete and all((known.get(name) or {}).get("type") == "string" for name in ("name", "generateName")):
        return schema
    names = {"name": _NAME_LENGTH, "generateName": _NAME_LENGTH - 1}
    metadata = {
        name: string | {"maxLength": min((known.get(name) or {}).get("maxLength", limit), limit)}
        for name, limit in names.items()
    }
    properties |= {"kind": string, "apiVersion": string, "metadata": {"type": "object", "properties": metadata}}
    return {**schema, "properties": properties}


def _array(schema: Schema) -> Declared | None:
    items = schema.get("items")
    if not isinstance(items, Mapping):
        return None
    element = declare(items, root=bool(items.get("x-kubernetes-embedded-resource")))
    if element is None:
        return None
    limit = schema.get("maxItems")
    size = (MAX_REQUEST - 2) // (element.min_size + 1) if limit is None else max(limit, 0)
    made = Declared("list", t.list_of(element.type), max_elements=size)
    made.element = element
    list_type = schema.get("x-kubernetes-list-type")
    made.plain = element.plain and list_type not in ("set", "map")
    if list_type == "set":
        made.convert = _list_converter(element.convert, SetList)
    elif list_type == "map":
        made.convert = _map_list_converter(element.convert, tuple(schema.get("x-kubernetes-list-map-keys") or ()))
    elif not made.plain:
        made.convert = _list_converter(element.convert, list)
    return made


def _list_converter(convert: Convert, make: Callable[[Any], list[Any]]) -> Convert:
    return lambda raw: None if raw is None else make(map(convert, raw))


def _map_list_converter(convert: Convert, keys: tuple[str, ...]) -> Convert:
    def read(raw: Any) -> Any:
        if raw is None:
            return None
        made = MapList(map(convert, raw))
        made.keys = keys
        return made

    return read


def _object(schema: Schema, root: bool) -> Declared | None:
    values = schema.get("additionalProperties")
    if isinstance(values, Mapping):
        return _map(schema, values)
    made = Declared("object", None)
    hidden = bool(schema.get("x-kubernetes-preserve-unknown-fields")) or root or not schema.get("properties")
    made.plain = not hidden
    required = frozenset(schema.get("required") or ())
    for name, child in (schema.get("properties") or {}).items():
        field = declare(child, root=bool(child.get("x-kubernetes-embedded-resource")))
        if field is None:
            field = Declared("unknown", t.DYN)
            field.plain, field.convert = False, Unknown
        else:
            _add_field(made, name, field)
            if name in required and child.get("default") is None:
                made.min_size += len(name.encode()) + field.min_size + 4
        made.properties[name] = field
        made.plain = made.plain and field.plain and not field.nullable and escape(name) == name
    if not made.plain:
        made.convert = lambda raw: None if raw is None else ObjectValue(raw, made)
    return made


def _add_field(holder: Declared, name: str, field: Declared) -> None:
    identifier = escape(name)
    if identifier is not None:
        holder.fields[identifier] = field
        holder.raw_names[identifier] = name


def _map(schema: Schema, values: Schema) -> Declared | None:
    element = declare(values, root=bool(values.get("x-kubernetes-embedded-resource")))
    if element is None:
        return None
    limit = schema.get("maxProperties")
    size = (MAX_REQUEST - 2) // (element.min_size + 6) if limit is None else max(limit, 0)
    made = Declared("map", t.map_of(t.STRING, element.type), max_elements=size)
    made.element, made.plain = element, element.plain
    if not element.plain:
        convert = element.convert
        made.convert = lambda raw: None if raw is None else {key: convert(value) for key, value in raw.items()}
    return made


def _string(schema: Schema) -> Declared:
    length = schema.get("maxLength")
    bounded = None if length is None else max(length, 0)
    special = _FORMATS.get(schema.get("format") or "")
    if special is not None:
        type_, min_size, size, convert = special
        if type_ is t.BYTES and bounded is not None:
            size = bounded
        made = Declared("scalar", type_, max_elements=size, min_size=min_size)
        made.plain, made.convert = False, convert
        return made
    if bounded is not None:
        size = bounded * 4  # a character may take four bytes
    elif schema.get("enum"):
        size = max((len(each.encode()) for each in schema["enum"] if isinstance(each, str)), default=0)
    else:
        size = MAX_REQUEST - 2
    return Declared("scalar", t.STRING, max_elements=size)


def _double(raw: Any) -> Any:
    return float(raw) if type(raw) is int else raw


@functools.lru_cache(maxsize=4096)
def _read_time(raw: str | None) -> Timestamp | None:
    if raw is None:
        return None
    if raw == "":
        return Timestamp(0)
    local = re.fullmatch(r"\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}", raw, re.ASCII)
    return clock.parse_timestamp(raw + "Z" if local else raw)


@functools.lru_cache(maxsize=1024)
def _read_date(raw: str | None) -> Timestamp | None:
    if raw is None:
        return None
    try:
        day = datetime.date.fromisoformat(raw)
    except ValueError as error:
        raise EvaluationError(f"Invalid date formatted string {raw}") from error
    return clock.timestamp((day - datetime.date(1970, 1, 1)).days * 86400 * clock.SECOND)


_LONG_UNITS: Final = (
    (("ns", "nano"), 1),
    (("us", "µs", "micro"), 1_000),
    (("ms", "milli"), 1_000_000),
    (("s", "sec"), clock.SECOND),
    (("m", "min"), 60 * clock.SECOND),
    (("h", "hr", "hour"), 3600 * clock.SECOND),
    (("d", "day"), 86400 * clock.SECOND),
    (("w", "wk", "week"), 7 * 86400 * clock.SECOND),
)


@functools.lru_cache(maxsize=1024)
def _read_duration(raw: str | None) -> Duration | None:
    if raw is None:
        return None
    try:
        return clock.parse_duration(raw)
    except EvaluationError:
        found = re.findall(r"(\d{1,18})\s*([A-Za-zµ]+)", raw)
    total, known = 0, False
    for number, word in found:
        for variants, unit in _LONG_UNITS:
            if _names_unit(word.lower(), variants):
                total, known = total + int(number) * unit, True
    if not known:
        raise EvaluationError(f"Invalid duration {raw}")
    return clock.duration(total)


def _names_unit(word: str, variants: tuple[str, ...]) -> bool:
    """The short name exactly, a longer one also in the plural and spelled out."""
    return word == variants[0] or any(word.startswith(each) for each in variants[1:])


@functools.lru_cache(maxsize=256)
def _read_bytes(raw: str | None) -> bytes | None:
    if raw is None:
        return None
    try:
        return base64.b64decode(raw.replace("-", "+").replace("_", "/"), validate=True)
    except (binascii.Error, ValueError) as error:
        raise EvaluationError("Invalid byte formatted string: not base64") from error


# type, least size in JSON, most elements, how to read it
_FORMATS: Final[dict[str, tuple[CelType, int, int, Convert]]] = {
    "byte": (t.BYTES, 2, MAX_REQUEST - 2, _read_bytes),
    "duration": (t.DURATION, 3, 32, _read_duration),
    "date": (t.TIMESTAMP, 12, 12, _read_date),
    "date-time": (t.TIMESTAMP, 21, 32, _read_time),
}
