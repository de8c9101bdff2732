"""Times. `now` is the time of the release, so that the same release gives the same text; local time is UTC."""

from __future__ import annotations

import zoneinfo
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

from homeport.machinery.chart.function import layout
from homeport.machinery.gotemplate.error import CallError
from homeport.machinery.gotemplate.function import Function, functions
from homeport.machinery.gotemplate.number import SECOND, span_text
from homeport.machinery.gotemplate.sprig.path import duration_round, read_span
from homeport.machinery.gotemplate.value import Duration, Int32, Int64, Object, type_of

_RFC3339 = "2006-01-02T15:04:05.999999999Z07:00"


class Time(Object):
    """time.Time."""

    type_name = "time.Time"
    kind_name = "struct"

    def __init__(self, at: datetime, nanosecond: int | None = None) -> None:
        self.at = at
        self.nanosecond = at.microsecond * 1000 if nanosecond is None else nanosecond

    def __str__(self) -> str:
        return self.formatted("2006-01-02 15:04:05.999999999 -0700 MST")

    def json_text(self) -> str:
        return self.formatted(_RFC3339)

    def formatted(self, form: str) -> str:
        return layout.formatted(self.at, form, self.nanosecond)

    @property
    def nanoseconds(self) -> int:
        """Since 1970."""
        whole = self.at.replace(microsecond=0) - datetime(1970, 1, 1, tzinfo=UTC)
        return (whole.days * 86400 + whole.seconds) * SECOND + self.nanosecond

    def later(self, nanoseconds: int) -> Time:
        whole, rest = divmod(self.nanosecond + nanoseconds, SECOND)
        try:
            return Time(self.at.replace(microsecond=rest // 1000) + timedelta(seconds=whole), rest)
        except OverflowError:
            raise CallError("the time is beyond the year 9999") from None

    def method(self, name: str) -> tuple[tuple[str, ...], Any] | None:
        facts: dict[str, Callable[[], Any]] = {
            "Year": lambda: self.at.year,
            "Day": lambda: self.at.day,
            "Hour": lambda: self.at.hour,
            "Minute": lambda: self.at.minute,
            "Second": lambda: self.at.second,
            "Nanosecond": lambda: self.nanosecond,
            "YearDay": lambda: self.at.timetuple().tm_yday,
            "Month": lambda: _Named(layout.MONTHS[self.at.month - 1]),
            "Weekday": lambda: _Named(layout.DAYS[self.at.weekday()]),
            "Unix": lambda: Int64(self.nanoseconds // SECOND),
            "UnixMilli": lambda: Int64(self.nanoseconds // 1_000_000),
            "UnixMicro": lambda: Int64(self.nanoseconds // 1000),
            "UnixNano": lambda: Int64(self.nanoseconds),
            "UTC": lambda: Time(self.at.astimezone(UTC), self.nanosecond),
            "Local": lambda: Time(self.at.astimezone(UTC), self.nanosecond),
            "IsZero": lambda: self.at == _ZERO.at and not self.nanosecond,
            "String": lambda: str(self),
        }
        if name in facts:
            return (), facts[name]
        compared: dict[str, Callable[[Any], Any]] = {
            "After": lambda other: self.nanoseconds > _time(other).nanoseconds,
            "Before": lambda other: self.nanoseconds < _time(other).nanoseconds,
            "Equal": lambda other: self.nanoseconds == _time(other).nanoseconds,
            "Sub": lambda other: Duration(self.nanoseconds - _time(other).nanoseconds),
        }
        if name in compared:
            return ("any",), compared[name]
        if name == "Format":
            return ("string",), self.formatted
        return (("int", "int", "int"), self._add_date) if name == "AddDate" else None

    def _add_date(self, years: int, months: int, days: int) -> Time:
        index = self.at.year * 12 + self.at.month - 1 + years * 12 + months
        try:
            first = self.at.replace(year=index // 12, month=index % 12 + 1, day=1)
            return Time(first + timedelta(days=self.at.day - 1 + days), self.nanosecond)
        except (ValueError, OverflowError):
            raise CallError("the time is beyond the year 9999") from None


class _Named(Object):
    type_name = "time.Month"
    kind_name = "int"

    def __init__(self, name: str) -> None:
        self._name = name

    def __str__(self) -> str:
        return self._name

    def method(self, name: str) -> tuple[tuple[str, ...], Any] | None:
        return ((), lambda: self._name) if name == "String" else None


_ZERO = Time(datetime(1, 1, 1, tzinfo=UTC), 0)


def _time(value: object) -> Time:
    if not isinstance(value, Time):
        raise CallError(f"time.Time is needed, not {type_of(value)}")
    return value


class _Moments:
    """Functions for which it matters what time it is."""

    def __init__(self, present: Time) -> None:
        self.present = present

    def in_zone(self, form: str, value: object, zone: str) -> str:
        at = self._taken(value)
        return Time(at.at.astimezone(_zone(zone)), at.nanosecond).formatted(form)

    def ago(self, value: object) -> str:
        span = self.present.nanoseconds - self._taken(value).nanoseconds
        return span_text((abs(span) + SECOND // 2) // SECOND * SECOND * (-1 if span < 0 else 1))

    def rounded(self, value: object) -> str:
        if isinstance(value, Time):
            return duration_round(Int64(self.present.nanoseconds - value.nanoseconds))
        return duration_round(value)

    def _taken(self, value: object) -> Time:
        """Seconds since 1970 may be given as whole numbers; whatever else is not a time means now."""
        if isinstance(value, Time):
            return value
        if not isinstance(value, Int64 | Int32) and type(value) is not int:
            return self.present
        return Time(datetime.fromtimestamp(0, UTC), 0).later(int(value) * SECOND)


def modified(text: str, value: object, *, must: bool = False) -> Time:
    span = read_span(text)
    if span is None and must:
        raise CallError(f"{text!r} is not a duration: expected for example -1h30m")
    return _time(value).later(span or 0)


def moment_functions(now: datetime) -> dict[str, Function]:
    moments = _Moments(Time(now.astimezone(UTC)))
    return functions(
        {
            "now": ("", lambda: moments.present),
            "date": ("string any", lambda form, value: moments.in_zone(form, value, "UTC")),
            "dateInZone": ("string any string", moments.in_zone),
            "date_in_zone": ("string any string", moments.in_zone),
            "htmlDate": ("any", lambda value: moments.in_zone("2006-01-02", value, "UTC")),
            "htmlDateInZone": ("any string", lambda value, zone: moments.in_zone("2006-01-02", value, zone)),
            "dateModify": ("string any", modified),
            "date_modify": ("string any", modified),
            "mustDateModify": ("string any", lambda text, value: modified(text, value, must=True)),
            "must_date_modify": ("string any", lambda text, value: modified(text, value, must=True)),
            "toDate": ("string string", to_date),
            "mustToDate": ("string string", lambda form, text: to_date(form, text, must=True)),
            "ago": ("any", moments.ago),
            "unixEpoch": ("any", lambda value: str(_time(value).nanoseconds // SECOND)),
            "durationRound": ("any", moments.rounded),
        }
    )


def to_date(form: str, text: str, *, must: bool = False) -> Time:
    try:
        return Time(*layout.parsed(form, text))
    except layout.LayoutError as wrong:
        if must:
            raise CallError(str(wrong)) from None
        return _ZERO


def _zone(name: str) -> Any:
    if name in ("", "UTC", "Local"):
        return UTC
    try:
        return zoneinfo.ZoneInfo(name)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
        return UTC
