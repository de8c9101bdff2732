"""Schedules of CronJobs: five fields, or a word such as @daily. Says what is wrong with one."""

from __future__ import annotations

import re

_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_DAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
_FIELDS: tuple[tuple[int, int, tuple[str, ...], int], ...] = (
    (0, 59, (), 0),
    (0, 23, (), 0),
    (1, 31, (), 0),
    (1, 12, _MONTHS, 1),
    (0, 6, _DAYS, 0),
)
_WORDS = ("@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly")
_DURATION = re.compile(r"([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|µs|ms|s|m|h)")


def schedule_error(text: str) -> str | None:
    """What is wrong, as the cron library of Kubernetes says it; None for a good schedule."""
    if text.startswith(("TZ=", "CRON_TZ=")):
        zone, space, rest = text.partition(" ")
        if not space:
            return f"provided bad location {zone.partition('=')[2]}"
        text = rest.strip()
    if text.startswith("@"):
        return _word_error(text)
    fields = text.split()
    if len(fields) != 5:
        return f"expected exactly 5 fields, found {len(fields)}: [{' '.join(fields)}]"
    for field, bounds in zip(fields, _FIELDS, strict=True):
        for part in field.split(","):
            wrong = _part_error(part, *bounds)
            if wrong:
                return wrong
    return None


def _word_error(text: str) -> str | None:
    if text in _WORDS:
        return None
    if text.startswith("@every "):
        duration = text.removeprefix("@every ")
        if re.fullmatch(rf"[+-]?({_DURATION.pattern})+", duration) or duration == "0":
            return None
        return f'failed to parse duration {text}: time: invalid duration "{duration}"'
    return f"unrecognized descriptor: {text}"


def _part_error(part: str, low: int, high: int, names: tuple[str, ...], first: int) -> str | None:
    span, slash, step = part.partition("/")
    if "/" in step:
        return f"too many slashes: {part}"
    begin, dash, end = span.partition("-")
    if "-" in end:
        return f"too many hyphens: {part}"
    if span in ("*", "?"):
        start, stop = low, high
    else:
        found = _number(begin, names, first)
        if isinstance(found, str):
            return found
        start = stop = found
        if dash:
            last = _number(end, names, first)
            if isinstance(last, str):
                return last
            stop = last
        elif slash:
            stop = high
    if slash:
        width = _number(step, (), 0)
        if isinstance(width, str):
            return width
        if width == 0:
            return f"step of range should be a positive number: {part}"
    if start < low:
        return f"beginning of range ({start}) below minimum ({low}): {part}"
    if stop > high:
        return f"end of range ({stop}) above maximum ({high}): {part}"
    if start > stop:
        return f"beginning of range ({start}) beyond end of range ({stop}): {part}"
    return None


def _number(text: str, names: tuple[str, ...], first: int) -> int | str:
    if text.lower() in names:
        return names.index(text.lower()) + first
    if re.fullmatch(r"[+-]?[0-9]+", text):
        value = int(text)
        return value if value >= 0 else f"negative number ({value}) not allowed: {text}"
    return f'failed to parse int from {text}: strconv.Atoi: parsing "{text}": invalid syntax'
