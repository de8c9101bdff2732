"""Functions on strings."""

from __future__ import annotations

from typing import Any, Final

from homeport.machinery.cel import types as t
from homeport.machinery.cel.errors import EvaluationError
from homeport.machinery.cel.library.formatting import format_string
from homeport.machinery.cel.library.registry import Function, function, method

_LOWER: Final = str.maketrans({chr(c): chr(c + 32) for c in range(65, 91)})
_UPPER: Final = str.maketrans({chr(c + 32): chr(c) for c in range(65, 91)})
# what Go's unicode.IsSpace takes for white space
_SPACE: Final = (
    "\t\n\v\f\r \x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a"
    "\u2028\u2029\u202f\u205f\u3000"
)
_QUOTED: Final = str.maketrans(
    {
        "\a": "\\a",
        "\b": "\\b",
        "\f": "\\f",
        "\n": "\\n",
        "\r": "\\r",
        "\t": "\\t",
        "\v": "\\v",
        "\\": "\\\\",
        '"': '\\"',
    }
)


def _range_error(index: int) -> EvaluationError:
    return EvaluationError(f"index out of range: {index}")


def char_at(text: str, index: int) -> str:
    if not 0 <= index <= len(text):
        raise _range_error(index)
    return text[index : index + 1]


def index_of(text: str, part: str, offset: int = 0) -> int:
    if offset < 0:
        raise _range_error(offset)
    if not part:
        return min(offset, len(text))
    return -1 if offset >= len(text) else text.find(part, offset)


def last_index_of(text: str, part: str) -> int:
    return text.rfind(part)


def last_index_from(text: str, part: str, offset: int) -> int:
    if offset < 0:
        raise _range_error(offset)
    if not part:
        return min(offset, len(text))
    return -1 if offset >= len(text) else text.rfind(part, 0, offset + len(part))


def replace(text: str, old: str, new: str, count: int = -1) -> str:
    return text.replace(old, new, count if count >= 0 else -1)


def split(text: str, separator: str, limit: int = -1) -> list[str]:
    if limit == 0:
        return []
    if separator:
        return text.split(separator, limit - 1 if limit > 0 else -1)
    if limit < 0 or limit >= len(text):
        return list(text)
    return [*text[: limit - 1], text[limit - 1 :]]


def substring(text: str, start: int) -> str:
    if not 0 <= start <= len(text):
        raise _range_error(start)
    return text[start:]


def substring_range(text: str, start: int, end: int) -> str:
    if start > end:
        raise EvaluationError(f"invalid substring range. start: {start}, end: {end}")
    if not 0 <= start <= len(text):
        raise _range_error(start)
    if end > len(text):
        raise _range_error(end)
    return text[start:end]


def join(items: list[Any], separator: str = "") -> str:
    for item in items:
        if type(item) is not str:
            raise EvaluationError(f"join: invalid input: {item}")
    return separator.join(items)


def quote(text: str) -> str:
    return f'"{text.translate(_QUOTED)}"'


def functions() -> list[Function]:
    s, i, b = t.STRING, t.INT, t.BOOL
    strings = t.list_of(s)
    return [
        method("contains", "contains_string", (s, s), b, lambda a, part: part in a),
        method("startsWith", "starts_with_string", (s, s), b, str.startswith),
        method("endsWith", "ends_with_string", (s, s), b, str.endswith),
        method("charAt", "string_char_at_int", (s, i), s, char_at),
        method("indexOf", "string_index_of_string", (s, s), i, index_of),
        method("indexOf", "string_index_of_string_int", (s, s, i), i, index_of),
        method("lastIndexOf", "string_last_index_of_string", (s, s), i, last_index_of),
        method("lastIndexOf", "string_last_index_of_string_int", (s, s, i), i, last_index_from),
        method("lowerAscii", "string_lower_ascii", (s,), s, lambda a: a.translate(_LOWER)),
        method("upperAscii", "string_upper_ascii", (s,), s, lambda a: a.translate(_UPPER)),
        method("replace", "string_replace_string_string", (s, s, s), s, replace),
        method("replace", "string_replace_string_string_int", (s, s, s, i), s, replace),
        method("split", "string_split_string", (s, s), strings, split),
        method("split", "string_split_string_int", (s, s, i), strings, split),
        method("substring", "string_substring_int", (s, i), s, substring),
        method("substring", "string_substring_int_int", (s, i, i), s, substring_range),
        method("trim", "string_trim", (s,), s, lambda a: a.strip(_SPACE)),
        method("format", "string_format", (s, t.list_of(t.DYN)), s, format_string),
        function("strings.quote", "strings_quote", (s,), s, quote),
        method("join", "list_join", (strings,), s, join),
        method("join", "list_join_string", (strings, s), s, join),
    ]
