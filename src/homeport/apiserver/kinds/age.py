"""Times and durations as `kubectl get` shows them."""

from __future__ import annotations

from datetime import UTC, datetime

UNKNOWN = "<unknown>"


def human_duration(seconds: float) -> str:
    """Two units at most, and only while the smaller one still matters."""
    whole = int(seconds)
    if whole < -1:
        return "<invalid>"
    if whole < 120:
        return f"{max(whole, 0)}s"
    minutes, hours = whole // 60, whole // 3600
    if minutes < 10:
        return _pair(minutes, "m", whole % 60, "s")
    if minutes < 180:
        return f"{minutes}m"
    if hours < 8:
        return _pair(hours, "h", minutes % 60, "m")
    if hours < 48:
        return f"{hours}h"
    return _days(hours)


def _days(hours: int) -> str:
    days = hours // 24
    if hours < 24 * 8:
        return _pair(days, "d", hours % 24, "h")
    if hours < 24 * 365 * 2:
        return f"{days}d"
    if hours < 24 * 365 * 8:
        return _pair(days // 365, "y", days % 365, "d")
    return f"{days // 365}y"


def _pair(big: int, big_unit: str, small: int, small_unit: str) -> str:
    return f"{big}{big_unit}{small}{small_unit}" if small else f"{big}{big_unit}"


def parse_time(text: object) -> datetime | None:
    """An RFC 3339 time, with or without fractions of a second."""
    if not isinstance(text, str) or not text:
        return None
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        return None
    return found if found.tzinfo else found.replace(tzinfo=UTC)


def age(text: object, now: datetime) -> str:
    """How long ago that was. `<unknown>` if empty, `<invalid>` if it is not a time."""
    if not text:
        return UNKNOWN
    then = parse_time(text)
    return "<invalid>" if then is None else human_duration((now - then).total_seconds())


def between(start: object, end: object) -> str:
    first, last = parse_time(start), parse_time(end)
    if first is None or last is None:
        return UNKNOWN
    return human_duration((last - first).total_seconds())
