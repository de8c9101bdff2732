"""Takes out of an object what its version can't say: unknown fields, and empty values where something is asked for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Schema = Mapping[str, Any]


def fit(value: object, schema: Schema) -> None:
    """Changes the value. Older versions write `""`, `0` and `{}` where newer ones want the field left out."""
    if isinstance(value, list):
        if items := schema.get("items"):
            for item in value:
                fit(item, items)
    elif isinstance(value, dict):
        _fit_object(value, schema)


def _fit_object(value: dict[str, Any], schema: Schema) -> None:
    properties = schema.get("properties")
    if properties is None:
        each = schema.get("additionalProperties")
        if isinstance(each, dict):
            for item in value.values():
                fit(item, each)
        return
    required = schema.get("required", ())
    for name in list(value):
        inner = properties.get(name)
        if inner is None:
            if not schema.get("x-kubernetes-preserve-unknown-fields"):
                del value[name]
            continue
        fit(value[name], inner)
        if value[name] is None or (name not in required and _says_nothing(value[name], inner)):
            del value[name]


def _says_nothing(value: Any, schema: Schema) -> bool:
    match value:
        case str():
            return value == "" and (schema.get("minLength", 0) > 0 or "" not in schema.get("enum", ("",)))
        case bool():
            return False
        case int():
            return value == 0 and schema.get("minimum", 0) > 0
        case list():
            return not value and schema.get("minItems", 0) > 0
        case dict():
            return not value and (schema.get("minProperties", 0) > 0 or bool(schema.get("required")))
    return False
