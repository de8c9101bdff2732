"""YAML text exactly as Helm's toYaml writes it: it ends up in ConfigMaps, and in checksums of them."""

from __future__ import annotations

import base64
import re
from typing import Any, Final

from homeport.machinery.chart.function.yamlorder import sorted_keys
from homeport.machinery.chart.function.yamlscalar import (
    BREAKS,
    WORDS,
    escaped,
    is_printable,
    number_text,
    style_of,
)
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
            simple = len(octets(key)) <= _LONGEST_KEY and not BREAKS & set(key)
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
            self._sign(number_text(value, exact=self._newer), needs_blank=True)
            return
        if _PLAIN.fullmatch(value) and value not in WORDS:
            self._sign(value, needs_blank=True)
            return
        style = style_of(value, is_key=is_key, tabs=self._newer)
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
            elif c in BREAKS:
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
            if not is_printable(c) or c in BREAKS or c in '"\\':
                self._put(escaped(c))
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
        if text[0] in " " or text[0] in BREAKS:
            self._sign("2")
        if text[-1] not in BREAKS:
            self._sign("-")
        elif len(text) == 1 or text[-2] in BREAKS:
            self._sign("+")
        self._break()
        self._fresh = self._blank = True
        breaks = True
        for c in text:
            if c in BREAKS:
                self._break() if c == "\n" else self._write_break(c)
                self._fresh = breaks = True
            else:
                if breaks:
                    self._line(indent)
                self._put(c)
                self._fresh = breaks = False
