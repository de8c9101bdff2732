"""How single values look in YAML as Helm writes it: when a text needs quotes, which, and how numbers are written."""

from __future__ import annotations

import calendar
import re
from typing import Any, Final

from homeport.machinery.gotemplate import number

WORDS: Final = frozenset(
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
BREAKS: Final = frozenset("\r\n\x85\u2028\u2029")


def number_text(value: Any, *, exact: bool) -> str:
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


def is_printable(c: str) -> bool:
    code = ord(c)
    return (
        code == 0x0A or 0x20 <= code <= 0x7E or 0xA0 <= code <= 0xD7FF or (0xE000 <= code <= 0xFFFD and code != 0xFEFF)
    )


def escaped(c: str) -> str:
    code = ord(c)
    if code in _ESCAPES:
        return "\\" + _ESCAPES[code]
    if code <= 0xFF:
        return f"\\x{code:02X}"
    return f"\\u{code:04X}" if code <= 0xFFFF else f"\\U{code:08X}"


def style_of(text: str, *, is_key: bool, tabs: bool) -> str:
    plain, single, block = _allowed(text, tabs)
    multiline = any(c in BREAKS for c in text)
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
        special |= not is_printable(c) and not (tabs and c == "\t")
        is_break = c in BREAKS
        break_space |= c == " " and after_break
        space_break |= is_break and after_space
        breaks |= is_break
        after_space, after_break = c == " ", is_break
        before_blank = c in " \t\0" or is_break
    outside = text[0] == " " or text[-1] == " " or text[0] in BREAKS or text[-1] in BREAKS
    tab = tabs and "\t" in text
    plain = not (outside or break_space or space_break or special or breaks or indicators or tab)
    single = not (break_space or space_break or special or tab)
    block = not (text[-1] == " " or space_break or special)
    return plain, single, block


def stays_text(text: str) -> bool:
    """Whether a reader takes it for a string though it has no quotes."""
    if text in WORDS:
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
