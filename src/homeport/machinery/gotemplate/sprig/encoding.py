"""JSON, base64 and base32, and sums."""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
import zlib
from typing import Any, Final

import orjson

from homeport.machinery.gotemplate import value as go
from homeport.machinery.gotemplate.error import CallError
from homeport.machinery.gotemplate.function import functions
from homeport.machinery.gotemplate.number import json_number
from homeport.machinery.gotemplate.value import Bytes, NilList, NilMap, NilStrings, Object, Struct, octets

_ESCAPES: Final = {'"': r"\"", "\\": r"\\", "\n": r"\n", "\r": r"\r", "\t": r"\t", "\b": r"\b", "\f": r"\f"}
_MARKUP: Final = frozenset("<>&")
_BASE64: Final = re.compile(r"[A-Za-z0-9+/]")
_ALWAYS: Final = re.compile('["\\\\\x00-\x1f\u2028\u2029\ud800-\udfff<>&]')


def to_json(value: object) -> str:
    return _lenient(value, "")


def must_json(value: object) -> str:
    return _strict(value, "", markup=False)


def raw_json(value: object) -> str:
    return _strict(value, "", markup=True)


def pretty_json(value: object) -> str:
    return _lenient(value, "  ")


def must_pretty_json(value: object) -> str:
    return _strict(value, "  ", markup=False)


def _lenient(value: object, indent: str) -> str:
    """'' for what JSON has no form for."""
    try:
        return _json(value, indent, markup=False)
    except ValueError:
        return ""


def _strict(value: Any, indent: str, *, markup: bool) -> str:
    try:
        return _json(value, indent, markup=markup)
    except CallError:
        raise
    except ValueError as wrong:
        raise CallError(str(wrong)) from None


def _json(value: Any, indent: str, *, markup: bool, lead: str = "\n") -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return json_number(value)
    if isinstance(value, int):
        return str(int(value))
    if isinstance(value, str | Object):
        return _string(value.json_text() if isinstance(value, Object) else value, markup)
    if isinstance(value, NilList | NilStrings | NilMap):
        return "null"
    if isinstance(value, Bytes):
        return f'"{base64.b64encode(value).decode()}"'
    below = lead + indent if indent else ""
    if isinstance(value, dict | Struct):
        gap = ": " if indent else ":"
        pairs = value.json_items() if isinstance(value, Struct) else _sorted(value)
        items = [f"{_string(key, markup)}{gap}{_json(each, indent, markup=markup, lead=below)}" for key, each in pairs]
    else:
        items = [_json(each, indent, markup=markup, lead=below) for each in value]
    opening, closing = "[]" if isinstance(value, list) else "{}"
    if not items or not indent:
        return opening + ",".join(items) + closing
    return f"{opening}{below}{f',{below}'.join(items)}{lead}{closing}"


def _sorted(value: dict[str, Any]) -> list[tuple[str, Any]]:
    return [(key, value[key]) for key in sorted(value, key=octets)]


def _string(text: str, markup: bool) -> str:
    def escaped(found: re.Match[str]) -> str:
        c = found[0]
        if c in _ESCAPES:
            return _ESCAPES[c]
        if c in _MARKUP and markup:
            return c
        return "\\ufffd" if "\ud800" <= c <= "\udfff" else f"\\u{ord(c):04x}"

    return f'"{_ALWAYS.sub(escaped, text)}"'


def from_json(text: str) -> Any:
    """nil if the text is not valid JSON."""
    try:
        return must_from_json(text)
    except CallError:
        return None


def must_from_json(text: str) -> Any:
    try:
        return floats(orjson.loads(octets(text)))
    except orjson.JSONDecodeError as wrong:
        raise CallError(f"no JSON: {wrong.msg}") from None


def floats(value: object) -> Any:
    """Numbers of JSON are all float64 to Go."""
    if isinstance(value, dict):
        return {key: floats(below) for key, below in value.items()}
    if isinstance(value, list):
        return [floats(below) for below in value]
    if isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    return value


def from_base64(text: str) -> str:
    """For invalid base64, returns the error message as text, as sprig does."""
    plain = text.replace("\r", "").replace("\n", "")
    good = re.fullmatch(r"(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?", plain)
    if good is None:
        return f"illegal base64 data at input byte {_corrupt(text)}"
    return go.text_of(base64.b64decode(plain))


def _corrupt(text: str) -> int:
    """Where Go finds that something is wrong."""
    read = 0
    for i, c in enumerate(text):
        if c in "\r\n":
            continue
        if c != "=" or read % 4 < 2:
            if not _BASE64.fullmatch(c):
                return i
            read += 1
            continue
        rest = text[i + 1 :].lstrip("\r\n")
        if read % 4 == 2:
            if not rest:
                return len(text)
            if rest[0] != "=":
                return len(text) - len(rest) - 1
            rest = rest[1:].lstrip("\r\n")
        return len(text) - len(rest)
    return len(text) - read % 4


def from_base32(text: str) -> str:
    plain = text.replace("\r", "").replace("\n", "")
    try:
        return go.text_of(base64.b32decode(octets(plain)))
    except binascii.Error:
        found = re.search(r"[^A-Z2-7]", text)
        return f"illegal base32 data at input byte {found.start() if found else len(text) // 8 * 8}"


FUNCTIONS: Final = functions(
    {
        "toJson": ("any", to_json),
        "mustToJson": ("any", must_json),
        "toRawJson": ("any", raw_json),
        "mustToRawJson": ("any", raw_json),
        "toPrettyJson": ("any", pretty_json),
        "mustToPrettyJson": ("any", must_pretty_json),
        "fromJson": ("string", from_json),
        "mustFromJson": ("string", must_from_json),
        "b64enc": ("string", lambda text: base64.b64encode(octets(text)).decode()),
        "b64dec": ("string", from_base64),
        "b32enc": ("string", lambda text: base64.b32encode(octets(text)).decode()),
        "b32dec": ("string", from_base32),
        "sha1sum": ("string", lambda text: hashlib.sha1(octets(text), usedforsecurity=False).hexdigest()),
        "sha256sum": ("string", lambda text: hashlib.sha256(octets(text)).hexdigest()),
        "sha512sum": ("string", lambda text: hashlib.sha512(octets(text)).hexdigest()),
        "adler32sum": ("string", lambda text: str(zlib.adler32(octets(text)))),
    }
)
