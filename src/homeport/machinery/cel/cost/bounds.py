"""Ranges of sizes and costs that saturate instead of overflowing."""

from __future__ import annotations

import math
from typing import Final, NamedTuple

MAX: Final = 2**64 - 1


class Bounds(NamedTuple):
    """The least and the most something can be."""

    min: int
    max: int

    def plus(self, other: Bounds) -> Bounds:
        return Bounds(min(self.min + other.min, MAX), min(self.max + other.max, MAX))

    def times(self, other: Bounds) -> Bounds:
        return Bounds(min(self.min * other.min, MAX), min(self.max * other.max, MAX))

    def scaled(self, factor: float) -> Bounds:
        """Multiplied and rounded up."""
        return Bounds(_scale(self.min, factor), _scale(self.max, factor))

    def union(self, other: Bounds) -> Bounds:
        return Bounds(min(self.min, other.min), max(self.max, other.max))


def _scale(value: int, factor: float) -> int:
    product = float(value) * factor
    return MAX if product >= 2.0**64 else math.ceil(product)


def fixed(value: int) -> Bounds:
    return Bounds(value, value)


UNKNOWN: Final = Bounds(0, MAX)
ZERO: Final = fixed(0)
ONE: Final = fixed(1)
