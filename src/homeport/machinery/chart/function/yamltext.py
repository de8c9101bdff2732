"""YAML text exactly as Helm's toYaml writes it: it ends up in ConfigMaps, and in checksums of them."""

from __future__ import annotations

import base64
import calendar
import functools
import re
from typing import Any, Final

from homeport.machinery.gotemplate import number
from homeport.machinery.gotemplate.error import CallError
from homeport.machinery.gotemplate.value import (
    Bytes,
    NilList,
    NilMap,
    NilStrings,
    Object,
    Struct,
    octets,
)

_WIDTH: Final = 80
_UNLIMITED: Final = 1 << 31
_LONGEST_KEY: Final = 128
_LARGEST: Final = 8 << 20
_DEEPEST: Final = 200
_UNREADABLE: Final = re.compile("[\x7f-\x84\x86-\x9f\ufeff\ufffe\uffff]")  # which JSON does not escape
_WORDS: Final = frozenset(
    (
        *(
            form
            for word in ("y", "yes", "true", "on", "n", "no", "false", "off", "null")
            for form in (word, word.capitalize(), word.upper())
        ),
        *(f"{sign}.{form}" for sign in ("", "+", "-") for form in ("inf", "Inf", "INF")),
        *("", "~", ".nan", ".NaN", ".NAN"),
    )
)
_INTEGER: Final = re.compile(r"[+-]?(?:0[xX][0-9a-fA-F]+|0[bB][01]+|0[oO]?[0-7]+|0|[1-9][0-9]*)")
_FLOAT: Final = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
_SIXTIES: Final = re.compile(r"[-+]?[0-9][0-9_]*(?::[0-5]?[0-9])+(?:\.[0-9_]*)?")
_MOMENT: Final = re.compile(
    r"([0-9]{4})-([0-9]{1,2})-([0-9]{1,2})"
    r"(?:(?:[Tt]([0-9]{1,2}):([0-9]{1,2}):([0-9]{1,2})(?:[.,][0-9]+)?(?:Z|[+-][0-9]{2}:[0-9]{2}))"
    r"|(?: ([0-9]{1,2}):([0-9]{1,2}):([0-9]{1,2})(?:[.,][0-9]+)?))?"
)
_ESCAPES: Final = {
    0: "0", 7: "a", 8: "b", 9: "t", 10: "n", 11: "v", 12: "f", 13: "r", 27: "e", 34: '"', 92: "\\",
    0x85: "N", 0xA0: "_", 0x2028: "L", 0x2029: "P",
}  # fmt: skip
_BREAKS: Final = frozenset("\r\n\x85\u2028\u2029")
_PLAIN: Final = re.compile(r"[A-Za-z_/][A-Za-z0-9_./@$%^&*()=+;~-]*")  # needs no analysis, unless it is a word


def to_yaml(value: object) -> str:
    """Without the last line break; '' for what YAML has no form for."""
    try:
        return _Writer(_WIDTH).document(as_json(value, _Bound())).removesuffix("\n")
    except ValueError:
        return ""


def must_to_yaml(value: object) -> str:
    try:
        return _Writer(_WIDTH).document(as_json(value, _Bound())).removesuffix("\n")
    except CallError:
        raise
    except ValueError as wrong:
        raise CallError(str(wrong)) from None


def to_yaml_pretty(value: object) -> str:
    """With lists indented below their keys, and no line broken."""
    try:
        return _Writer(_UNLIMITED, newer=True).document(as_json(value, _Bound())).removesuffix("\n")
    except ValueError:
        return ""


class _Bound:
    """Values that hold others many times unfold into anything."""

    def __init__(self) -> None:
        self._left = _LARGEST

    def spend(self, size: int, depth: int) -> None:
        self._left -= size + 1
        if self._left < 0:
            raise CallError(f"the text becomes larger than {_LARGEST} characters")
        if depth > _DEEPEST:
            raise CallError(f"a value is nested deeper than {_DEEPEST}")


