"""Numbers that may be given as a percentage. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from homeport.client.errors import Cause

_PERCENT = re.compile(r"([0-9]+)%")


def share_of(value: int | str, total: int, *, up: bool) -> int:
    """An absolute number, or a percentage of `total` rounded up or down. Raises ValueError."""
    if isinstance(value, int):
        return value
    found = _PERCENT.fullmatch(value)
    if found is None:
        raise ValueError(f"{value!r} is not a number or a percentage: expected for example 1 or 25%")
    part = int(found[1]) * total
    return -(-part // 100) if up else part // 100


def share_trouble(value: object) -> str:
    """What is wrong with a number or percentage; '' when nothing is."""
    if isinstance(value, bool) or not isinstance(value, int | str):
        return "must be a number or a percentage, for example 1 or 25%"
    try:
        return "" if share_of(value, 100, up=True) >= 0 else "must not be negative"
    except ValueError as error:
        return str(error)


def share_causes(held: Mapping[str, Any], path: str, *fields: str) -> Iterator[Cause]:
    for field in fields:
        wrong = share_trouble(held[field]) if held.get(field) is not None else ""
        if wrong:
            yield Cause.invalid(f"{path}.{field}", f'"{held[field]}": {wrong}')


def rolling_causes(limits: Mapping[str, Any], path: str) -> Iterator[Cause]:
    """What is wrong with the limits of a rolling update."""
    yield from share_causes(limits, path, "maxSurge", "maxUnavailable")
    if limits.get("maxSurge") == 0 and limits.get("maxUnavailable") == 0:
        yield Cause.invalid(path, "maxSurge and maxUnavailable can't both be 0: no Machine could be replaced")
