"""Resource quantities: `500m`, `1.5Gi`, `3e6`. Exact: no floats anywhere."""

from __future__ import annotations

import re
from decimal import ROUND_CEILING, Decimal, localcontext
from functools import lru_cache, total_ordering
from typing import Final

_FORM: Final = re.compile(r"([+-]?)([0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:([KMGTPE]i)|([numkMGTPE])|[eE]([+-]?[0-9]+))?")
_BINARY: Final = {unit: 1024**power for power, unit in enumerate(("Ki", "Mi", "Gi", "Ti", "Pi", "Ei"), start=1)}
_DECIMAL: Final = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BY_EXPONENT: Final = {exponent: unit for unit, exponent in _DECIMAL.items()}
_NANO: Final = Decimal(1).scaleb(-9)
_LARGEST: Final = 2**63 - 1
_DIGITS: Final = 80  # beyond any quantity that a string of sane length can hold

BINARY: Final = "BinarySI"
DECIMAL: Final = "DecimalSI"
EXPONENT: Final = "DecimalExponent"


class QuantityError(ValueError):
    """The text is not a valid quantity."""


@total_ordering
class Quantity:
    """An amount, and the way it was written. Equality and order look at the amount only."""

    __slots__ = ("amount", "form")

    def __init__(self, amount: Decimal | int, form: str = DECIMAL) -> None:
        self.amount = Decimal(amount)
        self.form = form

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Quantity) and self.amount == other.amount

    def __lt__(self, other: Quantity) -> bool:
        return self.amount < other.amount

    def __hash__(self) -> int:
        return hash(self.amount)

    def __add__(self, other: Quantity) -> Quantity:
        return Quantity(self.amount + other.amount, self.form if self.amount else other.form)

    def __sub__(self, other: Quantity) -> Quantity:
        return Quantity(self.amount - other.amount, self.form if self.amount else other.form)

    def __neg__(self) -> Quantity:
        return Quantity(-self.amount, self.form)

    def __repr__(self) -> str:
        return f"Quantity({str(self)!r})"

    @property
    def value(self) -> int:
        """Whole units, rounded up."""
        return int(self.amount.to_integral_value(ROUND_CEILING))

    def __str__(self) -> str:
        """The canonical form: no fraction, the largest suffix that allows that."""
        if self.amount == 0:
            return "0"
        # Below 1024 a binary suffix has nothing to say, and no binary suffix can write a fraction.
        if self.form == BINARY and abs(self.amount) >= 1024 and self.amount == self.amount.to_integral_value():
            return _binary_text(int(self.amount))
        return _decimal_text(self.amount, exponent_form=self.form == EXPONENT)


def _binary_text(amount: int) -> str:
    suffix = ""
    for unit, factor in _BINARY.items():
        if amount % factor:
            break
        suffix = unit
    return f"{amount // _BINARY[suffix]}{suffix}" if suffix else str(amount)


def _decimal_text(amount: Decimal, *, exponent_form: bool) -> str:
    with localcontext() as context:
        context.prec = _DIGITS
        sign, digits, exponent = amount.normalize().as_tuple()
        assert isinstance(exponent, int)
        number = int("".join(map(str, digits)))
        down = exponent % 3
        number, exponent = number * 10**down, exponent - down
        while exponent > 18 and not exponent_form:
            number, exponent = number * 1000, exponent - 3
        text = f"-{number}" if sign else str(number)
        if exponent_form:
            return f"{text}e{exponent}" if exponent else text
        return text + _BY_EXPONENT[exponent]


@lru_cache(maxsize=4096)
def parse_quantity(text: str | int | float) -> Quantity:
    """Reads a quantity; finer than a nano is rounded up, larger than 2^63-1 is capped, as Kubernetes does."""
    if isinstance(text, bool):
        raise QuantityError("a boolean is not a quantity")
    found = _FORM.fullmatch(str(text))
    if found is None:
        raise QuantityError(
            f"{text!r}: quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
        )
    sign, digits, binary, decimal, exponent = found.groups()
    with localcontext() as context:
        context.prec = _DIGITS
        amount = Decimal(digits)
        if binary:
            amount *= _BINARY[binary]
        elif decimal:
            amount = amount.scaleb(_DECIMAL[decimal])
        elif exponent:
            if abs(int(exponent)) > 64:
                raise QuantityError(f"{text!r}: the exponent is out of range")
            amount = amount.scaleb(int(exponent))
        amount = min(amount.quantize(_NANO, rounding=ROUND_CEILING), Decimal(_LARGEST)).normalize() + 0
    form = BINARY if binary else EXPONENT if exponent else DECIMAL
    return Quantity(-amount if sign == "-" else amount, form)


def is_quantity(text: str | int | float) -> bool:
    try:
        parse_quantity(text)
    except QuantityError:
        return False
    return True


def canonical(text: str | int | float) -> str:
    return str(parse_quantity(text))


def compare(a: str | int | float, b: str | int | float) -> int:
    """-1, 0 or 1."""
    left, right = parse_quantity(a), parse_quantity(b)
    return (left > right) - (left < right)


def render_bytes(size: int) -> str:
    """In the largest binary unit that has no remainder."""
    for unit, factor in (("Gi", 2**30), ("Mi", 2**20), ("Ki", 2**10)):
        if size % factor == 0:
            return f"{size // factor}{unit}"
    return str(size)
