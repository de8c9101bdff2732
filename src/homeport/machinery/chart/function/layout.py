"""Times in Go's layouts: 2006-01-02T15:04:05Z07:00 and the like."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, timezone
from typing import Final

import re2

from homeport.machinery.gotemplate.value import octets, text_of

MONTHS: Final = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November",
    "December",
)  # fmt: skip
DAYS: Final = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_PART: Final = re.compile(
    r"January|Jan(?![a-z])|Monday|Mon(?![a-z])|MST|2006|__2|_2(?!006)|002|0[1-6]|15|PM|pm"
    r"|[Z-]07:00:00|[Z-]070000|[Z-]07:00|[Z-]0700|[Z-]07|[.,]0+(?![0-9])|[.,]9+(?![0-9])|[12345]"
)
_TWO: Final = "([0-9]{2})"
_ONE_OR_TWO: Final = "([0-9]{1,2})"
_READ: Final = {
    "2006": "([0-9]{4})", "06": _TWO, "01": _TWO, "1": _ONE_OR_TWO, "02": _TWO, "2": _ONE_OR_TWO,
    "_2": " ?([0-9]{1,2})",
    "002": "([0-9]{3})", "__2": " {0,2}([0-9]{1,3})", "15": _ONE_OR_TWO, "03": _TWO, "3": _ONE_OR_TWO, "04": _TWO,
    "4": _ONE_OR_TWO, "PM": "(AM|PM)", "pm": "(am|pm)", "MST": "([A-Z]{3,4}|[+-][0-9]{2,4})",
    "January": f"({'|'.join(MONTHS)})", "Jan": f"({'|'.join(each[:3] for each in MONTHS)})",
    "Monday": f"({'|'.join(DAYS)})", "Mon": f"({'|'.join(each[:3] for each in DAYS)})",
}  # fmt: skip
_OPTIONS: Final = re2.Options()
_OPTIONS.encoding = re2.Options.Encoding.LATIN1  # byte by byte: a layout may hold anything
_LONGEST: Final = 1000  # characters of a layout that a time is read by


class LayoutError(ValueError):
    pass


def formatted(moment: datetime, layout: str, nanosecond: int = 0) -> str:
    return _PART.sub(lambda found: _written(moment, found[0], nanosecond), layout)


def _written(moment: datetime, part: str, nanosecond: int) -> str:
    if part[0] in ".,":
        digits = f"{nanosecond:09d}"[: len(part) - 1]
        digits = digits.rstrip("0") if part[1] == "9" else digits
        return part[0] + digits if digits else ""
    if part[0] in "Z-" and part[1:2] == "0":
        return _offset(moment, part)
    hour = moment.hour % 12 or 12
    year_day = moment.timetuple().tm_yday
    table = {
        "2006": f"{moment.year:04d}", "06": f"{moment.year % 100:02d}", "01": f"{moment.month:02d}",
        "1": str(moment.month), "02": f"{moment.day:02d}", "2": str(moment.day), "_2": f"{moment.day:2d}",
        "002": f"{year_day:03d}", "__2": f"{year_day:3d}", "15": f"{moment.hour:02d}", "03": f"{hour:02d}",
        "3": str(hour), "04": f"{moment.minute:02d}", "4": str(moment.minute), "05": f"{moment.second:02d}",
        "5": str(moment.second), "PM": "AM" if moment.hour < 12 else "PM", "pm": "am" if moment.hour < 12 else "pm",
        "January": MONTHS[moment.month - 1], "Jan": MONTHS[moment.month - 1][:3],
        "Monday": DAYS[moment.weekday()], "Mon": DAYS[moment.weekday()][:3],
    }  # fmt: skip
    return table[part] if part in table else _zone(moment)


def _zone(moment: datetime) -> str:
    if isinstance(moment.tzinfo, timezone) and moment.tzinfo is not UTC:
        return _offset(moment, "-0700")
    return moment.tzname() or ""


def _seconds(moment: datetime) -> int:
    return int((moment.utcoffset() or timedelta()).total_seconds())


def _offset(moment: datetime, part: str) -> str:
    seconds = _seconds(moment)
    if part[0] == "Z" and seconds == 0:
        return "Z"
    sign, size = "-" if seconds < 0 else "+", abs(seconds)
    hours, minutes, rest = size // 3600, size // 60 % 60, size % 60
    mark = ":" if ":" in part else ""
    made = f"{sign}{hours:02d}"
    digits = sum(c.isdigit() for c in part)
    if digits > 2:
        made += f"{mark}{minutes:02d}"
    return f"{made}{mark}{rest:02d}" if digits > 4 else made


def parsed(layout: str, text: str) -> tuple[datetime, int]:
    """The time and its nanoseconds. Raises LayoutError."""
    if len(layout) > _LONGEST:
        raise LayoutError(f"the layout is longer than {_LONGEST} characters")
    names: list[str] = []
    pattern: list[str] = []
    position = 0
    for found in _PART.finditer(layout):
        pattern.append(re.escape(layout[position : found.start()]))
        position = found.end()
        names.append(found[0])
        pattern.append(_reading(found[0]))
    pattern.append(re.escape(layout[position:]))
    got = re2.compile(octets("".join(pattern)), _OPTIONS).fullmatch(octets(text))
    if got is None:
        raise LayoutError(f"{text!r} does not look like {layout!r}")
    values = [text_of(value or b"") for value in got.groups()]
    return _assembled(dict(zip(names, values, strict=True)), text)


def _reading(part: str) -> str:
    if part in ("05", "5"):
        return (r"([0-9]{2}" if part == "05" else r"([0-9]{1,2}") + r"(?:[.,][0-9]+)?)"
    if part[0] in ".,":
        return r"((?:[.,][0-9]+)?)" if part[1] == "9" else rf"([.,][0-9]{{{len(part) - 1}}})"
    if part[0] in "Z-" and part[1:2] == "0":
        digits = part[1:].replace("07", "[0-9]{2}", 1).replace("00", "[0-9]{2}")
        return f"(Z|[+-]{digits})" if part[0] == "Z" else f"([+-]{digits})"
    return _READ[part]


def _assembled(parts: dict[str, str], text: str) -> tuple[datetime, int]:
    def number(*names: str, default: int) -> int:
        return next((int(parts[name]) for name in names if name in parts), default)

    short = next((int(parts["06"]) for _ in "x" if "06" in parts), None)
    year = number("2006", default=0) if short is None else short + (1900 if short >= 69 else 2000)
    month = number("01", "1", default=1)
    for name in ("January", "Jan"):
        if name in parts:
            month = next(i for i, each in enumerate(MONTHS, 1) if each.startswith(parts[name]))
    second, _, fraction = (parts.get("05") or parts.get("5") or "0").replace(",", ".").partition(".")
    fraction = fraction or next((value[1:] for name, value in parts.items() if name[0] in ".," and value), "")
    hour = number("15", "03", "3", default=0)
    half = (parts.get("PM") or parts.get("pm") or "").upper()
    hour = hour + 12 if half == "PM" and hour < 12 else 0 if half == "AM" and hour == 12 else hour
    nanosecond = int(fraction[:9].ljust(9, "0")) if fraction else 0
    try:
        made = datetime(
            max(year, 1), month, number("02", "2", "_2", default=1), hour, number("04", "4", default=0), int(second),
            nanosecond // 1000, _parsed_zone(parts),
        )  # fmt: skip
    except ValueError as wrong:
        raise LayoutError(f"{text!r}: {wrong}") from None
    if "002" in parts or "__2" in parts:
        made = made.replace(month=1, day=1) + timedelta(days=number("002", "__2", default=1) - 1)
    return made, nanosecond


def _parsed_zone(parts: dict[str, str]) -> timezone:
    given = next((value for name, value in parts.items() if name[0] in "Z-" and name[1:2] == "0"), "Z")
    if given == "Z":
        return UTC
    digits = given[1:].replace(":", "").ljust(6, "0")
    seconds = int(digits[:2]) * 3600 + int(digits[2:4]) * 60 + int(digits[4:6])
    return timezone(timedelta(seconds=-seconds if given[0] == "-" else seconds))
