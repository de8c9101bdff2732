"""One step of a field path, as managedFields spells it.

`f:name` a field or map key, `k:{"port":80,"protocol":"TCP"}` an item of a keyed list, `v:"x"` an item of a set,
`i:0` an item by index. The JSON inside is canonical (sorted keys, no spaces, Go's escapes), so equal steps are equal
texts.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Final

import orjson

_ESCAPES: Final = str.maketrans(
    {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"}
)


class ElementError(ValueError):
    """Not a step of a path."""


def canonical(value: object) -> str:
    """JSON as Go writes it: sorted keys, no spaces, HTML characters escaped."""
    text = orjson.dumps(value, option=orjson.OPT_SORT_KEYS).decode()
    return text if text.isascii() and not any(char in text for char in "<>&") else text.translate(_ESCAPES)


@lru_cache(maxsize=8192)
def _text_key(name: str, value: str) -> str:
    return f"k:{canonical({name: value})}"


def key_element(fields: dict[str, Any]) -> str:
    if len(fields) == 1:
        ((name, value),) = fields.items()
        if type(value) is str:
            return _text_key(name, value)
    return f"k:{canonical(fields)}"


@lru_cache(maxsize=8192)
def _text_value(value: str) -> str:
    return f"v:{canonical(value)}"


def value_element(value: object) -> str:
    return _text_value(value) if type(value) is str else f"v:{canonical(value)}"


def parse(text: str) -> str | None:
    """The canonical spelling of a step that somebody else wrote; None for a kind of step that is unknown."""
    if len(text) < 2:
        raise ElementError(f"key must be 2 characters long: {text!r}")
    if text[1] != ":":
        raise ElementError(f"missing colon: {text}")
    kind, rest = text[0], text[2:]
    if kind == "f":
        return text
    if kind not in "kvi":
        return None
    try:
        value = orjson.loads(rest)
    except orjson.JSONDecodeError as error:
        raise ElementError(f"invalid JSON in {text!r}: {error}") from None
    if kind == "i":
        if type(value) is not int:
            raise ElementError(f"not an index: {text!r}")
        return f"i:{value}"
    if kind == "k":
        if not isinstance(value, dict):
            raise ElementError(f"not an object: {text!r}")
        return key_element(value)
    return value_element(value)


def show(text: str) -> str:
    """The step as people read it: `.name`, `[port=80,protocol="TCP"]`, `[="x"]`, `[0]`."""
    kind, rest = text[0], text[2:]
    if kind == "f":
        return f".{rest}"
    if kind == "i":
        return f"[{rest}]"
    value = orjson.loads(rest)
    if kind == "v":
        return f"[={_show_value(value)}]"
    return "[" + ",".join(f"{name}={_show_value(below)}" for name, below in value.items()) + "]"


def _show_value(value: Any) -> str:
    if isinstance(value, list):
        return "[" + ",".join(_show_value(below) for below in value) + "]"
    if isinstance(value, dict):
        return "".join(f"{name}={_show_value(below)}" for name, below in value.items())
    return orjson.dumps(value).decode()


_KINDS: Final = {".": 0, "f": 1, "k": 2, "v": 3, "i": 4}


@lru_cache(maxsize=8192)
def order(text: str) -> tuple[Any, ...]:
    """Sorts steps as the Kubernetes API server does."""
    kind = text[0]
    rank = _KINDS.get(kind, 5)
    if rank < 2:
        return (rank, text)
    value = orjson.loads(text[2:])
    if kind == "k":
        return (rank, *((name, *_value_order(below)) for name, below in value.items()))
    return (rank, _value_order(value))


def _value_order(value: Any) -> tuple[int, Any]:
    """Numbers before texts before booleans before the rest."""
    if isinstance(value, bool):
        return (2, value)
    if isinstance(value, int | float):
        return (0, value)
    if isinstance(value, str):
        return (1, value)
    return (3, canonical(value))
