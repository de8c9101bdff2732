"""Quantities such as 500m, 2Gi or 1e3."""

from __future__ import annotations

import decimal
import re
from decimal import Decimal
from typing import Final

from homeport.machinery.cel import types as t
from homeport.machinery.cel.errors import EvaluationError
from homeport.machinery.cel.library.registry import Function, function, method
from homeport.machinery.cel.parse.lexer import INT_MAX, INT_MIN
from homeport.machinery.reading import reads

_SHAPE: Final = re.compile(r"([+-]?)([0-9]*)(?:\.([0-9]*))?([eEinumkKMGTP]*[-+]?[0-9]*)\Z")
_DECIMAL: Final = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY: Final = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_EXPONENT: Final = re.compile(r"[eE]([+-]?[0-9]{1,9})\Z")
_NANO: Final = Decimal("1e-9")
# exact for everything that fits into an object; far-apart exponents are rounded instead of written out
_CONTEXT: Final = decimal.Context(prec=400, Emax=999_999_999_999, Emin=-999_999_999_999, traps=[])


class Quantity:
    """`scale` is the number of decimal places it is kept with, None when that needs more than 64 bits."""

    __slots__ = ("amount", "scale")
    cel_type: Final = t.QUANTITY

    def __init__(self, amount: Decimal, scale: int | None) -> None:
        self.amount = amount
        self.scale = scale

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Quantity) and self.compare(other) == 0

    def __hash__(self) -> int:
        return hash(self.amount)

    def compare(self, other: Quantity) -> int:
        return int(_CONTEXT.compare(self.amount, other.amount))

    def plus(self, other: Quantity, sign: int = 1) -> Quantity:
        amount = _CONTEXT.fma(other.amount, Decimal(sign), self.amount)
        scale = None if self.scale is None or other.scale is None else min(self.scale, other.scale)
        return Quantity(amount, scale)

    @property
    def integer(self) -> int | None:
        """As a 64-bit integer, when it is kept as one."""
        if self.scale is None or self.scale < 0 or self.amount.adjusted() > 20:
            return None
        value = int(self.amount)
        return value if INT_MIN <= value <= INT_MAX else None


def parse(text: str) -> Quantity:
    match = _SHAPE.match(text)
    if not text or match is None:
        raise EvaluationError(
            "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
        )
    sign, whole, fraction, suffix = match.groups()
    digits, places = whole.lstrip("0"), fraction or ""
    number = Decimal(f"{sign}{whole or '0'}.{places or '0'}")
    if suffix in _BINARY:
        return _binary(number, _BINARY[suffix], len(digits), places)
    power = _power(suffix)
    amount = _CONTEXT.scaleb(number, power)
    scale: int | None = power - len(places)
    if 18 - len(digits or "0") - len(places) < 0 or (scale is not None and scale < -9):
        scale = None
    return Quantity(_round_up(amount), scale)


def _power(suffix: str) -> int:
    if suffix in _DECIMAL:
        return _DECIMAL[suffix]
    match = _EXPONENT.match(suffix)
    if match is None:
        raise EvaluationError("unable to parse quantity's suffix")
    return int(match.group(1))


def _binary(number: Decimal, power: int, digits: int, places: str) -> Quantity:
    amount = _round_up(_CONTEXT.multiply(number, Decimal(2**power)))
    limit = Decimal(INT_MAX)
    if abs(amount) > limit:
        amount = limit.copy_sign(amount)
    fits = not places and 15 - max(digits, 1) - int(power * 3 / 10) - 1 >= 0
    return Quantity(amount, 0 if fits else None)


def _round_up(amount: Decimal) -> Decimal:
    """Nothing is smaller than a billionth."""
    exponent = amount.as_tuple().exponent
    if not isinstance(exponent, int) or exponent >= -9:
        return amount
    return amount.quantize(_NANO, rounding=decimal.ROUND_UP, context=_CONTEXT)


def is_quantity(text: str) -> bool:
    return reads(parse, text, EvaluationError)


def as_integer(quantity: Quantity) -> int:
    value = quantity.integer
    if value is None:
        raise EvaluationError("cannot convert value to integer")
    return value


def _of(value: int) -> Quantity:
    return Quantity(Decimal(value), 0)


def functions() -> list[Function]:
    q, b, i = t.QUANTITY, t.BOOL, t.INT
    return [
        function("quantity", "string_to_quantity", (t.STRING,), q, parse),
        function("isQuantity", "is_quantity_string", (t.STRING,), b, is_quantity),
        function("sign", "quantity_sign", (q,), i, lambda a: a.compare(_of(0))),
        method("isGreaterThan", "quantity_is_greater_than", (q, q), b, lambda a, o: a.compare(o) > 0),
        method("isLessThan", "quantity_is_less_than", (q, q), b, lambda a, o: a.compare(o) < 0),
        method("compareTo", "quantity_compare_to", (q, q), i, Quantity.compare),
        method("asApproximateFloat", "quantity_get_float", (q,), t.DOUBLE, lambda a: float(a.amount)),
        method("asInteger", "quantity_get_int", (q,), i, as_integer),
        method("isInteger", "quantity_is_integer", (q,), b, lambda a: a.integer is not None),
        method("add", "quantity_add", (q, q), q, Quantity.plus),
        method("add", "quantity_add_int", (q, i), q, lambda a, o: a.plus(_of(o))),
        method("sub", "quantity_sub", (q, q), q, lambda a, o: a.plus(o, -1)),
        method("sub", "quantity_sub_int", (q, i), q, lambda a, o: a.plus(_of(o), -1)),
    ]
