"""Semantic versions."""

from __future__ import annotations

import re
from typing import Final

from homeport.machinery.cel import types as t
from homeport.machinery.cel.errors import EvaluationError
from homeport.machinery.cel.library.registry import Function, function, method
from homeport.machinery.cel.parse.lexer import INT_MAX, UINT_MAX
from homeport.machinery.reading import reads

_NUMBER: Final = r"(0|[1-9][0-9]{0,19})"
_VERSION: Final = re.compile(
    rf"{_NUMBER}\.{_NUMBER}\.{_NUMBER}"
    r"(?:-([0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*))?(?:\+([0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*))?\Z"
)


class Semver:
    """Ordered by everything but the build metadata."""

    __slots__ = ("major", "minor", "patch", "prerelease")
    cel_type: Final = t.SEMVER

    def __init__(self, major: int, minor: int, patch: int, prerelease: tuple[str, ...]) -> None:
        self.major = major
        self.minor = minor
        self.patch = patch
        self.prerelease = prerelease

    @property
    def _order(self) -> tuple[object, ...]:
        # a release comes after its prereleases, numbers before words
        parts = tuple((0, int(p), "") if p.isdigit() else (1, 0, p) for p in self.prerelease)
        return (self.major, self.minor, self.patch, not parts, parts)

    def compare(self, other: Semver) -> int:
        left, right = self._order, other._order
        return (left > right) - (left < right)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Semver) and self.compare(other) == 0

    def __hash__(self) -> int:
        return hash(self._order)


def parse(text: str) -> Semver:
    match = _VERSION.match(text)
    if match is None:
        raise EvaluationError(f'invalid semantic version "{text}"')
    numbers = [int(part) for part in match.groups()[:3]]
    prerelease = tuple(match.group(4).split(".")) if match.group(4) else ()
    if max(numbers) > UINT_MAX or any(p.isdigit() and len(p) > 1 and p[0] == "0" for p in prerelease):
        raise EvaluationError(f'invalid semantic version "{text}"')
    return Semver(numbers[0], numbers[1], numbers[2], prerelease)


def parse_tolerant(text: str, normalize: bool) -> Semver:
    """Also takes a leading v, leading zeros, and fewer than three numbers."""
    if not normalize:
        return parse(text)
    parts = [_strip_zeros(part) for part in text.removeprefix("v").split(".", 2)]
    if len(parts) < 3 and re.search(r"[+-]", parts[-1]):
        raise EvaluationError("short version cannot contain PreRelease/Build meta data")
    return parse(".".join([*parts, *["0"] * (3 - len(parts))]))


def _strip_zeros(part: str) -> str:
    if len(part) <= 1:
        return part
    stripped = part.lstrip("0")
    return stripped if stripped[:1].isdigit() else "0" + stripped


def is_semver(text: str, normalize: bool = False) -> bool:
    return reads(lambda given: parse_tolerant(given, normalize), text, EvaluationError)


def _int(value: int) -> int:
    return value if value <= INT_MAX else value - 2**64


def functions() -> list[Function]:
    v, s, b, i = t.SEMVER, t.STRING, t.BOOL, t.INT
    return [
        function("semver", "string_to_semver", (s,), v, parse),
        function("semver", "string_bool_to_semver", (s, b), v, parse_tolerant),
        function("isSemver", "is_semver_string", (s,), b, is_semver),
        function("isSemver", "is_semver_string_bool", (s, b), b, is_semver),
        method("isGreaterThan", "semver_is_greater_than", (v, v), b, lambda a, o: a.compare(o) > 0),
        method("isLessThan", "semver_is_less_than", (v, v), b, lambda a, o: a.compare(o) < 0),
        method("compareTo", "semver_compare_to", (v, v), i, Semver.compare),
        method("major", "semver_major", (v,), i, lambda a: _int(a.major)),
        method("minor", "semver_minor", (v,), i, lambda a: _int(a.minor)),
        method("patch", "semver_patch", (v,), i, lambda a: _int(a.patch)),
    ]
