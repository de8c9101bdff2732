"""Defaults, and one value or another."""

from __future__ import annotations

from typing import Any, Final

from homeport.machinery.gotemplate.function import functions
from homeport.machinery.gotemplate.value import truth


def default(fallback: object, *given: object) -> Any:
    return given[0] if given and truth(given[0]) else fallback


def coalesce(*values: object) -> Any:
    return next((value for value in values if truth(value)), None)


FUNCTIONS: Final = functions(
    {
        "default": ("any ...any", default),
        "empty": ("any", lambda value: not truth(value)),
        "coalesce": ("...any", coalesce),
        "all": ("...any", lambda *values: all(map(truth, values))),
        "any": ("...any", lambda *values: any(map(truth, values))),
        "ternary": ("any any bool", lambda yes, no, which: yes if which else no),
    },
    cheap=True,
)
