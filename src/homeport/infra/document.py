"""JSON documents that users write: fields of the expected type, and errors that name the field."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from homeport.infra.error import Misconfigured

_TYPES = {dict: "an object", list: "a list", str: "a string", bool: "true or false", type(None): "nothing"}


def parse_document(text: str, file: str) -> dict[str, Any]:
    """Raises Misconfigured."""
    try:
        found = json.loads(text)
    except ValueError as error:
        raise Misconfigured(f"{file} is not valid JSON: {error}") from None
    if not isinstance(found, dict):
        raise Misconfigured(f"{file}: must be an object, not {_type(found)}")
    return found


def object_at(found: Mapping[str, Any], name: str, inside: str = "") -> Mapping[str, Any]:
    """Empty if it is not there. `inside`: where `found` is in its document, for example `prismCentral.`"""
    value = found.get(name)
    if value is not None and not isinstance(value, dict):
        raise Misconfigured(f"{inside}{name}: must be an object, not {_type(value)}")
    return value or {}


def list_at(found: Mapping[str, Any], name: str) -> Sequence[Any]:
    value = found.get(name)
    if value is not None and not isinstance(value, list):
        raise Misconfigured(f"{name}: must be a list, not {_type(value)}")
    return value or ()


def flag_at(found: Mapping[str, Any], name: str, inside: str = "", *, default: bool = False) -> bool:
    value = found.get(name)
    if value is not None and not isinstance(value, bool):
        raise Misconfigured(f"{inside}{name}: must be true or false, not {value!r}")
    return default if value is None else value


def _type(value: object) -> str:
    return _TYPES.get(type(value), "a number")
