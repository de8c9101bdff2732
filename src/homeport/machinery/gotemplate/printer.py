"""Values as fmt writes them, by a verb and its flags."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from homeport.machinery.gotemplate import number
from homeport.machinery.gotemplate.error import CallError
from homeport.machinery.gotemplate.value import (
    MISSING,
    Bytes,
    Duration,
    Object,
    Struct,
    Uint8,
    kind_of,
    octets,
    text_of,
    type_of,
)

LARGEST: Final = 4 << 20  # characters of a text while it is made


@dataclass(slots=True)
class Form:
    """What stands between % and the verb."""

    plus: bool = False
    minus: bool = False
    sharp: bool = False
    space: bool = False
    zero: bool = False
    width: int | None = None
    precision: int | None = None
    plus_v: bool = False
    sharp_v: bool = False


def shown(value: object) -> str:
    """As %v does."""
    if type(value) is str:
        return value
    return Printer().value(value, "v", Form(), 0)


def printed(values: Sequence[Any]) -> str:
    """fmt.Sprint: blanks between neighbours of which neither is a string."""
    parts: list[str] = []
    for i, value in enumerate(values):
        if i and not isinstance(value, str) and not isinstance(values[i - 1], str):
            parts.append(" ")
        parts.append(shown(value))
    return "".join(parts)


def quoted(text: str, *, only_ascii: bool = False, mark: str = '"') -> str:
    """strconv.Quote."""
    simple = {"\a": r"\a", "\b": r"\b", "\f": r"\f", "\n": r"\n", "\r": r"\r", "\t": r"\t", "\v": r"\v", "\\": r"\\"}
    parts = [mark]
    for c in text:
        code = ord(c)
        if c == mark:
            parts.append("\\" + c)
        elif c in simple:
            parts.append(simple[c])
        elif 0xDC80 <= code <= 0xDCFF:
            parts.append(f"\\x{code - 0xDC00:02x}")
        elif 0xD800 <= code <= 0xDFFF:
            parts.append("�")
        elif (32 <= code < 127) or (code > 127 and c.isprintable() and not only_ascii):
            parts.append(c)
        elif code < 32 or code == 127:
            parts.append(f"\\x{code:02x}")
        else:
            parts.append(f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}")
    return "".join(parts) + mark


class Printer:
    """Counts what it writes: a list that holds itself many times unfolds into anything."""

    def __init__(self) -> None:
        self._written = 0

    def value(self, value: object, verb: str, form: Form, depth: int) -> str:
        text = self._value(value, verb, form, depth)
        self._written += 2 if isinstance(value, dict | list) else len(text) + 1
        if self._written > LARGEST:
            raise CallError(f"the text becomes longer than {LARGEST} characters")
        return text

    def _value(self, value: Any, verb: str, form: Form, depth: int) -> str:
        if value is None or value is MISSING:
            if depth:
                return "interface {}(nil)" if form.sharp_v else "<nil>"
            if verb == "v":
                return _padded("<nil>", form)
            return _padded("<nil>", form) if verb == "T" else "%!" + verb + "(<nil>)"
        if verb == "T":
            return self._string(type_of(value), "s", form, value)
        if verb == "p":
            return self._bad("p", value, form)
        if verb == "w":
            return self._bad("w", value, form)
        if isinstance(value, Object):
            return self._string(str(value), "s" if verb == "v" else verb, form, value)
        kind = kind_of(value)
        if isinstance(value, Duration) and verb in "vs":
            return self._string(number.span_text(value), "s", form, value)
        if kind == "bool":
            return _padded("true" if value else "false", form) if verb in "tv" else self._bad(verb, value, form)
        if kind in ("int", "int64", "int32", "uint8", "uint64"):
            return self._integer(value, verb, form)
        if kind == "float64":
            return self._float(value, verb, form)
        if kind == "string":
            return self._string(value, verb, form, value)
        if isinstance(value, Bytes):
            return self._bytes(value, verb, form)
        if isinstance(value, Struct):
            return self._struct(value, verb, form, depth)
        if kind == "map":
            return self._map(value, verb, form, depth)
        return self._list(value, verb, form, depth)

    def _bad(self, verb: str, value: Any, form: Form) -> str:
        return f"%!{verb}({type_of(value)}={self._value(value, 'v', form, 0)})"

    def _map(self, value: dict[str, Any], verb: str, form: Form, depth: int) -> str:
        items = [
            f"{self.value(key, verb, form, depth + 1)}:{self.value(value[key], verb, form, depth + 1)}"
            for key in sorted(value, key=octets)
        ]
        return f"{type_of(value)}{{{', '.join(items)}}}" if form.sharp_v else f"map[{' '.join(items)}]"

    def _bytes(self, value: Bytes, verb: str, form: Form) -> str:
        if verb in "sqxX":
            return self._string(text_of(value), verb, form, value)
        if form.sharp_v:
            return f"[]byte{{{', '.join(f'0x{each:x}' for each in value)}}}"
        return f"[{' '.join(map(str, value))}]" if verb in "vd" else self._bad(verb, value, form)

    def _struct(self, value: Struct, verb: str, form: Form, depth: int) -> str:
        items = [
            (f"{name}:" if form.plus_v else "") + self.value(each, verb, form, depth + 1)
            for name, each in value.fields.items()
        ]
        return f"{{{' '.join(items)}}}"

    def _list(self, value: list[Any], verb: str, form: Form, depth: int) -> str:
        items = [self.value(each, verb, form, depth + 1) for each in value]
        if form.sharp_v:
            return f"{type_of(value)}{{{', '.join(items)}}}"
        return f"[{' '.join(items)}]"

    def _integer(self, value: int, verb: str, form: Form) -> str:
        value_type = value
        value = int(value)
        if verb == "v" and form.sharp_v and isinstance(value_type, Uint8):
            return _padded(f"0x{value:x}", form)
        if verb in "dv":
            return _integral(value, 10, form)
        if verb in "bo" or verb == "O":
            return _integral(value, 2 if verb == "b" else 8, form, prefix="0o" if verb == "O" else None)
        if verb in "xX":
            return _integral(value, 16, form, upper=verb == "X")
        if verb == "c":
            return _padded(_rune(value), form)
        if verb == "q":
            return _padded(quoted(_rune(value), only_ascii=form.plus, mark="'"), form)
        if verb == "U":
            text = f"U+{value & 0xFFFFFFFFFFFFFFFF:0{max(4, form.precision or 0)}X}"
            rune = _rune(value)
            if form.sharp and 0 <= value <= 0x10FFFF and rune.isprintable():
                text += f" '{rune}'"
            return _padded(text, replace(form, zero=False))
        return self._bad(verb, value_type, form)

    def _float(self, value: float, verb: str, form: Form) -> str:
        if verb in "vgG":
            text = number.general(value, _or(form.precision, -1), sharp=form.sharp)
            return _floating(text.replace("e", "E") if verb == "G" else text, form)
        if verb == "b":
            return _floating(number.binary(value), form)
        if verb in "xX":
            text = number.hexadecimal(value, _or(form.precision, -1), sharp=form.sharp)
            return _floating(text.upper() if verb == "X" else text, form)
        if verb in "fF":
            return _floating(number.fixed(value, _or(form.precision, 6), sharp=form.sharp), form)
        if verb in "eE":
            text = number.exponential(value, _or(form.precision, 6), sharp=form.sharp)
            return _floating(text.replace("e", "E") if verb == "E" else text, form)
        return self._bad(verb, value, form)

    def _string(self, text: str, verb: str, form: Form, value: Any) -> str:
        if verb == "v" and form.sharp_v:
            return _padded(quoted(_cut(text, form)), form)
        if verb in "vs":
            return _padded(_cut(text, form), form)
        if verb == "q":
            cut = _cut(text, form)
            if form.sharp and "`" not in cut and all(c == "\t" or (c >= " " and c != "\x7f" and c != "﻿") for c in cut):
                return _padded(f"`{cut}`", form)
            return _padded(quoted(cut, only_ascii=form.plus), form)
        if verb in "xX":
            return _padded(_hexed(octets(text), verb == "X", form), form)
        return self._bad(verb, value, form)


def _or(value: int | None, default: int) -> int:
    return default if value is None else value


def _cut(text: str, form: Form) -> str:
    return text if form.precision is None else text[: form.precision]


def _rune(value: int) -> str:
    return chr(value) if 0 <= value <= 0x10FFFF and not 0xD800 <= value <= 0xDFFF else "�"


def _hexed(raw: bytes, upper: bool, form: Form) -> str:
    if form.precision is not None:
        raw = raw[: form.precision]
    if not raw:
        return ""
    text = raw.hex(" ") if form.space else raw.hex()
    if form.sharp:
        text = " ".join("0x" + part for part in text.split(" ")) if form.space else "0x" + text
    return text.upper() if upper else text


def _padded(text: str, form: Form) -> str:
    if not form.width:
        return text
    if form.minus:
        return text.ljust(form.width)
    return text.rjust(form.width, "0" if form.zero else " ")


def _integral(value: int, base: int, form: Form, *, upper: bool = False, prefix: str | None = None) -> str:
    digits = format(abs(value), {2: "b", 8: "o", 10: "d", 16: "X" if upper else "x"}[base])
    if form.precision is not None:
        if form.precision == 0 and value == 0:
            return " " * (form.width or 0)
        digits = digits.rjust(form.precision, "0")
    elif form.zero and not form.minus and form.width:
        signed = value < 0 or form.plus or form.space
        digits = digits.rjust(form.width - signed, "0")
    if form.sharp:
        mark = {2: "0b", 8: "0", 16: "0X" if upper else "0x"}.get(base, "")
        digits = digits if base == 8 and digits.startswith("0") else mark + digits
    digits = (prefix or "") + digits
    sign = "-" if value < 0 else "+" if form.plus else " " if form.space else ""
    return _padded(sign + digits, replace(form, zero=False))


def _floating(text: str, form: Form) -> str:
    sign, body = (text[0], text[1:]) if text[0] in "+-" else ("+", text)
    special = body[0] in "IN"
    if sign == "+" and not form.plus:
        sign = " " if form.space else ""
    if body == "NaN" and not form.plus and not form.space:
        sign = ""
    if form.zero and not form.minus and form.width and not special:
        return sign + body.rjust(form.width - len(sign), "0")
    text = sign + body
    if special and body == "Inf" and sign == "":
        text = "+Inf"
    return _padded(text, replace(form, zero=False))
