"""Parts of JSON schemas of values. Pure."""

from __future__ import annotations

from typing import Any

Json = dict[str, Any]

FREE: Json = {"type": "object"}
TEXT: Json = {"type": "string"}
LIST: Json = {"type": "array", "items": {"type": "string"}}
OPEN: Json = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}  # in the schema of a variable


def group(description: str = "", **properties: Json) -> Json:
    """A map whose fields are all known."""
    said = {"description": description} if description else {}
    return {"type": "object", **said, "additionalProperties": False, "properties": properties}


def text(description: str, default: str | None = None, **more: Any) -> Json:
    return {**TEXT, "description": description, **({} if default is None else {"default": default}), **more}


def number(description: str, default: int | None = None, low: int = 1, high: int | None = None) -> Json:
    found: Json = {"type": "integer", "minimum": low, "description": description}
    if high is not None:
        found["maximum"] = high
    return found if default is None else {**found, "default": default}


def flag(description: str, default: bool) -> Json:
    return {"type": "boolean", "description": description, "default": default}


def properties(**fields: Json) -> Json:
    """A map in the schema of a variable."""
    return {"type": "object", "properties": fields}
