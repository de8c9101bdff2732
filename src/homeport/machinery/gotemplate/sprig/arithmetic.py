"""Numbers: int64 that overflow, and decimals."""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import ROUND_HALF_UP, Context, Decimal, InvalidOperation
from typing import Any, Final

from homeport.machinery.gotemplate.error import CallError
from homeport.machinery.gotemplate.function import functions
from homeport.machinery.gotemplate.printer import shown
from homeport.machinery.gotemplate.sprig.conversion import floating, to_int64
from homeport.machinery.gotemplate.value import INT_MAX, INT_MIN, Int64, Ints, wrapped

_MOST_ITEMS: Final = 100_000
_EXACT: Final = Context(prec=2000, Emax=10_000, Emin=-10_000)


def add(*values: object) -> Int64:
    return Int64(wrapped(sum(map(to_int64, values))))


def multiply(first: object, *values: object) -> Int64:
    result = to_int64(first)
    for value in values:
        result = wrapped(result * to_int64(value))
    return Int64(result)


def divide(left: object, right: object) -> Int64:
    """Towards zero."""
    dividend, divisor = to_int64(left), _divisor(right)
    size = abs(dividend) // abs(divisor)
    return Int64(wrapped(size if (dividend < 0) == (divisor < 0) else -size))


def remainder(left: object, right: object) -> Int64:
    """With the sign of the dividend."""
    dividend, divisor = to_int64(left), _divisor(right)
    size = abs(dividend) % abs(divisor)
    return Int64(-size if dividend < 0 else size)


def _divisor(value: Any) -> int:
    divisor = to_int64(value)
    if divisor == 0:
        raise CallError("division by zero")
    return divisor


def until(count: int) -> Ints:
    return steps(0, count, -1 if count < 0 else 1)


def steps(start: int, stop: int, step: int) -> Ints:
    if (stop < start and step >= 0) or (stop >= start and step <= 0):
        return Ints()
    numbers = range(start, stop, step)
    if len(numbers) > _MOST_ITEMS:
        raise CallError(f"a list becomes longer than {_MOST_ITEMS} items")
    return Ints(numbers)


def sequence(*bounds: int) -> str:
    if len(bounds) == 1:
        end = bounds[0]
        step = -1 if end < 1 else 1
        numbers = steps(1, end + step, step)
    elif len(bounds) == 2:
        step = -1 if bounds[1] < bounds[0] else 1
        numbers = steps(bounds[0], bounds[1] + step, step)
    elif len(bounds) == 3:
        start, step, end = bounds
        if end < start and step > 0:
            return ""
        numbers = steps(start, end + (-1 if end < start else 1), step)
    else:
        return ""
    return " ".join(map(str, numbers))


def round_to(value: object, places: int, *limits: float) -> float:
    """Up from `limits` on, 0.5 if there is none."""
    threshold = limits[0] if limits else 0.5
    try:
        power = math.pow(10, places)
    except OverflowError:
        power = math.inf
    digit = power * floating(value)
    if math.isnan(digit) or math.isinf(digit) or power == 0:
        return math.nan if power == 0 or math.isinf(power) or math.isnan(digit) else digit / power
    fraction = math.modf(digit)[0]
    return math.copysign(float(math.ceil(digit) if fraction >= threshold else math.floor(digit)), digit) / power


def rounded(how: Callable[[float], int]) -> Callable[[Any], float]:
    def call(value: Any) -> float:
        number = floating(value)
        if math.isnan(number) or math.isinf(number):
            return number
        made = float(how(number))
        return math.copysign(made, number) if made == 0 else made

    return call


def decimals(operation: Callable[[Decimal, Decimal], Decimal], first: object, values: tuple[Any, ...]) -> float:
    """In decimals, so that 0.1 and 0.2 are 0.3."""
    result = _decimal(first)
    for value in values:
        try:
            result = operation(result, _decimal(value))
        except (InvalidOperation, ZeroDivisionError):
            raise CallError("division by zero") from None
    return float(result) or 0.0  # a decimal has no zero below zero


def _decimal(value: Any) -> Decimal:
    number = floating(value)
    if math.isnan(number) or math.isinf(number):
        raise CallError(f"{shown(number)} is not a valid decimal number")
    return Decimal(repr(number))


def _quotient(left: Decimal, right: Decimal) -> Decimal:
    if right == 0:
        raise ZeroDivisionError
    return _EXACT.divide(left, right).quantize(Decimal("1e-16"), rounding=ROUND_HALF_UP, context=_EXACT)


def octal(value: object) -> Int64:
    """The number that octal digits mean."""
    text = shown(value)
    try:
        number = (
            int(text, 8)
            if text.isascii() and "_" not in text and text == text.strip() and "o" not in text.lower()
            else 0
        )
    except ValueError:
        return Int64(0)
    return Int64(number if INT_MIN <= number <= INT_MAX else 0)


def decimal_int(text: str) -> int:
    """strconv.Atoi, which stops at the largest number."""
    digits = text[1:] if text[:1] in ("+", "-") else text
    if not (digits.isascii() and digits.isdigit()) or len(digits) > 400:
        return 0
    return max(INT_MIN, min(INT_MAX, int(text)))


def _extreme(choose: Callable[..., int]) -> Callable[..., Int64]:
    return lambda *values: Int64(choose(map(to_int64, values)))


def _signed(number: float) -> tuple[float, float]:
    """With zero above the zero below zero."""
    return number, math.copysign(1, number)


def _largest(*values: Any) -> float:
    numbers = list(map(floating, values))
    if math.inf in numbers:
        return math.inf
    return math.nan if any(map(math.isnan, numbers)) else max(numbers, key=_signed)


def _smallest(*values: Any) -> float:
    numbers = list(map(floating, values))
    if -math.inf in numbers:
        return -math.inf
    return math.nan if any(map(math.isnan, numbers)) else min(numbers, key=_signed)


FUNCTIONS: Final = functions(
    {
        "atoi": ("string", decimal_int),
        "int": ("any", to_int64),
        "int64": ("any", lambda value: Int64(to_int64(value))),
        "float64": ("any", floating),
        "toDecimal": ("any", octal),
        "add1": ("any", lambda value: Int64(wrapped(to_int64(value) + 1))),
        "add": ("...any", add),
        "sub": ("any any", lambda left, right: Int64(wrapped(to_int64(left) - to_int64(right)))),
        "div": ("any any", divide),
        "mod": ("any any", remainder),
        "mul": ("any ...any", multiply),
        "add1f": ("any", lambda value: decimals(_EXACT.add, value, (1,))),
        "addf": ("...any", lambda *values: decimals(_EXACT.add, 0.0, values)),
        "subf": ("any ...any", lambda first, *values: decimals(_EXACT.subtract, first, values)),
        "mulf": ("any ...any", lambda first, *values: decimals(_EXACT.multiply, first, values)),
        "divf": ("any ...any", lambda first, *values: decimals(_quotient, first, values)),
        "biggest": ("any ...any", _extreme(max)),
        "max": ("any ...any", _extreme(max)),
        "min": ("any ...any", _extreme(min)),
        "maxf": ("any ...any", _largest),
        "minf": ("any ...any", _smallest),
        "floor": ("any", rounded(math.floor)),
        "ceil": ("any", rounded(math.ceil)),
        "round": ("any int ...float", round_to),
    },
    cheap=True,
) | functions(
    {
        "until": ("int", until),
        "untilStep": ("int int int", steps),
        "seq": ("...int", sequence),
    }
)