def as_json(value: Any, bound: _Bound, depth: int = 0) -> Any:
    """What remains of a value on its way through JSON."""
    if isinstance(value, str):
        bound.spend(len(value), depth)
        text = octets(value).decode("utf-8", "replace")
        if _UNREADABLE.search(text):
            raise ValueError("the text has control characters")
        return text
    bound.spend(1, depth)
    if value is None or isinstance(value, bool | int | float):
        return value
    if isinstance(value, NilList | NilMap | NilStrings):
        return None
    if isinstance(value, Struct):
        return {key: as_json(each, bound, depth + 1) for key, each in value.json_items()}
    if isinstance(value, dict):
        return {key: as_json(each, bound, depth + 1) for key, each in value.items()}
    if isinstance(value, list):
        return [as_json(each, bound, depth + 1) for each in value]
    if isinstance(value, Bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, Object):
        return value.json_text()
    raise ValueError(f"a value of type {type(value).__name__} has no form in YAML")


class _Writer:
    """Block style, with the rules of the YAML library that Helm uses: when to quote, where to break lines."""

    def __init__(self, width: int, *, newer: bool = False) -> None:
        self._out: list[str] = []
        self._column = 0
        self._blank = True  # the last character is a blank, or there is none
        self._fresh = True  # nothing but blanks and indicators on the line so far
        self._width = width
        self._newer = newer  # the rules of the library's next version

    def document(self, value: Any) -> str:
        self._node(value, -1, in_map=False)
        if self._column or not self._fresh:
            self._break()
        return "".join(self._out)

    # -- characters ------------------------------------------------------------------------------------------------

    def _put(self, text: str) -> None:
        self._out.append(text)
        self._column += len(text)

    def _break(self) -> None:
        self._out.append("\n")
        self._column = 0

    def _line(self, indent: int) -> None:
        """To the indentation, on a new line if this one is taken."""
        indent = max(indent, 0)
        if not self._fresh or self._column > indent or (self._column == indent and not self._blank):
            self._break()
        if self._column < indent:
            self._put(" " * (indent - self._column))
        self._blank = self._fresh = True

    def _sign(self, sign: str, *, needs_blank: bool = False, fresh: bool = False) -> None:
        if needs_blank and not self._blank:
            self._put(" ")
        self._put(sign)
        self._blank = False
        self._fresh = self._fresh and fresh

    # -- nodes -----------------------------------------------------------------------------------------------------

    def _node(self, value: Any, indent: int, *, in_map: bool) -> None:
        """`indent` is that of the node around it; -1 at the top."""
        if isinstance(value, dict) and value:
            self._map(value, 0 if indent < 0 else indent + 2)
        elif isinstance(value, list) and value:
            level = 0 if indent < 0 else indent + 2
            if in_map and not self._fresh and not self._newer:
                level = indent
            for each in value:
                self._line(level)
                self._sign("-", needs_blank=True, fresh=True)
                self._node(each, level, in_map=False)
        elif isinstance(value, dict | list):
            self._sign("{}" if isinstance(value, dict) else "[]", needs_blank=True)
        else:
            self._scalar(value, 2 if indent < 0 else indent + 2, is_key=False)

    def _map(self, value: dict[str, Any], level: int) -> None:
        for key in sorted_keys(value, newer=self._newer):
            self._line(level)
            simple = len(octets(key)) <= _LONGEST_KEY and not _BREAKS & set(key)
            if simple:
                self._scalar(key, level + 2, is_key=True)
                self._sign(":")
            else:
                self._sign("?", needs_blank=True, fresh=True)
                self._scalar(key, level + 2, is_key=False)
                self._line(level)
                self._sign(":", needs_blank=True, fresh=True)
            self._node(value[key], level, in_map=True)

    # -- scalars ---------------------------------------------------------------------------------------------------

    def _scalar(self, value: Any, indent: int, *, is_key: bool) -> None:
        if not isinstance(value, str):
            self._sign(_number(value, exact=self._newer), needs_blank=True)
            return
        if _PLAIN.fullmatch(value) and value not in _WORDS:
            self._sign(value, needs_blank=True)
            return
        style = _style(value, is_key=is_key, tabs=self._newer)
        if style == "plain":
            self._folded(value, indent, is_key=is_key, quote="")
        elif style == "single":
            self._folded(value, indent, is_key=is_key, quote="'")
        elif style == "double":
            self._double(value, indent, is_key=is_key)
        else:
            self._literal(value, indent)

    def _folded(self, text: str, indent: int, *, is_key: bool, quote: str) -> None:
        """Plain or in single quotes; long lines are broken at a single space."""
        if quote:
            self._sign(quote, needs_blank=True)
        elif not self._blank:
            self._put(" ")
        spaces = breaks = False
        for i, c in enumerate(text):
            if c == " ":
                last = i == len(text) - 1
                follows = not last and text[i + 1] == " "
                apart = not quote or (i > 0 and not last)
                if not is_key and not spaces and self._column > self._width and apart and not follows:
                    self._line(indent)
                else:
                    self._put(c)
                spaces = True
            elif c in _BREAKS:
                if not breaks and c == "\n":
                    self._break()
                self._write_break(c)
                self._fresh = True
                breaks = True
            else:
                if breaks:
                    self._line(indent)
                self._put("''" if c == quote else c)
                self._fresh = spaces = breaks = False
        if quote:
            self._sign(quote)
        self._blank = self._fresh = False

    def _write_break(self, c: str) -> None:
        self._out.append(c)
        self._column = 0

    def _double(self, text: str, indent: int, *, is_key: bool) -> None:
        self._sign('"', needs_blank=True)
        spaces = False
        for i, c in enumerate(text):
            if not _printable(c) or c in _BREAKS or c in '"\\':
                self._put(_escaped(c))
                spaces = False
            elif c == " ":
                if not is_key and not spaces and self._column > self._width and 0 < i < len(text) - 1:
                    self._line(indent)
                    if text[i + 1] == " ":
                        self._put("\\")
                else:
                    self._put(c)
                spaces = True
            else:
                self._put(c)
                spaces = False
        self._sign('"')
        self._fresh = False

    def _literal(self, text: str, indent: int) -> None:
        self._sign("|", needs_blank=True)
        if text[0] in " " or text[0] in _BREAKS:
            self._sign("2")
        if text[-1] not in _BREAKS:
            self._sign("-")
        elif len(text) == 1 or text[-2] in _BREAKS:
            self._sign("+")
        self._break()
        self._fresh = self._blank = True
        breaks = True
        for c in text:
            if c in _BREAKS:
                self._break() if c == "\n" else self._write_break(c)
                self._fresh = breaks = True
            else:
                if breaks:
                    self._line(indent)
                self._put(c)
                self._fresh = breaks = False


