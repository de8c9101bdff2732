"""The functions that Go's templates have from the start."""

from __future__ import annotations

import html
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any
from urllib.parse import quote_plus

from homeport.machinery.gotemplate.printf import shown, sprintf


def truth(value: Any) -> bool:
    """Go's truth: what is empty or zero is false."""
    return bool(value)


def index(value: Any, *keys: Any) -> Any:
    for key in keys:
        if isinstance(value, Mapping):
            value = value.get(key)
        elif isinstance(value, Sequence):
            if not isinstance(key, int) or not 0 <= key < len(value):
                raise ValueError(f"index out of range: {key}")
            value = value[key] if not isinstance(value, str) else ord(value[key])
        else:
            raise ValueError(f"can't index item of type {_kind(value)}")
    return value


def cut(value: Any, *bounds: int) -> Any:
    if not isinstance(value, str | list) or len(bounds) > 3:
        raise ValueError(f"can't slice item of type {_kind(value)}")
    first, last = (*bounds, *(0, len(value))[len(bounds) :])[:2] if len(bounds) < 2 else bounds[:2]
    if not 0 <= first <= last <= len(value):
        raise ValueError(f"index out of range: {first}:{last}")
    return value[first:last]


def length(value: Any) -> int:
    if isinstance(value, str):
        return len(value.encode())
    if isinstance(value, Mapping | list):
        return len(value)
    raise ValueError(f"len of type {_kind(value)}")


def equal(first: Any, *others: Any) -> bool:
    if not others:
        raise ValueError("missing argument for comparison")
    return any(_comparable(first, other) and first == other for other in others)


def less(first: Any, second: Any) -> bool:
    if first is None or second is None or not _comparable(first, second) or isinstance(first, bool | list | Mapping):
        raise ValueError("incompatible types for comparison")
    result: bool = first < second
    return result


def _comparable(first: Any, second: Any) -> bool:
    if first is None or second is None:
        return True
    if _kind(first) != _kind(second):
        raise ValueError("incompatible types for comparison")
    return True


def _kind(value: Any) -> str:
    if value is None:
        return "nil"
    if isinstance(value, bool):
        return "bool"
    names = ((int, "int"), (float, "float64"), (str, "string"), (Mapping, "map"), (list, "list"))
    return next((name for kind, name in names if isinstance(value, kind)), type(value).__name__)


def joined(*values: Any) -> str:
    """print: blanks between neighbours of which neither is a string."""
    text = ""
    for i, value in enumerate(values):
        if i and not isinstance(value, str) and not isinstance(values[i - 1], str):
            text += " "
        text += shown(value)
    return text


def script(value: str) -> str:
    """Escaped for JavaScript."""
    text = json.dumps(value)[1:-1]
    for character in "<>&='":
        text = text.replace(character, f"\\u{ord(character):04X}")
    return text


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "not": lambda value: not truth(value),
    "eq": equal,
    "ne": lambda first, second: not equal(first, second),
    "lt": less,
    "le": lambda first, second: less(first, second) or equal(first, second),
    "gt": lambda first, second: less(second, first),
    "ge": lambda first, second: less(second, first) or equal(first, second),
    "index": index,
    "slice": cut,
    "len": length,
    "print": joined,
    "println": lambda *values: " ".join(map(shown, values)) + "\n",
    "printf": sprintf,
    "html": lambda *values: html.escape(joined(*values)),
    "js": lambda *values: script(joined(*values)),
    "urlquery": lambda *values: quote_plus(joined(*values)),
}
