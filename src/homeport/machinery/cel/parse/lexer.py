"""Text to tokens."""

from __future__ import annotations

import re
from typing import Any, Final, NamedTuple

from homeport.machinery.cel.errors import CelError


class Token(NamedTuple):
    """`kind` is the operator itself, or one of: ident, escaped, int, uint, double, string, bytes, end."""

    kind: str
    value: Any
    pos: int


MAX_LENGTH: Final = 100_000
INT_MIN: Final = -(2**63)
INT_MAX: Final = 2**63 - 1
UINT_MAX: Final = 2**64 - 1

_ESCAPE = r"\\(?:[abfnrtv\"'\\?`]|[0-3][0-7]{2}|[xX][0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8})"
_QUOTED = "|".join(
    (
        r"[rR]\"\"\"[\s\S]*?\"\"\"",
        r"[rR]'''[\s\S]*?'''",
        r"[rR]\"[^\"\n\r]*\"",
        r"[rR]'[^'\n\r]*'",
        rf"\"\"\"(?:{_ESCAPE}|[^\\])*?\"\"\"",
        rf"'''(?:{_ESCAPE}|[^\\])*?'''",
        rf"\"(?:{_ESCAPE}|[^\\\"\n\r])*\"",
        rf"'(?:{_ESCAPE}|[^\\'\n\r])*'",
    )
)
_TOKEN: Final = re.compile(
    rf"""(?P<space>[\t \r\n\f]+|//[^\n]*)
    |(?P<bytes>[bB](?:{_QUOTED}))
    |(?P<string>{_QUOTED})
    |(?P<double>[0-9]+\.[0-9]+(?:[eE][+-]?[0-9]+)?|[0-9]+[eE][+-]?[0-9]+|\.[0-9]+(?:[eE][+-]?[0-9]+)?)
    |(?P<uint>(?:0x[0-9a-fA-F]+|[0-9]+)[uU])
    |(?P<int>0x[0-9a-fA-F]+|[0-9]+)
    |(?P<ident>[A-Za-z_][A-Za-z0-9_]*)
    |(?P<escaped>`[A-Za-z0-9_./ -]+`)
    |(?P<op>==|!=|<=|>=|&&|\|\||[\[\]{{}}().,\-!?:+*/%<>])""",
    re.VERBOSE,
)
SIMPLE_ESCAPES: Final = {
    "a": "\a",
    "b": "\b",
    "f": "\f",
    "n": "\n",
    "r": "\r",
    "t": "\t",
    "v": "\v",
    '"': '"',
    "'": "'",
    "\\": "\\",
    "?": "?",
    "`": "`",
}
_ESCAPED: Final = re.compile(r"\\(?:[0-3][0-7]{2}|[xX].{2}|u.{4}|U.{8}|[\s\S])")


def position(text: str, pos: int) -> tuple[int, int]:
    """Line and column of an offset, both counted from 1."""
    line = text.count("\n", 0, pos) + 1
    return line, pos - (text.rfind("\n", 0, pos) + 1) + 1


def error_at(text: str, pos: int, message: str) -> CelError:
    line, column = position(text, pos)
    return CelError(message, line=line, column=column)


def tokenize(text: str) -> list[Token]:
    if len(text) > MAX_LENGTH:
        raise CelError(f"expression code point size exceeds limit: size: {len(text)}, limit {MAX_LENGTH}")
    tokens: list[Token] = []
    position = 0
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None:
            raise error_at(text, position, f"syntax error: token recognition error at: {text[position]!r}")
        kind, raw = str(match.lastgroup), match.group()
        if kind == "op":
            tokens.append(Token(raw, raw, position))
        elif kind != "space":
            tokens.append(Token(kind, _value(text, position, kind, raw), position))
        position = match.end()
    tokens.append(Token("end", None, position))
    return tokens


def _value(text: str, position: int, kind: str, raw: str) -> Any:
    if kind == "ident":
        return raw
    if kind == "escaped":
        return raw[1:-1]
    if kind == "int":
        return _integer(raw)  # range is checked by the parser, which knows the sign
    if kind == "uint":
        value = _integer(raw[:-1])
        if value > UINT_MAX:
            raise error_at(text, position, "invalid uint literal")
        return value
    if kind == "double":
        return float(raw)
    if kind == "string":
        return "".join(_unescape(text, position, raw, as_bytes=False))
    return b"".join(_byte_parts(_unescape(text, position, raw[1:], as_bytes=True)))


def _integer(raw: str) -> int:
    # more digits than any 64-bit number has: keep it out of range without converting it
    if len(raw) > 4000:
        return UINT_MAX + 1
    return int(raw[2:], 16) if raw.startswith("0x") else int(raw)


def _byte_parts(parts: list[str]) -> list[bytes]:
    """Escapes of a bytes literal are single bytes, marked by the private range they come in."""
    return [
        bytes([ord(part) - _BYTE_MARK]) if len(part) == 1 and ord(part) >= _BYTE_MARK else part.encode()
        for part in parts
    ]


_BYTE_MARK: Final = 0x10F000


def _unescape(text: str, position: int, raw: str, *, as_bytes: bool) -> list[str]:
    is_raw = raw[0] in "rR"
    body = raw[1:] if is_raw else raw
    width = 3 if body.startswith(('"""', "'''")) else 1
    body = body[width:-width].replace("\r\n", "\n").replace("\r", "\n")
    if is_raw or "\\" not in body:
        return [body]
    parts: list[str] = []
    last = 0
    for match in _ESCAPED.finditer(body):
        parts.append(body[last : match.start()])
        parts.append(_escape(text, position, match.group()[1:], as_bytes=as_bytes))
        last = match.end()
    parts.append(body[last:])
    return parts


def _escape(text: str, position: int, code: str, *, as_bytes: bool) -> str:
    if code in SIMPLE_ESCAPES:
        return SIMPLE_ESCAPES[code]
    if as_bytes and code[0] in "uU":
        raise error_at(text, position, "unable to unescape string")
    value = int(code, 8) if code[0] in "0123" else int(code[1:], 16)
    if as_bytes:
        return chr(_BYTE_MARK + value)
    if value > 0x10FFFF or 0xD800 <= value <= 0xDFFF:
        raise error_at(text, position, "invalid unicode code point")
    return chr(value)
