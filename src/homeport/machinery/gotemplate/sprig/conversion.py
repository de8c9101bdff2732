"""One type to another, with zero for what can't be converted."""

from __future__ import annotations

import math
import re
from typing import Final

from homeport.machinery.gotemplate.literal import float_of, integer_of
from homeport.machinery.gotemplate.printer import shown
from homeport.machinery.gotemplate.value import INT_MAX, INT_MIN, Bytes
from homeport.machinery.gotemplate.value import text_of as utf8

_DECIMAL: Final = re.compile(r"([-+]?[0-9]*)(\.[0-9]*)?")
_SPECIAL: Final = re.compile(r"([+-]?)(inf(?:inity)?|nan)", re.IGNORECASE)


def text_of(value: object) -> str:
    if isinstance(value, Bytes):
        return utf8(value)
    return value if isinstance(value, str) else shown(value)


def to_int64(value: object) -> int:
    """An int64: fractions are cut off, and texts are read in the base that they say."""
    if isinstance(value, float):
        # What does not fit is the smallest number, as amd64 has it.
        return int(value) if not math.isnan(value) and INT_MIN <= value <= INT_MAX else INT_MIN
    if isinstance(value, int):
        return int(value) if value <= INT_MAX else int(value) - (1 << 64)
    if isinstance(value, str) and value:
        return _parsed(value)
    return 0


def _parsed(text: str) -> int:
    found = _DECIMAL.fullmatch(text) if "." in text else None
    if found is not None:
        text = found[1] + "0" if found[1] in ("", "+", "-") else found[1]
    number = integer_of(text)
    return number if number is not None and INT_MIN <= number <= INT_MAX else 0


def floating(value: object) -> float:
    if isinstance(value, int | float):
        return float(value)
    if not isinstance(value, str):
        return 0.0
    found = _SPECIAL.fullmatch(value)
    if found is not None:
        if found[2].lower() == "nan":
            return math.nan if not found[1] else 0.0
        return -math.inf if found[1] == "-" else math.inf
    return float_of(value) or 0.0


def strings(value: object) -> list[str]:
    """The items as texts, without those that are nil."""
    if value is None:
        return []
    if isinstance(value, list):
        return [text_of(each) for each in value if each is not None]
    return [text_of(value)]
