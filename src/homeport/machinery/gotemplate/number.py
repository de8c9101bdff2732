"""Numbers as Go writes them."""

from __future__ import annotations

import math
import re
from decimal import Decimal
from typing import Final

_EXPONENT_FROM: Final = 6


def general(value: float, precision: int = -1, *, sharp: bool = False) -> str:
    """%g: the shortest digits that mean the value, or `precision` of them; an exponent where it saves space."""
    special = _special(value)
    if special:
        return special
    if precision >= 0 or sharp:
        return f"{value:{'#' if sharp else ''}.{precision if precision >= 0 else 6}g}"
    digits, point = shortest(value)
    sign = "-" if math.copysign(1, value) < 0 else ""
    if -4 <= point - 1 < _EXPONENT_FROM:
        return sign + _plain(digits, point, max(len(digits) - point, 0))
    return sign + _exponential(digits, point - 1, len(digits) - 1)


def fixed(value: float, precision: int = -1) -> str:
    """%f."""
    special = _special(value)
    if special:
        return special
    if precision < 0:
        digits, point = shortest(value)
        return ("-" if math.copysign(1, value) < 0 else "") + _plain(digits, point, max(len(digits) - point, 0))
    return f"{value:.{precision}f}"


def exponential(value: float, precision: int = -1) -> str:
    """%e."""
    special = _special(value)
    if special:
        return special
    if precision < 0:
        digits, point = shortest(value)
        return ("-" if math.copysign(1, value) < 0 else "") + _exponential(digits, point - 1, len(digits) - 1)
    return f"{value:.{precision}e}"


def shortest(value: float) -> tuple[str, int]:
    """Digits without trailing zeros, and where the point stands: 0.digits times ten to the power of it."""
    if value == 0:
        return "0", 1
    _, digits, exponent = Decimal(repr(value)).as_tuple()
    assert isinstance(exponent, int)
    text = "".join(map(str, digits)).lstrip("0")
    point = len(text) + exponent
    return text.rstrip("0") or "0", point


def _special(value: float) -> str:
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    return ""


def _exponential(digits: str, exponent: int, places: int) -> str:
    mantissa = digits[0] + (f".{digits[1:].ljust(places, '0')}" if places > 0 else "")
    return f"{mantissa}e{'-' if exponent < 0 else '+'}{abs(exponent):02d}"


def _plain(digits: str, point: int, places: int) -> str:
    whole = digits[:point].ljust(point, "0") if point > 0 else "0"
    if not places:
        return whole
    return f"{whole}.{('0' * -point + digits if point < 0 else digits[point:]).ljust(places, '0')}"


def hexadecimal(value: float) -> str:
    """%x."""
    special = _special(value)
    if special:
        return special
    mantissa, _, exponent = value.hex().partition("p")
    power = int(exponent)
    if value == 0:
        return f"{'-' if math.copysign(1, value) < 0 else ''}0x0p+00"
    mantissa = mantissa.rstrip("0").rstrip(".") if "." in mantissa else mantissa
    return f"{mantissa}p{'-' if power < 0 else '+'}{abs(power):02d}"


def json_number(value: float) -> str:
    """As encoding/json writes it. Raises ValueError for what JSON has not."""
    if math.isnan(value) or math.isinf(value):
        raise ValueError(f"{_special(value)} can't be written as JSON")
    size = abs(value)
    if size != 0 and (size < 1e-6 or size >= 1e21):
        return re.sub(r"e-0(\d)$", r"e-\1", exponential(value))
    return fixed(value)
