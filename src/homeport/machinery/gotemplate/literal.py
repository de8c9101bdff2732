"""Numbers, characters and strings as they are written in templates."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from homeport.machinery.gotemplate.value import INT_MAX, INT_MIN, octets, text_of

_ESCAPE: Final = re.compile(
    r"\\(?:(?P<simple>[abfnrtv\\'\"])|x(?P<hex>[0-9a-fA-F]{2})|(?P<octal>[0-7]{3})"
    r"|u(?P<short>[0-9a-fA-F]{4})|U(?P<long>[0-9a-fA-F]{8}))"
)
_SIMPLE: Final = {
    "a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v", "\\": "\\", "'": "'", '"': '"',
}  # fmt: skip
_HEX_FLOAT: Final = re.compile(r"[+-]?0[xX](?:[0-9a-fA-F]+\.?[0-9a-fA-F]*|\.[0-9a-fA-F]+)[pP][+-]?[0-9]+")
_FLOAT: Final = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_INTEGER: Final = re.compile(r"[+-]?(?:0[xX][0-9a-fA-F]+|0[bB][01]+|0[oO]?[0-7]+|0|[1-9][0-9]*)")


class BadLiteral(ValueError):
    pass


@dataclass(frozen=True, slots=True)
class Number:
    """What a number may be taken for: where a function wants a float, 1 is one."""

    text: str
    integer: int | None
    floating: float | None
    looks_floating: bool


def unquoted(text: str) -> str:
    """A string in quotes or backquotes."""
    if text[0] == "`":
        return text[1:-1].replace("\r", "")
    body = text[1:-1]
    if "\\" not in body:
        return body
    return _unescaped(body, '"')


def character(text: str) -> int:
    """The code of 'x'."""
    body = text[1:-1]
    if not body:
        raise BadLiteral(f"{text} contains no character")
    if body[0] == "\\":
        found = _ESCAPE.fullmatch(body)
        if found is None or found["simple"] == '"':
            raise BadLiteral(f"{text} can't be read")
        if found["hex"] or found["octal"]:
            return _byte(found)
        made = _unescaped(body, "'")
    else:
        made = body
    if len(made) != 1:
        raise BadLiteral(f"{text} contains more than one character")
    return ord(made)


def _unescaped(body: str, quote: str) -> str:
    parts: list[bytes] = []
    position = 0
    while position < len(body):
        if body[position] != "\\":
            end = body.find("\\", position)
            end = len(body) if end < 0 else end
            parts.append(octets(body[position:end]))
            position = end
            continue
        found = _ESCAPE.match(body, position)
        if found is None or (found["simple"] in ("'", '"') and found["simple"] != quote):
            raise BadLiteral(
                f"{quote}{body}{quote} has an escape that can't be read at {body[position : position + 4]}"
            )
        parts.append(_escaped(found))
        position = found.end()
    return text_of(b"".join(parts))


def _escaped(found: re.Match[str]) -> bytes:
    if found["simple"]:
        return _SIMPLE[found["simple"]].encode()
    if found["hex"] or found["octal"]:
        return bytes([_byte(found)])
    code = int(found["short"] or found["long"], 16)
    if code > 0x10FFFF or 0xD800 <= code <= 0xDFFF:
        raise BadLiteral(f"{found[0]} is not a valid character")
    return chr(code).encode()


def _byte(found: re.Match[str]) -> int:
    code = int(found["hex"], 16) if found["hex"] else int(found["octal"], 8)
    if code > 255:
        raise BadLiteral(f"{found[0]} is not a valid byte")
    return code


def number(text: str) -> Number:
    """As Go's template parser reads it: an integer may be a float as well, and the other way round."""
    if text.endswith("i"):
        raise BadLiteral(f"{text}: complex numbers are not supported")
    integer = integer_of(text)
    if integer is not None:
        if not INT_MIN <= integer < 1 << 64:
            raise BadLiteral(f"{text} is too large for an integer")
        return Number(text, integer if integer <= INT_MAX else None, float(integer), looks_floating=False)
    floating = float_of(text)
    if floating is None or not re.search(r"[.eEpP]", text):
        raise BadLiteral(f"{text} can't be read as a number")
    whole = int(floating) if floating.is_integer() and INT_MIN <= floating <= INT_MAX else None
    return Number(text, whole, floating, looks_floating=True)


def integer_of(text: str) -> int | None:
    """Parses an integer in the base of its prefix; None if the text is not an integer."""
    if len(text) > 400:
        return None
    plain = _without_underscores(text)
    if plain is None or not _INTEGER.fullmatch(plain):
        return None
    sign, digits = (-1, plain[1:]) if plain[0] == "-" else (1, plain.removeprefix("+"))
    if re.fullmatch(r"0[0-7]+", digits):
        return sign * int(digits, 8)
    return sign * int(digits, 0)


def float_of(text: str) -> float | None:
    """None if the text is not a float, or out of range."""
    plain = _without_underscores(text) if "_" in text else text
    if plain is None or len(plain) > 4000:
        return None
    try:
        if _HEX_FLOAT.fullmatch(plain):
            return float.fromhex(plain)
        if not _FLOAT.fullmatch(plain):
            return None
        made = float(plain)
    except (OverflowError, ValueError):
        return None
    return None if made in (float("inf"), float("-inf")) else made


def _without_underscores(text: str) -> str | None:
    """Underscores may stand between digits, and only where a prefix says the base or the base is ten."""
    if "_" not in text:
        return text
    body = text.lstrip("+-")
    if "__" in body or body.startswith("_") or body.endswith("_"):
        return None
    if re.search(r"_[^0-9a-fA-F]|[^0-9a-fA-FxXoObB]_", body):
        return None
    return text.replace("_", "")
