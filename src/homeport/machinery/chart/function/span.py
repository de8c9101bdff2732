"""Durations of Helm 4: texts like 1h30m, or numbers of seconds."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

from homeport.machinery.gotemplate.error import CallError
from homeport.machinery.gotemplate.function import Function, functions
from homeport.machinery.gotemplate.literal import float_of
from homeport.machinery.gotemplate.number import SECOND
from homeport.machinery.gotemplate.sprig.path import read_span
from homeport.machinery.gotemplate.value import INT_MAX, INT_MIN, Duration, Int64, type_of

_BLANKS: Final = "\t\n\v\f\r \x85\xa0"


def _span(value: object) -> int:
    if isinstance(value, Duration):
        return int(value)
    if isinstance(value, str):
        text = value.strip(_BLANKS)
        span = read_span(text)
        if span is not None:
            return span
        seconds = float_of(text)
        if seconds is None:
            raise CallError(f"{value!r} is not a duration: expected for example 1h30m")
        return _fits(seconds)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise CallError(f"a value of type {type_of(value)} is not a duration")
    return _fits(value)


def _fits(seconds: float) -> int:
    span = seconds * SECOND
    if math.isnan(span) or not INT_MIN <= span <= INT_MAX:
        raise CallError("the duration is too large")
    return int(span)


def _in(unit: int, kind: type) -> Callable[[object], Any]:
    def converted(value: object) -> Any:
        try:
            span = _span(value)
        except CallError:
            return kind(0)
        if kind is Int64:
            return Int64(abs(span) // unit * (-1 if span < 0 else 1))
        whole, rest = divmod(abs(span), unit)
        return (whole + rest / unit) * (-1 if span < 0 else 1)

    return converted


def _multiple(value: object, of: object, *, nearest: bool) -> Duration:
    try:
        span = _span(value)
    except CallError:
        return Duration(0)
    try:
        unit = _span(of)
    except CallError:
        return Duration(span)
    if unit <= 0:
        return Duration(span)
    size, rest = divmod(abs(span), unit)
    size += nearest and rest * 2 >= unit
    return Duration(size * unit * (-1 if span < 0 else 1))


def _days(value: object, days: int) -> float:
    hours: float = _in(3600 * SECOND, float)(value)
    return hours / 24.0 / (7.0 if days == 7 else 1.0)


FUNCTIONS: Final[dict[str, Function]] = functions(
    {
        "mustToDuration": ("any", lambda value: Duration(_span(value))),
        "durationSeconds": ("any", _in(SECOND, float)),
        "durationMilliseconds": ("any", _in(SECOND // 1000, Int64)),
        "durationMicroseconds": ("any", _in(1000, Int64)),
        "durationNanoseconds": ("any", _in(1, Int64)),
        "durationMinutes": ("any", _in(60 * SECOND, float)),
        "durationHours": ("any", _in(3600 * SECOND, float)),
        "durationDays": ("any", lambda value: _days(value, 1)),
        "durationWeeks": ("any", lambda value: _days(value, 7)),
        "durationRoundTo": ("any any", lambda value, of: _multiple(value, of, nearest=True)),
        "durationTruncateTo": ("any any", lambda value, of: _multiple(value, of, nearest=False)),
    },
    cheap=True,
)
