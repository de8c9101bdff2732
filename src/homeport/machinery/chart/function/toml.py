"""TOML as Helm's toToml writes it, and read into a map."""

from __future__ import annotations

import datetime
import math
import re
import tomllib
from typing import Any, Final

from homeport.machinery.chart.function.moment import Time
from homeport.machinery.gotemplate.error import CallError
from homeport.machinery.gotemplate.function import Function, functions
from homeport.machinery.gotemplate.number import general
from homeport.machinery.gotemplate.value import (
    Bytes,
    Int64,
    NilList,
    NilMap,
    NilStrings,
    Object,
    Struct,
    octets,
    type_of,
)

_BARE: Final = re.compile(r"[A-Za-z0-9_-]+")
_ESCAPES: Final = {'"': r"\"", "\\": r"\\", "\b": r"\b", "\t": r"\t", "\n": r"\n", "\f": r"\f", "\r": r"\r"}
_SPECIAL: Final = re.compile('["\\\\\x00-\x1f\x7f]')
_LARGEST: Final = 8 << 20


class _Bad(ValueError):
    pass


def to_toml(value: object) -> str:
    """The error, as text, for what TOML has no form for."""
    try:
        return _Writer().document(value)
    except _Bad as wrong:
        return str(wrong)


def must_to_toml(value: object) -> str:
    try:
        return _Writer().document(value)
    except _Bad as wrong:
        raise CallError(str(wrong)) from None


def from_toml(text: str) -> dict[str, Any]:
    try:
        made: dict[str, Any] = _read(tomllib.loads(text.replace("\r\n", "\n")))
        return made
    except (tomllib.TOMLDecodeError, RecursionError) as wrong:
        return {"Error": f"toml: {wrong}"}


def _read(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _read(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_read(each) for each in value]
    if isinstance(value, datetime.datetime):
        return Time(value if value.tzinfo else value.replace(tzinfo=datetime.UTC))
    if isinstance(value, datetime.date):
        return Time(datetime.datetime(value.year, value.month, value.day, tzinfo=datetime.UTC))
    if isinstance(value, datetime.time):
        return Time(datetime.datetime.combine(datetime.date(1, 1, 1), value, datetime.UTC))
    return Int64(value) if isinstance(value, int) and not isinstance(value, bool) else value


class _Writer:
    """Values of a table come first, then the tables inside of it, each in the order of its keys."""

    def __init__(self) -> None:
        self._out: list[str] = []
        self._size = 0

    def document(self, value: Any) -> str:
        if isinstance(value, Struct):
            value = dict(value.json_items())
        if value is None:
            raise CallError("there is nothing to write: the value is nil")
        if not isinstance(value, dict):
            if _is_table(value):
                raise _Bad("toml: top-level values must be Go maps or structs")
            return self._element(value)
        if not isinstance(value, NilMap):
            self._table((), value)
        return "".join(self._out)

    def _put(self, text: str) -> None:
        self._out.append(text)
        self._size += len(text)
        if self._size > _LARGEST:
            raise CallError(f"the text becomes larger than {_LARGEST} characters")

    def _line(self) -> None:
        if self._out:
            self._put("\n")

    def _table(self, path: tuple[str, ...], value: dict[str, Any]) -> None:
        if len(path) > 100:
            raise CallError("a value is nested deeper than 100")
        keys = sorted((key for key in value if not _is_nil(value[key])), key=octets)
        for key in keys:
            if not _is_table(value[key]):
                self._put(f"{'  ' * len(path)}{_key(key)} = {self._element(value[key])}")
                self._line()
        for key in keys:
            if _is_table(value[key]):
                self._inner((*path, key), value[key])

    def _inner(self, path: tuple[str, ...], value: Any) -> None:
        name, indent = ".".join(map(_key, path)), "  " * (len(path) - 1)
        if isinstance(value, list):
            for each in value:
                self._line()
                self._put(f"{indent}[[{name}]]")
                self._line()
                self._table(path, each)
            return
        if len(path) == 1:
            self._line()
        self._put(f"{indent}[{name}]")
        self._line()
        self._table(path, value)

    def _element(self, value: Any) -> str:
        if isinstance(value, str):
            return _quoted(value)
        if isinstance(value, bool):
            return "true" if value else "false"
        if isinstance(value, float):
            return _float(value)
        if isinstance(value, int):
            return str(int(value))
        if isinstance(value, Time):
            return value.json_text()
        if isinstance(value, Object):
            return _quoted(str(value))
        if isinstance(value, list | Bytes):
            return f"[{', '.join(self._element(each) for each in value)}]"
        if isinstance(value, dict):
            kept = [key for key in sorted(value, key=octets) if not _is_nil(value[key])]
            ordered = sorted(kept, key=lambda key: _is_table(value[key]))
            return f"{{{', '.join(f'{_key(key)} = {self._element(value[key])}' for key in ordered)}}}"
        raise _Bad(f"toml: unexpected type: {type_of(value)}")


def _is_nil(value: Any) -> bool:
    return value is None or isinstance(value, NilMap | NilList | NilStrings)


def _is_table(value: Any) -> bool:
    """A map, or a list of nothing but maps."""
    if not isinstance(value, list):
        return isinstance(value, dict)
    if any(_is_nil(each) for each in value):
        raise _Bad("toml: cannot encode array with nil element")
    return bool(value) and all(isinstance(each, dict) for each in value)


def _float(value: float) -> str:
    if math.isnan(value):
        return "nan"
    if math.isinf(value):
        return "inf" if value > 0 else "-inf"
    text = general(value, -1)
    return text if "e" in text or "." in text else f"{text}.0"


def _quoted(text: str) -> str:
    return f'"{_SPECIAL.sub(lambda found: _ESCAPES.get(found[0]) or f"{chr(92)}u{ord(found[0]):04x}", text)}"'


def _key(key: str) -> str:
    return key if _BARE.fullmatch(key) else _quoted(key)


FUNCTIONS: Final[dict[str, Function]] = functions({"toToml": ("any", to_toml), "fromToml": ("string", from_toml)})
NEWER: Final[dict[str, Function]] = functions({"mustToToml": ("any", must_to_toml)})
