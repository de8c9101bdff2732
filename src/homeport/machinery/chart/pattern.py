"""Patterns of file names: those of .helmignore (Go's filepath.Match) and those of .Files.Glob."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Final

import re2

from homeport.machinery.gotemplate.value import octets

# A chart brings the pattern and the names: re2 needs the same time for every character, whatever the pattern.
_OPTIONS: Final = re2.Options()
_OPTIONS.log_errors = False
_OPTIONS.dot_nl = True


class BadPattern(ValueError):
    pass


def match(pattern: str) -> Callable[[str], bool]:
    """Go's filepath.Match: `*` and `?` don't match a slash, `[^a-z]` is a negated class. Raises BadPattern."""
    parts: list[str] = []
    signs = iter(pattern)
    for sign in signs:
        if sign == "*":
            parts.append("[^/]*")
        elif sign == "?":
            parts.append("[^/]")
        elif sign == "[":
            parts.append(_class(signs, "^"))
        else:
            parts.append(re.escape(_escaped(signs) if sign == "\\" else sign))
    return _compiled(parts)


def glob(pattern: str) -> Callable[[str], bool]:
    """`**` matches slashes as well, `{a,b}` either, `[!a-z]` is a negated class. Raises BadPattern."""
    parts: list[str] = []
    signs = iter(pattern)
    depth = 0
    for sign in signs:
        if sign == "*":
            parts.append("*")
        elif sign == "?":
            parts.append("[^/]")
        elif sign == "[":
            parts.append(_class(signs, "!"))
        elif sign == "{":
            depth += 1
            parts.append("(?:")
        elif sign == "}" and depth:
            depth -= 1
            parts.append(")")
        elif sign == "," and depth:
            parts.append("|")
        else:
            parts.append(re.escape(_escaped(signs) if sign == "\\" else sign))
    if depth:
        raise BadPattern("a { is not closed")
    return _compiled(_stars(parts))


def _stars(parts: list[str]) -> list[str]:
    """Two or more stars match everything, one matches what has no slash."""
    made: list[str] = []
    for i, part in enumerate(parts):
        if part != "*":
            made.append(part)
        elif i and parts[i - 1] == "*":
            made[-1] = ".*"
            made.append("")
        else:
            made.append("[^/]*")
    return made


def _compiled(parts: list[str]) -> Callable[[str], bool]:
    try:
        found = re2.compile(octets("".join(parts)), _OPTIONS)
    except re2.error as error:
        raise BadPattern(str(error)) from None
    return lambda name: found.fullmatch(octets(name)) is not None


def _escaped(signs: Iterator[str]) -> str:
    sign = next(signs, "")
    if not sign:
        raise BadPattern("nothing stands behind the last backslash")
    return sign


def _class(signs: Iterator[str], negation: str) -> str:
    inside: list[str] = []
    first = True
    for sign in signs:
        if sign == "]" and inside and inside != ["^"]:
            return f"[{''.join(inside)}]"
        if sign == negation and first:
            inside.append("^")
        elif sign == "-" and not first:
            inside.append("-")
        else:
            inside.append(re.escape(_escaped(signs) if sign == "\\" else sign))
        first = False
    raise BadPattern("a [ is not closed")
