"""Regular expressions with Go's meaning: RE2 syntax, linear time, matching anywhere unless anchored."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import re2

_OPTIONS = re2.Options()
_OPTIONS.log_errors = False

Search = Callable[[str], Any]


class PatternError(ValueError):
    """A pattern that RE2 can't read; the text says what is wrong with it."""


@lru_cache(maxsize=4096)
def search(pattern: str) -> Search:
    """A function that is truthy for the strings in which the pattern is found."""
    try:
        found: Search = re2.compile(pattern, _OPTIONS).search
    except re2.error as error:
        text = error.args[0] if error.args else error
        raise PatternError(text.decode() if isinstance(text, bytes) else str(text)) from None
    return found
