"""Schedules in the notation of cron, in UTC. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

_FIELDS = (("minute", 0, 59), ("hour", 0, 23), ("day of month", 1, 31), ("month", 1, 12), ("day of week", 0, 7))
_NAMES = {
    "month": ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"],
    "day of week": ["sun", "mon", "tue", "wed", "thu", "fri", "sat"],
}
_SHORT = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
_MOST_DAYS = 366 * 8  # the longest time between two 29ths of February


@dataclass(frozen=True, slots=True)
class Schedule:
    minutes: frozenset[int]
    hours: frozenset[int]
    days: frozenset[int]
    months: frozenset[int]
    weekdays: frozenset[int]  # 0 is Sunday
    any_day: bool  # the day of month is *, or the day of week is: then the other one decides alone

    def next_after(self, now: float) -> float | None:
        """The next time after `now`; None if there is none, as of February 30th."""
        found = datetime.fromtimestamp(now, UTC).replace(second=0, microsecond=0) + timedelta(minutes=1)
        last = found + timedelta(days=_MOST_DAYS)
        while found < last:
            if found.month not in self.months or not self._fits_day(found):
                found = (found + timedelta(days=1)).replace(hour=0, minute=0)
            elif found.hour not in self.hours:
                found = (found + timedelta(hours=1)).replace(minute=0)
            elif found.minute not in self.minutes:
                found += timedelta(minutes=1)
            else:
                return found.timestamp()
        return None

    def _fits_day(self, at: datetime) -> bool:
        in_month, in_week = at.day in self.days, at.isoweekday() % 7 in self.weekdays
        return in_month and in_week if self.any_day else in_month or in_week


def parse_schedule(text: str) -> Schedule:
    """Raises ValueError."""
    given = _SHORT.get(text.strip().lower(), text).split()
    if len(given) != len(_FIELDS):
        raise ValueError(f'"{text}" is not a schedule: expected five fields such as "0 3 * * *", or @daily')
    sets = [_parse(part, *field) for part, field in zip(given, _FIELDS, strict=True)]
    minutes, hours, days, months, weekdays = sets
    made = Schedule(
        minutes, hours, days, months, frozenset(day % 7 for day in weekdays), given[2] == "*" or given[4] == "*"
    )
    if made.next_after(0.0) is None:
        raise ValueError(f'"{text}" names a day that never comes')
    return made


def _parse(text: str, name: str, low: int, high: int) -> frozenset[int]:
    found: set[int] = set()
    for part in text.split(","):
        span, mark, step = part.partition("/")
        first, dash, last = span.partition("-")
        try:
            every = int(step) if mark else 1
            start = low if span == "*" else _number(first, name)
            end = high if span == "*" or (mark and not dash) else _number(last, name) if dash else start
        except ValueError:
            raise ValueError(f'"{part}" is not valid for the {name}: expected {low} to {high}') from None
        if not low <= start <= end <= high or every < 1:
            raise ValueError(f'"{part}" is not valid for the {name}: expected {low} to {high}')
        found |= set(range(start, end + 1, every))
    return frozenset(found)


def _number(text: str, name: str) -> int:
    known = _NAMES.get(name, [])
    if text.lower() in known:
        return known.index(text.lower()) + (1 if name == "month" else 0)
    return int(text)
