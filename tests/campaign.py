"""What `make campaign` runs in full and every other run only in part: many seeds, many moments.

A test belongs to the campaign if its module imports this one.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Final, TypeVar

T = TypeVar("T")

CAMPAIGN: Final = bool(os.environ.get("HOMEPORT_CAMPAIGN"))


def sample(values: Sequence[T], number: int) -> list[T]:
    """All values in a campaign; otherwise so many of them, the first and the last among them."""
    if CAMPAIGN or number >= len(values):
        return list(values)
    if number == 1:
        return [values[0]]
    return [values[round(place * (len(values) - 1) / (number - 1))] for place in range(number)]
