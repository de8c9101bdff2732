"""The functions that Go's templates have from the start; and, or stop early and are carried out elsewhere."""

from __future__ import annotations

from typing import Any, Final
from urllib.parse import quote_plus

from homeport.machinery.gotemplate import compare
from homeport.machinery.gotemplate.error import CallError
from homeport.machinery.gotemplate.function import Function, functions
from homeport.machinery.gotemplate.printer import printed, shown
from homeport.machinery.gotemplate.printf import sprintf
from homeport.machinery.gotemplate.value import (
    INTEGERS,
    UNSIGNED,
    Bytes,
    Uint8,
    kind_of,
    octets,
    text_of,
    truth,
    type_of,
)

_SCRIPT: Final = {
    "\\": r"\\", "'": r"\'", '"': r"\"", "<": r"\u003C", ">": r"\u003E", "&": r"\u0026", "=": r"\u003D",
}  # fmt: skip
_MARKUP: Final = str.maketrans({"\0": "�", '"': "&#34;", "'": "&#39;", "&": "&amp;", "<": "&lt;", ">": "&gt;"})


def index(value: object, *keys: object) -> Any:
    if value is None:
        raise CallError("can't index: the value is nil")
    for key in keys:
        if value is None:
            raise CallError(f"there is nothing to take {shown(key)} of: the value is nil")
        if isinstance(value, dict):
            if not isinstance(key, str):
                raise CallError(f"keys of a map are strings, not {type_of(key)}")
            value = value.get(key, getattr(value, "absent", None))
        elif isinstance(value, str):
            raw = octets(value)
            value = Uint8(raw[_position(key, len(raw))])
        elif isinstance(value, Bytes):
            value = Uint8(value[_position(key, len(value))])
        elif isinstance(value, list):
            value = value[_position(key, len(value))]
        else:
            raise CallError(f"a value of type {type_of(value)} has no items")
    return value


def _position(key: Any, size: int, *, end: bool = False) -> int:
    kind = kind_of(key)
    if kind not in INTEGERS and kind not in UNSIGNED:
        raise CallError(f"places in a list are of type int, not {type_of(key)}: convert it with int")
    if not 0 <= key < size + end:
        raise CallError(f"index out of range: {int(key)} of {size}")
    return int(key)


def cut(value: object, *bounds: object) -> Any:
    if len(bounds) > 3 or (isinstance(value, str) and len(bounds) == 3):
        raise CallError(f"{len(bounds)} bounds are too many")
    if not isinstance(value, str | list | Bytes):
        raise CallError(f"a value of type {type_of(value)} can't be sliced")
    whole = octets(value) if isinstance(value, str) else value
    places = [_position(each, len(whole), end=True) for each in bounds]
    first, last = (*places[:2], *(0, len(whole))[len(places[:2]) :])
    if first > last or (len(places) == 3 and last > places[2]):
        raise CallError(f"the end of a slice is before its beginning: {', '.join(map(str, places))}")
    if isinstance(value, str):
        return text_of(octets(value)[first:last])
    return type(value)(value[first:last])


def length(value: object) -> int:
    if isinstance(value, str):
        return len(octets(value))
    if isinstance(value, dict | list | Bytes):
        return len(value)
    raise CallError(f"a value of type {type_of(value)} has no length")


def lines(*values: object) -> str:
    return " ".join(map(shown, values)) + "\n"


def _joined(values: tuple[Any, ...]) -> str:
    """As print does it, but what is nil looks as it does in an action."""
    return printed(["<no value>" if each is None else each for each in values])


def markup(*values: object) -> str:
    return _joined(values).translate(_MARKUP)


def script(*values: object) -> str:
    parts: list[str] = []
    for c in _joined(values):
        if c in _SCRIPT:
            parts.append(_SCRIPT[c])
        elif c < " " or (c > "\x7f" and not c.isprintable()):
            code = 0xFFFD if "\ud800" <= c <= "\udfff" else ord(c)
            parts.append(f"\\u{code:04X}")
        else:
            parts.append(c)
    return "".join(parts)


def query(*values: object) -> str:
    return quote_plus(octets(_joined(values)), safe="~")


def call(*_: object) -> Any:
    raise CallError("the value is not a function")


BUILTINS: Final[dict[str, Function]] = {
    **functions(
        {
            "and": ("value ...value", call),
            "or": ("value ...value", call),
            "not": ("value", lambda value: not truth(value)),
            "eq": ("value ...value", compare.equal),
            "ne": ("value value", lambda left, right: not compare.equal(left, right)),
            "lt": ("value value", compare.less),
            "le": ("value value", compare.less_or_equal),
            "gt": ("value value", lambda left, right: not compare.less_or_equal(left, right)),
            "ge": ("value value", lambda left, right: not compare.less(left, right)),
            "index": ("value ...value", index),
            "len": ("value", length),
            "call": ("value ...value", call),
        },
        cheap=True,
    ),
    **functions(
        {
            "slice": ("value ...value", cut),
            "print": ("...any", lambda *values: printed(values)),
            "println": ("...any", lines),
            "printf": ("string ...any", sprintf),
            "html": ("...any", markup),
            "js": ("...any", script),
            "urlquery": ("...any", query),
        }
    ),
}
