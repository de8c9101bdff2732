"""Types of JSON as schemas name them, and what a message calls them. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

TYPES: Final[Mapping[str, tuple[type, ...]]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "boolean": (bool,),
    "integer": (int,),
    "number": (int, float),
    "null": (type(None),),
}
_SHOWN: Final = {
    "object": "a map",
    "array": "a list",
    "string": "a text",
    "boolean": "true or false",
    "integer": "a whole number",
    "null": "null",
}


def wanted_types(schema: Mapping[str, Any]) -> Sequence[str]:
    """The names of the types that a schema allows. Empty: any."""
    wanted = schema.get("type")
    return wanted if isinstance(wanted, list) else [wanted] if wanted else []


def shown_type(name: str) -> str:
    return _SHOWN.get(name, f"a {name}")


def is_type(name: str, value: object) -> bool:
    """In Python True is an int; in JSON it is no number."""
    return isinstance(value, TYPES[name]) and not (isinstance(value, bool) and name in ("integer", "number"))
