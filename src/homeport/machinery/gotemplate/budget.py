"""Limits of a template's work. Templates come from users, and must not block the process that renders them."""

from __future__ import annotations

from typing import Any, Final

from homeport.machinery.gotemplate.error import CallError
from homeport.machinery.gotemplate.value import Struct

LARGEST: Final = 4 << 20  # bytes of the text, and of any value in between
_MOST_STEPS: Final = 200_000
_MOST_WORK: Final = 2_000_000
_DEEPEST: Final = 200  # lists and maps inside of each other
_CHARACTERS: Final = 16  # that cost as much as one item of a list
_ACTION: Final = 32  # items of a list that cost as much as an action does when it is parsed


class Budget:
    def __init__(self, steps: int = _MOST_STEPS, work: int = _MOST_WORK, largest: int = LARGEST) -> None:
        self._most_steps = steps
        self._most_work = work
        self._largest = largest
        self._steps = 0
        self._work = 0

    def step(self) -> None:
        self._steps += 1
        if self._steps > self._most_steps:
            raise CallError(f"the template does not come to an end: it takes more than {self._most_steps} steps")

    def read(self, text: str) -> None:
        """For parsing a template, which takes time by its actions."""
        self._work += text.count("{{") * _ACTION
        self._check()

    def glance(self, *values: object) -> None:
        """For going over the items of the values, but not into them."""
        for value in values:
            if isinstance(value, str):
                self._work += len(value) // _CHARACTERS
            elif isinstance(value, dict | list):
                self._work += len(value)
        self._check()

    def spend(self, *values: object) -> None:
        """For going over the values once. Raises if it becomes too much, or if one of them is too large."""
        for value in values:
            if isinstance(value, str):
                self._work += len(value) // _CHARACTERS
                size = len(value)
            elif isinstance(value, dict | list | bytes | Struct):
                known: dict[int, int] = {}
                size = self._size(value, known, 0)
            else:
                continue
            if size > self._largest:
                raise CallError(f"a value becomes larger than {self._largest} characters")
        self._check()

    def _check(self) -> None:
        if self._work > self._most_work:
            raise CallError("the template goes over large values too often")

    def _size(self, value: Any, known: dict[int, int], depth: int) -> int:
        """Unfolded, as if it was printed. `known` holds what was seen, so that parts used twice are visited once."""
        if isinstance(value, str):
            self._work += len(value) // _CHARACTERS
            return len(value) + 1
        if isinstance(value, bytes):
            self._work += len(value) // _CHARACTERS
            return len(value)
        if isinstance(value, Struct):
            value = value.fields
        if not isinstance(value, dict | list):
            return 1
        key = id(value)
        if key in known:
            if known[key] < 0:
                raise CallError("a value contains itself")
            return known[key]
        if depth > _DEEPEST:
            raise CallError(f"a value is nested deeper than {_DEEPEST}")
        known[key] = -1
        self._work += len(value) + 1
        if isinstance(value, dict):
            size = 1 + sum(len(name) + self._size(below, known, depth + 1) for name, below in value.items())
        else:
            size = 1 + sum(self._size(below, known, depth + 1) for below in value)
        known[key] = size
        return size
