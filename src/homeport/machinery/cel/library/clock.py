"""Timestamps and durations."""

from __future__ import annotations

import datetime
import re
import zoneinfo
from typing import Final

from homeport.machinery.cel import types as t
from homeport.machinery.cel.errors import EvaluationError
from homeport.machinery.cel.library.registry import Function, method
from homeport.machinery.cel.parse.lexer import INT_MAX, INT_MIN
from homeport.machinery.cel.values import Duration, Timestamp

SECOND: Final = 1_000_000_000
# 0001-01-01T00:00:00Z and 9999-12-31T23:59:59Z
MIN_SECONDS: Final = -62135596800
MAX_SECONDS: Final = 253402300799

_UNITS: Final = {
    "ns": 1,
    "us": 1_000,
    "µs": 1_000,
    "μs": 1_000,
    "ms": 1_000_000,
    "s": SECOND,
    "m": 60 * SECOND,
    "h": 3600 * SECOND,
}
_PART: Final = re.compile(r"([0-9]+\.?[0-9]*|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h)")
_RFC3339: Final = re.compile(
    r"(\d{4})-(\d{2})-(\d{2})T(\d{2}):(\d{2}):(\d{2})(?:[.,](\d+))?(Z|[+-]\d{2}:\d{2})\Z", re.ASCII
)
_EPOCH: Final = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)


def duration(ns: int) -> Duration:
    if INT_MIN <= ns <= INT_MAX:
        return Duration(ns)
    raise EvaluationError("duration overflow")


def shift(moment: Timestamp, ns: int) -> Timestamp:
    return timestamp(moment.ns + ns, moment.offset)


def timestamp(ns: int, offset: int = 0) -> Timestamp:
    if MIN_SECONDS <= ns // SECOND <= MAX_SECONDS:
        return Timestamp(ns, offset)
    raise EvaluationError("timestamp overflow")


def parse_duration(text: str) -> Duration:
    """Numbers with units, such as 1h30m or -1.5s."""
    body = text[1:] if text[:1] in ("-", "+") else text
    if body == "0":
        return Duration(0)
    total, position = 0, 0
    while match := _PART.match(body, position):
        whole, _, fraction = match.group(1).partition(".")
        unit = _UNITS[match.group(2)]
        total += int(whole or "0") * unit
        if fraction:
            total += int(fraction[:18]) * unit // 10 ** len(fraction[:18])
        position = match.end()
    if not body or position != len(body):
        raise EvaluationError("type conversion error from 'string' to 'google.protobuf.Duration'")
    return duration(-total if text.startswith("-") else total)


def parse_timestamp(text: str) -> Timestamp:
    match = _RFC3339.match(text)
    if match is None:
        raise EvaluationError("type conversion error from 'string' to 'google.protobuf.Timestamp'")
    year, month, day, hour, minute, second = map(int, match.groups()[:6])
    try:
        moment = datetime.datetime(year, month, day, hour, minute, second, tzinfo=datetime.UTC)
        offset = 0 if match.group(8) == "Z" else _offset_seconds(match.group(8))
    except ValueError as error:
        raise EvaluationError("type conversion error from 'string' to 'google.protobuf.Timestamp'") from error
    since = moment - _EPOCH
    seconds = since.days * 86400 + since.seconds - offset
    fraction = (match.group(7) or "")[:9].ljust(9, "0")
    return timestamp(seconds * SECOND + int(fraction), offset)


def _offset_seconds(text: str) -> int:
    hours, minutes = int(text[1:3]), int(text[4:6])
    if hours > 24 or minutes > 60:
        raise ValueError(text)
    seconds = hours * 3600 + minutes * 60
    return -seconds if text[0] == "-" else seconds


def format_duration(value: Duration) -> str:
    seconds, rest = divmod(abs(value.ns), SECOND)
    text = f"{seconds}.{rest:09d}".rstrip("0").rstrip(".")
    return f"{'-' if value.ns < 0 else ''}{text}s"


def format_timestamp(value: Timestamp) -> str:
    """RFC 3339 with as many digits of the second as needed, in the offset it came with."""
    local, rest = divmod(value.ns + value.offset * SECOND, SECOND)
    moment = _EPOCH + datetime.timedelta(seconds=local)
    text = f"{moment.year:04d}-{moment:%m-%dT%H:%M:%S}"
    if rest:
        text += f".{rest:09d}".rstrip("0")
    if not value.offset:
        return text + "Z"
    hours, minutes = divmod(abs(value.offset) // 60, 60)
    return f"{text}{'-' if value.offset < 0 else '+'}{hours:02d}:{minutes:02d}"


def _zone(name: str) -> datetime.tzinfo:
    if ":" not in name:
        try:
            return zoneinfo.ZoneInfo(name or "UTC")
        except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError) as error:
            raise EvaluationError(f"unknown time zone {name}") from error
    hours, _, minutes = name.partition(":")
    try:
        offset = int(hours) * 60 + (-int(minutes) if name.startswith("-") else int(minutes))
        return datetime.timezone(datetime.timedelta(minutes=offset))
    except ValueError as error:
        raise EvaluationError(f"unknown time zone {name}") from error


def _local(value: Timestamp, zone: str = "UTC") -> datetime.datetime:
    moment = _EPOCH + datetime.timedelta(seconds=value.ns // SECOND)
    if zone == "UTC":
        return moment
    try:
        return moment.astimezone(_zone(zone))
    except OverflowError as error:
        raise EvaluationError("timestamp overflow") from error


def _day_of_year(value: Timestamp, zone: str = "UTC") -> int:
    return _local(value, zone).timetuple().tm_yday - 1


def _milliseconds(value: Timestamp, zone: str = "UTC") -> int:
    _local(value, zone)
    return value.ns % SECOND // 1_000_000


def _toward_zero(ns: int, unit: int) -> int:
    return ns // unit if ns >= 0 else -(-ns // unit)


def functions() -> list[Function]:
    getters = {
        "getFullYear": lambda ts, zone="UTC": _local(ts, zone).year,
        "getMonth": lambda ts, zone="UTC": _local(ts, zone).month - 1,
        "getDate": lambda ts, zone="UTC": _local(ts, zone).day,
        "getDayOfMonth": lambda ts, zone="UTC": _local(ts, zone).day - 1,
        "getDayOfWeek": lambda ts, zone="UTC": _local(ts, zone).isoweekday() % 7,
        "getDayOfYear": _day_of_year,
        "getHours": lambda ts, zone="UTC": _local(ts, zone).hour,
        "getMinutes": lambda ts, zone="UTC": _local(ts, zone).minute,
        "getSeconds": lambda ts, zone="UTC": _local(ts, zone).second,
        "getMilliseconds": _milliseconds,
    }
    spans = {
        "getHours": 3600 * SECOND,
        "getMinutes": 60 * SECOND,
        "getSeconds": SECOND,
        "getMilliseconds": 1_000_000,
    }
    result: list[Function] = []
    for name, get in getters.items():
        result.append(method(name, f"timestamp_{name}", (t.TIMESTAMP,), t.INT, get))
        result.append(method(name, f"timestamp_{name}_with_tz", (t.TIMESTAMP, t.STRING), t.INT, get))
    for name, unit in spans.items():
        result.append(
            method(name, f"duration_{name}", (t.DURATION,), t.INT, lambda d, unit=unit: _toward_zero(d.ns, unit))
        )
    return result
