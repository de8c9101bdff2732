"""The order of keys in the YAML of Helm's toYaml."""

from __future__ import annotations

import functools
from typing import Any


def sorted_keys(value: dict[str, Any], *, newer: bool = False) -> list[str]:
    """Letters come after everything else, and numbers count: a2 comes before a10."""
    if all(key.isascii() and key.isalpha() for key in value):
        return sorted(value)
    return sorted(value, key=functools.cmp_to_key(_compare_newer if newer else _compare))


def _compare(left: str, right: str) -> int:
    return 0 if left == right else -1 if _less(left, right, newer=False) else 1


def _compare_newer(left: str, right: str) -> int:
    return 0 if left == right else -1 if _less(left, right, newer=True) else 1


def _less(left: str, right: str, *, newer: bool) -> bool:
    digits = False
    for i, (a, b) in enumerate(zip(left, right, strict=False)):
        if a == b:
            digits = a.isdecimal()
            continue
        if a.isalpha() and b.isalpha():
            return a < b
        if a.isalpha() or b.isalpha():
            return a.isalpha() if newer and digits else b.isalpha()
        return _less_by_number(left, right, i)
    return len(left) < len(right)


def _less_by_number(left: str, right: str, i: int) -> bool:
    start = 0
    if "0" in (left[i], right[i]):
        before = i - 1
        while before >= 0 and left[before].isdecimal():
            if left[before] != "0":
                start = 1
                break
            before -= 1
    numbers = []
    for text in (left, right):
        end, value = i, start
        while end < len(text) and text[end].isdecimal():
            value = value * 10 + ord(text[end]) - 48
            end += 1
        numbers.append((value, end))
    (a, a_end), (b, b_end) = numbers
    if a != b:
        return a < b
    if a_end != b_end:
        return a_end < b_end
    return left[i] < right[i]
