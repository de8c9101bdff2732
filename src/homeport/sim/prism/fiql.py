"""The filters of v3 lists: `name==web-1;power_state==ON`. `;` is and, `,` is or; values may hold `*`."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from fnmatch import fnmatchcase
from typing import Any

_TERM = re.compile(r"\s*([\w.]+)\s*(==|!=|=gt=|=ge=|=lt=|=le=)\s*(.*?)\s*$", re.DOTALL)
_ORDER: dict[str, Callable[[Any, Any], bool]] = {
    "=gt=": lambda a, b: bool(a > b),
    "=ge=": lambda a, b: bool(a >= b),
    "=lt=": lambda a, b: bool(a < b),
    "=le=": lambda a, b: bool(a <= b),
}


class FiqlError(ValueError):
    """What is wrong with a filter."""


Term = tuple[str, str, str]


class FiqlFilter:
    """A disjunction of conjunctions. Fields are looked up in what the caller makes of an entity."""

    def __init__(self, text: str) -> None:
        self._any: list[list[Term]] = []
        if text.strip():
            self._any = [[_term(part) for part in group.split(";")] for group in text.split(",")]

    @property
    def fields(self) -> frozenset[str]:
        return frozenset(field for group in self._any for field, _, _ in group)

    def matches(self, values: Mapping[str, Any]) -> bool:
        return not self._any or any(all(_holds(term, values) for term in group) for group in self._any)


def _term(text: str) -> Term:
    found = _TERM.fullmatch(text)
    if found is None:
        raise FiqlError(f"{text.strip()!r} is not a valid condition: expected for example name==web-1")
    return found.group(1), found.group(2), found.group(3).strip("'\"")


def _holds(term: Term, values: Mapping[str, Any]) -> bool:
    field, operator, wanted = term
    value = values.get(field)
    if operator in ("==", "!="):
        texts = [str(each) for each in value] if isinstance(value, list | tuple) else [_text(value)]
        same = any(fnmatchcase(text, wanted) if "*" in wanted else text == wanted for text in texts)
        return same == (operator == "==")
    try:
        number = float(wanted)
        return isinstance(value, int | float) and _ORDER[operator](value, number)
    except ValueError:
        return isinstance(value, str) and _ORDER[operator](value, wanted)


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return "" if value is None else str(value)