def _number(value: Any, *, exact: bool) -> str:
    """`exact`: a float stays one; otherwise it has been JSON, where 1.0 is 1."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        if value != value or value in (float("inf"), float("-inf")):
            raise ValueError(f"{value} has no form in JSON")
        text = number.json_number(value)
        whole = not exact and text.lstrip("-").isdecimal() and -(1 << 63) <= int(text) < 1 << 64
        return str(int(text)) if whole else number.general(value, -1)
    return str(int(value))


def _printable(c: str) -> bool:
    code = ord(c)
    return (
        code == 0x0A or 0x20 <= code <= 0x7E or 0xA0 <= code <= 0xD7FF or (0xE000 <= code <= 0xFFFD and code != 0xFEFF)
    )


def _escaped(c: str) -> str:
    code = ord(c)
    if code in _ESCAPES:
        return "\\" + _ESCAPES[code]
    if code <= 0xFF:
        return f"\\x{code:02X}"
    return f"\\u{code:04X}" if code <= 0xFFFF else f"\\U{code:08X}"


def _style(text: str, *, is_key: bool, tabs: bool) -> str:
    plain, single, block = _allowed(text, tabs)
    multiline = any(c in _BREAKS for c in text)
    if "\n" in text:
        style = "literal"
    elif stays_text(text):
        style = "plain"
    else:
        style = "double"
    if is_key and multiline:
        style = "double"
    if style == "plain" and (not plain or (is_key and not text)):
        style = "single"
    if style == "single" and not single:
        style = "double"
    if style == "literal" and (not block or is_key):
        style = "double"
    return style


def _allowed(text: str, tabs: bool) -> tuple[bool, bool, bool]:
    """Whether it can be written plainly, in single quotes, and as a block, which may have tabs."""
    if not text:
        return True, True, False
    indicators = text.startswith(("---", "..."))
    breaks = special = break_space = space_break = False
    after_space = after_break = False
    before_blank = True
    for i, c in enumerate(text):
        blank_follows = i + 1 >= len(text) or text[i + 1] in " \t"
        if i == 0:
            indicators |= c in "#,[]{}&*!|>'\"%@`" or (c in "?:-" and blank_follows)
        else:
            indicators |= (c == ":" and blank_follows) or (c == "#" and before_blank)
        special |= not _printable(c) and not (tabs and c == "\t")
        is_break = c in _BREAKS
        break_space |= c == " " and after_break
        space_break |= is_break and after_space
        breaks |= is_break
        after_space, after_break = c == " ", is_break
        before_blank = c in " \t\0" or is_break
    outside = text[0] == " " or text[-1] == " " or text[0] in _BREAKS or text[-1] in _BREAKS
    tab = tabs and "\t" in text
    plain = not (outside or break_space or space_break or special or breaks or indicators or tab)
    single = not (break_space or space_break or special or tab)
    block = not (text[-1] == " " or space_break or special)
    return plain, single, block


def stays_text(text: str) -> bool:
    """Whether a reader takes it for a string though it has no quotes."""
    if text in _WORDS:
        return False
    first = text[0]
    if first == ".":
        return not re.fullmatch(r"\.[0-9]+(?:[eE][-+]?[0-9]+)?", text)
    if first not in "0123456789+-":
        return True
    if _is_moment(text) or _SIXTIES.fullmatch(text):
        return False
    digits = text.replace("_", "")
    if _INTEGER.fullmatch(digits):
        try:
            value = int(digits, 0)
        except ValueError:
            value = int(digits, 8)
        if -(1 << 63) <= value < 1 << 64:
            return False
    if _FLOAT.fullmatch(digits):
        return float(digits) in (float("inf"), float("-inf"))
    return True


def _is_moment(text: str) -> bool:
    found = _MOMENT.fullmatch(text)
    if found is None:
        return False
    year, month, day = (int(found[i]) for i in (1, 2, 3))
    if not 1 <= month <= 12 or not 1 <= day <= calendar.monthrange(max(year, 1), month)[1]:
        return False
    clock = [found[i] or found[i + 3] for i in (4, 5, 6)]
    return clock[0] is None or (int(clock[0]) < 24 and int(clock[1]) < 60 and int(clock[2]) < 60)


# -- the order of keys -------------------------------------------------------------------------------------------------


def sorted_keys(value: dict[str, Any], *, newer: bool = False) -> list[str]:
    """Letters come after everything else, and numbers count: a2 comes before a10."""
    if all(key.isascii() and key.isalpha() for key in value):
        return sorted(value)
    return sorted(value, key=functools.cmp_to_key(_compare_newer if newer else _compare))


def _compare(left: str, right: str) -> int:
    return 0 if left == right else -1 if _less(left, right, newer=False) else 1


def _compare_newer(left: str, right: str) -> int:
    return 0 if left == right else -1 if _less(left, right, newer=True) else 1


def _less(left: str, right: str, *, newer: bool) -> bool:
    digits = False
    for i, (a, b) in enumerate(zip(left, right, strict=False)):
        if a == b:
            digits = a.isdecimal()
            continue
        if a.isalpha() and b.isalpha():
            return a < b
        if a.isalpha() or b.isalpha():
            return a.isalpha() if newer and digits else b.isalpha()
        return _less_by_number(left, right, i)
    return len(left) < len(right)


def _less_by_number(left: str, right: str, i: int) -> bool:
    start = 0
    if "0" in (left[i], right[i]):
        before = i - 1
        while before >= 0 and left[before].isdecimal():
            if left[before] != "0":
                start = 1
                break
            before -= 1
    numbers = []
    for text in (left, right):
        end, value = i, start
        while end < len(text) and text[end].isdecimal():
            value = value * 10 + ord(text[end]) - 48
            end += 1
        numbers.append((value, end))
    (a, a_end), (b, b_end) = numbers
    if a != b:
        return a < b
    if a_end != b_end:
        return a_end < b_end
    return left[i] < right[i]
