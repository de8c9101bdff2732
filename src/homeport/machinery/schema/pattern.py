"""Regular expressions with Go's meaning: RE2 syntax, linear time, matching anywhere unless anchored."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any, Final

import re2

_OPTIONS = re2.Options()
_OPTIONS.log_errors = False

Search = Callable[[str], Any]


# What RE2 says, and how Go says it.
_WORDS: Final = {
    "missing )": "missing closing )",
    "missing ]": "missing closing ]",
    "trailing \\": "trailing backslash at end of expression",
    "no argument for repetition operator": "missing argument to repetition operator",
    "invalid repetition size": "invalid repeat count",
    "bad repetition operator": "invalid nested repetition operator",
    "invalid perl operator": "invalid or unsupported Perl syntax",
    "invalid named capture group": "invalid named capture",
}


class PatternError(ValueError):
    """A pattern that RE2 can't read; the text says what is wrong with it, in Go's words."""


@lru_cache(maxsize=4096)
def search(pattern: str) -> Search:
    """A function that is truthy for the strings in which the pattern is found."""
    try:
        found: Search = re2.compile(pattern, _OPTIONS).search
    except re2.error as error:
        text = error.args[0] if error.args else error
        raise PatternError(_worded(text.decode() if isinstance(text, bytes) else str(text), pattern)) from None
    return found


def _worded(text: str, pattern: str) -> str:
    what, _, where = text.partition(": ")
    word = _WORDS.get(what, what)
    return f"error parsing regexp: {word}: `{where or pattern}`"
