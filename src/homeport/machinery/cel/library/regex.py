"""Regular expressions: RE2, whose time is linear in the text whatever the pattern."""

from __future__ import annotations

import functools
from typing import Any, Final

import re2

from homeport.machinery.cel import types as t
from homeport.machinery.cel.errors import EvaluationError
from homeport.machinery.cel.library.registry import Function, function, method

_REMEMBERED: Final = 256
_LONGEST_REMEMBERED: Final = 256


def _options() -> Any:
    options = re2.Options()
    options.log_errors = False  # the error is raised; it need not be on stderr as well
    return options


_OPTIONS: Final = _options()


class Pattern:
    """A compiled pattern. Remembers recent answers: the same few names are matched over and over."""

    __slots__ = ("_answers", "_compiled", "_search")

    def __init__(self, pattern: str) -> None:
        try:
            self._compiled = re2.compile(pattern.encode("utf-8", "surrogatepass"), _OPTIONS)
        except re2.error as error:
            detail = error.args[0] if error.args else error
            text = detail.decode("utf-8", "replace") if isinstance(detail, bytes) else str(detail)
            raise EvaluationError(f"error parsing regexp: {text}") from error
        self._search = self._compiled.search
        self._answers: dict[str, bool] = {}

    def found(self, text: str) -> bool:
        answer = self._answers.get(text)
        if answer is None:
            answer = self._search(text.encode("utf-8", "surrogatepass")) is not None
            if len(text) <= _LONGEST_REMEMBERED:
                if len(self._answers) >= _REMEMBERED:
                    self._answers.clear()
                self._answers[text] = answer
        return answer

    def find(self, text: str) -> str:
        match = self._search(text.encode("utf-8", "surrogatepass"))
        return "" if match is None else _text(match.group())

    def find_all(self, text: str, limit: int = -1) -> list[str]:
        found: list[str] = []
        last_end = -1
        if limit == 0:
            return found
        for match in self._compiled.finditer(text.encode("utf-8", "surrogatepass")):
            # as in Go, an empty match right behind another match is none
            if match.start() == match.end() == last_end:
                continue
            last_end = match.end()
            found.append(_text(match.group()))
            if 0 < limit <= len(found):
                break
        return found


def _text(found: bytes) -> str:
    return found.decode("utf-8", "surrogatepass")


@functools.lru_cache(maxsize=1024)
def compiled(pattern: str) -> Pattern:
    return Pattern(pattern)


def matches(text: str, pattern: str) -> bool:
    return compiled(pattern).found(text)


def find(text: str, pattern: str) -> str:
    return compiled(pattern).find(text)


def find_all(text: str, pattern: str, limit: int = -1) -> list[str]:
    return compiled(pattern).find_all(text, limit)


def functions() -> list[Function]:
    s, strings = t.STRING, t.list_of(t.STRING)
    return [
        function("matches", "matches", (s, s), t.BOOL, matches),
        method("matches", "matches_string", (s, s), t.BOOL, matches),
        method("find", "string_find_string", (s, s), s, find),
        method("findAll", "string_find_all_string", (s, s), strings, find_all),
        method("findAll", "string_find_all_string_int", (s, s, t.INT), strings, find_all),
    ]
