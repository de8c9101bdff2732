"""Numbers as Go writes them."""

from __future__ import annotations

import math
import re
import struct
from decimal import Decimal
from typing import Final

_EXPONENT_FROM: Final = 6
_SHARP: Final = 6  # digits that # asks for at least
SECOND: Final = 1_000_000_000  # nanoseconds


def general(value: float, precision: int = -1, *, sharp: bool = False) -> str:
    """%g: the shortest digits that mean the value, or `precision` of them; an exponent where it saves space."""
    special = _special(value)
    if special:
        return special
    if precision >= 0:
        return f"{value:{'#' if sharp else ''}.{precision}g}"
    digits, point = shortest(value)
    if sharp:
        digits = digits.ljust(_SHARP, "0")
    sign = "-" if math.copysign(1, value) < 0 else ""
    if -4 <= point - 1 < _EXPONENT_FROM:
        places = max(len(digits) - point, 0)
        return sign + _plain(digits, point, places) + ("." if sharp and not places else "")
    return sign + _exponential(digits, point - 1, len(digits) - 1)


def fixed(value: float, precision: int = -1, *, sharp: bool = False) -> str:
    """%f."""
    special = _special(value)
    if special:
        return special
    if precision < 0:
        digits, point = shortest(value)
        return ("-" if math.copysign(1, value) < 0 else "") + _plain(digits, point, max(len(digits) - point, 0))
    return f"{value:{'#' if sharp else ''}.{precision}f}"


def exponential(value: float, precision: int = -1, *, sharp: bool = False) -> str:
    """%e."""
    special = _special(value)
    if special:
        return special
    if precision < 0:
        digits, point = shortest(value)
        return ("-" if math.copysign(1, value) < 0 else "") + _exponential(digits, point - 1, len(digits) - 1)
    return f"{value:{'#' if sharp else ''}.{precision}e}"


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


def hexadecimal(value: float, precision: int = -1, *, sharp: bool = False) -> str:
    """%x: the mantissa in base 16, as many digits of it as are needed or asked for."""
    special = _special(value)
    if special:
        return special
    sign = "-" if math.copysign(1, value) < 0 else ""
    mantissa, power = _binary(value)
    if mantissa:
        shift = 53 - mantissa.bit_length()  # of numbers close to zero the first bits are missing
        mantissa, power = mantissa << shift, power - shift + 52
    else:
        power = 0
    if precision >= 0 and precision < 13:
        mantissa = _halved(mantissa, 52 - 4 * precision)
        if mantissa.bit_length() > 1 + 4 * precision:
            mantissa, power = mantissa >> 1, power + 1
        digits = f"{mantissa & ((1 << 4 * precision) - 1):0{precision}x}" if precision else ""
        lead = mantissa >> 4 * precision
    else:
        digits = f"{mantissa & ((1 << 52) - 1):013x}"
        digits = digits.rstrip("0") if precision < 0 else digits.ljust(precision, "0")
        lead = mantissa >> 52
    if sharp and precision < 0:
        digits = digits.ljust(_SHARP - 2, "0")  # the x and what stands before the point count as well
    point = "." if digits or sharp else ""
    return f"{sign}0x{lead}{point}{digits}p{'-' if power < 0 else '+'}{abs(power):02d}"


def binary(value: float) -> str:
    """%b: the mantissa, and the power of two that it is multiplied by."""
    special = _special(value)
    if special:
        return special
    mantissa, power = _binary(value)
    sign = "-" if math.copysign(1, value) < 0 else ""
    return f"{sign}{mantissa}p{'-' if power < 0 else '+'}{abs(power)}"


def _binary(value: float) -> tuple[int, int]:
    bits = struct.unpack("<Q", struct.pack("<d", value))[0]
    exponent, fraction = bits >> 52 & 0x7FF, bits & ((1 << 52) - 1)
    return (fraction, -1074) if exponent == 0 else (fraction | 1 << 52, exponent - 1075)


def _halved(number: int, places: int) -> int:
    """Without its last bits, rounded to the nearest, and to the even one of two that are as near."""
    kept, rest = number >> places, number & ((1 << places) - 1)
    half = 1 << places - 1
    return kept + (rest > half or (rest == half and kept & 1))


def json_number(value: float) -> str:
    """As encoding/json writes it. Raises ValueError for what JSON has not."""
    if math.isnan(value) or math.isinf(value):
        raise ValueError(f"{_special(value)} can't be written as JSON")
    size = abs(value)
    if size != 0 and (size < 1e-6 or size >= 1e21):
        return re.sub(r"e-0(\d)$", r"e-\1", exponential(value))
    return fixed(value)


def span_text(nanoseconds: int) -> str:
    """A time.Duration as 1h2m3s."""
    if nanoseconds == 0:
        return "0s"
    size = abs(nanoseconds)
    sign = "-" if nanoseconds < 0 else ""
    minutes, rest = divmod(size, 60 * SECOND)
    seconds = f"{rest // SECOND}.{rest % SECOND:09d}".rstrip("0").rstrip(".")
    if not minutes:
        return f"{sign}{seconds}s"
    hours, minutes = divmod(minutes, 60)
    return f"{sign}{hours}h{minutes}m{seconds}s" if hours else f"{sign}{minutes}m{seconds}s"
