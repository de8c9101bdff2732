"""Structural schemas made from types: what a CustomResourceDefinition says of a kind comes from its Struct."""

from __future__ import annotations

import types
from collections.abc import Mapping
from functools import cache
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

import msgspec
import orjson

from homeport.api.description import describe
from homeport.api.meta import Object
from homeport.api.schema import (
    Atomic,
    Default,
    Description,
    Enum,
    Format,
    ListType,
    Loose,
    Mark,
    Needed,
    Pattern,
    Preserve,
    Range,
    Rule,
    Shape,
    Size,
)

Schema = dict[str, Any]

_SCALARS: Mapping[Any, Schema] = {
    str: {"type": "string"},
    bool: {"type": "boolean"},
    int: {"type": "integer", "format": "int32"},
    float: {"type": "number"},
}
_SIZES = {
    "string": ("minLength", "maxLength"),
    "array": ("minItems", "maxItems"),
    "object": ("minProperties", "maxProperties"),
}
_INT_OR_STRING: Schema = {"anyOf": [{"type": "integer"}, {"type": "string"}], "x-kubernetes-int-or-string": True}
_META: Schema = {
    "apiVersion": {
        "type": "string",
        "description": "Group and version of the API in which this object is written.",
    },
    "kind": {"type": "string", "description": "What this object is, in CamelCase."},
    "metadata": {"type": "object"},
}


def generate(cls: type[Object]) -> Schema:
    """The schema of a whole kind, as it stands under `openAPIV3Schema`. The caller may change it."""
    schema: Schema = orjson.loads(_encoded(cls))
    return schema


@cache  # as many as there are kinds in the code
def _encoded(cls: type[Object]) -> bytes:
    schema = _struct(cls, skip=frozenset(Object.__struct_fields__))
    schema["properties"] = {**_META, **schema["properties"]}
    return orjson.dumps(schema)


def _struct(cls: type[msgspec.Struct], *, skip: frozenset[str] = frozenset()) -> Schema:
    fields = {encoded: hint for name, (encoded, hint) in _hints(cls).items() if name not in skip}
    schema = _object(fields)
    for name, part in schema["properties"].items():
        if any(isinstance(mark, Description) for mark in _marks(fields[name])):
            continue
        if said := describe(cls.__module__, cls.__name__, name, part.get("description", "")):
            part["description"] = said
    if text := cls.__dict__.get("__doc__"):
        schema["description"] = " ".join(text.split())
    for mark in getattr(cls, "__schema__", ()):
        _apply(schema, mark)
    return schema


@cache  # most kinds share conditions, references and the like
def _hints(cls: type[msgspec.Struct]) -> Mapping[str, tuple[str, Any]]:
    """Of each field its name in JSON and its type."""
    hints = get_type_hints(cls, include_extras=True)
    return {field.name: (field.encode_name, hints[field.name]) for field in msgspec.structs.fields(cls)}


def _object(fields: Mapping[str, Any]) -> Schema:
    schema: Schema = {"type": "object", "properties": {name: _of(hint) for name, hint in fields.items()}}
    if required := sorted(name for name, hint in fields.items() if Needed() in _marks(hint)):
        schema["required"] = required
    return schema


def _marks(hint: Any) -> tuple[Any, ...]:
    return get_args(hint)[1:] if get_origin(hint) is Annotated else ()


def _of(hint: Any) -> Schema:
    if get_origin(hint) is Annotated:
        schema = _annotated(get_args(hint)[0], _marks(hint))
    elif get_origin(hint) in (Union, types.UnionType):
        schema = _union([arg for arg in get_args(hint) if arg is not type(None)])
    else:
        schema = _plain(hint)
    return schema


def _annotated(inner: Any, marks: tuple[Any, ...]) -> Schema:
    if Loose() in marks:
        return {"x-kubernetes-preserve-unknown-fields": True}
    shape = next((mark for mark in marks if isinstance(mark, Shape)), None)
    schema = _shaped(shape) if shape else _of(inner)
    for mark in marks:
        if isinstance(mark, Mark):
            _apply(schema, mark)
    return schema


def _shaped(shape: Shape) -> Schema:
    schema = _object(dict(shape.properties))
    for name, part in schema["properties"].items():
        if said := describe("", shape.name, name):
            part["description"] = said
    return schema


def _union(options: list[Any]) -> Schema:
    if len(options) == 1:
        return _of(options[0])
    if set(options) == {int, str}:
        return dict(_INT_OR_STRING)
    raise TypeError(f"no schema for a choice of {options}: kinds allow int | str alone")


def _plain(hint: Any) -> Schema:
    if hint in _SCALARS:
        return dict(_SCALARS[hint])
    if hint is Any:
        return {}
    origin, args = get_origin(hint), get_args(hint)
    if origin is list:
        return {"type": "array", "items": _of(args[0])}
    if origin is dict:
        return {"type": "object"} if args[1] is Any else {"type": "object", "additionalProperties": _of(args[1])}
    if isinstance(hint, type) and issubclass(hint, msgspec.Struct):
        return _struct(hint)
    raise TypeError(f"no schema for {hint}")


def _apply(schema: Schema, mark: Mark) -> None:
    match mark:
        case Size(low, high):
            least, most = _SIZES[schema["type"]]
            schema.update(_given({least: low, most: high}))
        case Range(low, high):
            schema.update(_given({"minimum": low, "maximum": high}))
        case Pattern(regex):
            schema["pattern"] = regex
        case Enum(values):
            schema["enum"] = list(values)
        case Format(""):
            schema.pop("format", None)
        case Format(name):
            schema["format"] = name
        case ListType(kind, keys):
            schema["x-kubernetes-list-type"] = kind
            if keys:
                schema["x-kubernetes-list-map-keys"] = list(keys)
        case Atomic():
            schema["x-kubernetes-map-type"] = "atomic"
        case Preserve():
            schema["x-kubernetes-preserve-unknown-fields"] = True
        case Description(text):
            schema["description"] = text
        case Default(value):
            schema["default"] = value
        case Rule():
            rules = schema.setdefault("x-kubernetes-validations", [])
            rules.append(
                {
                    "rule": mark.rule,
                    **({"message": mark.message} if mark.message else {}),
                    **({"reason": mark.reason} if mark.reason else {}),
                    **({"fieldPath": mark.field_path} if mark.field_path else {}),
                }
            )


def _given(limits: Mapping[str, int | None]) -> dict[str, int]:
    return {name: limit for name, limit in limits.items() if limit is not None}
