"""Semantic versions and what they are asked for: `>= 1.30 < 1.33.0-0`, `~1.2`, `^2`, `1.2.x`, `1.0 - 2.0`, `||`."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import re2

from homeport.machinery.gotemplate.error import CallError
from homeport.machinery.gotemplate.function import functions
from homeport.machinery.gotemplate.value import Object, Uint64

_LARGEST: Final = (1 << 64) - 1
_LONGEST: Final = 1024
_TAGS: Final = r"(?:-([0-9A-Za-z\-]+(?:\.[0-9A-Za-z\-]+)*))?(?:\+([0-9A-Za-z\-]+(?:\.[0-9A-Za-z\-]+)*))?"
_VERSION: Final = re2.compile(rf"v?([0-9]+)(?:\.([0-9]+))?(?:\.([0-9]+))?{_TAGS}")
_WILD: Final = rf"v?([0-9xX*]+)(?:\.([0-9xX*]+))?(?:\.([0-9xX*]+))?{_TAGS}"
_OPERATOR: Final = r"(!=|>=|=>|<=|=<|~>|=|>|<|~|\^)?"
_ONE: Final = re2.compile(rf"\s*{_OPERATOR}\s*{_WILD}\s*")
_FIND: Final = re2.compile(rf"{_OPERATOR}\s*{_WILD}")
_ALL: Final = re2.compile(rf"\s*{_OPERATOR}\s*{_WILD}\s*(?:(?:\s+|,\s*){_OPERATOR}\s*{_WILD}\s*)*")
_RANGE: Final = re2.compile(rf"\s*({_WILD})\s+-\s+({_WILD})\s*")
_ANY: Final = frozenset({"x", "X", "*"})

Key = tuple[int, int, int, bool, list[tuple[int, int, str]]]


class Version(Object):
    type_name = "*semver.Version"

    def __init__(self, numbers: tuple[int, int, int], pre: str, build: str, original: str) -> None:
        self.numbers = numbers
        self.pre = pre
        self.build = build
        self.original = original

    def __str__(self) -> str:
        text = ".".join(map(str, self.numbers))
        return text + (f"-{self.pre}" if self.pre else "") + (f"+{self.build}" if self.build else "")

    @property
    def key(self) -> Key:
        """A release comes after all its pre-releases; numbers come before words."""
        parts = [_part(each) for each in self.pre.split(".")] if self.pre else []
        return (*self.numbers, not self.pre, parts)

    def method(self, name: str) -> tuple[tuple[str, ...], Any] | None:
        facts: dict[str, Callable[[], Any]] = {
            "Major": lambda: Uint64(self.numbers[0]),
            "Minor": lambda: Uint64(self.numbers[1]),
            "Patch": lambda: Uint64(self.numbers[2]),
            "Prerelease": lambda: self.pre,
            "Metadata": lambda: self.build,
            "Original": lambda: self.original,
            "String": lambda: str(self),
            "IncMajor": lambda: self._next(0),
            "IncMinor": lambda: self._next(1),
            "IncPatch": lambda: self._next(2),
        }
        if name in facts:
            return (), facts[name]
        compared: dict[str, Callable[[Key, Key], Any]] = {
            "Compare": lambda mine, other: (mine > other) - (mine < other),
            "Equal": lambda mine, other: mine == other,
            "LessThan": lambda mine, other: mine < other,
            "LessThanEqual": lambda mine, other: mine <= other,
            "GreaterThan": lambda mine, other: mine > other,
            "GreaterThanEqual": lambda mine, other: mine >= other,
        }
        if name in compared:
            return ("any",), lambda other: compared[name](self.key, _version(other).key)
        return None

    def _next(self, place: int) -> Version:
        """A pre-release is followed by its release."""
        before = self.numbers
        keep = place == 2 and bool(self.pre)
        made = tuple(n + (i == place and not keep) if i <= place else 0 for i, n in enumerate(before))
        text = ("v" if self.original.startswith("v") else "") + ".".join(map(str, made))
        return Version((made[0], made[1], made[2]), "", "", text)


def _version(value: Any) -> Version:
    if not isinstance(value, Version):
        raise CallError("it is compared with another semver")
    return value


def _part(text: str) -> tuple[int, int, str]:
    number = int(text) if text.isascii() and text.isdigit() and len(text) < 21 else _LARGEST + 1
    return (0, number, "") if number <= _LARGEST else (1, 0, text)


@functools.lru_cache(maxsize=512)
def parse(text: str) -> Version:
    found = _VERSION.fullmatch(text) if len(text) <= _LONGEST and text.isascii() else None
    if found is None:
        raise CallError(f"{text[:80]!r} is not a valid version: expected for example v1.33.1")
    numbers = tuple(int(found[i] or 0) for i in (1, 2, 3))
    pre, build = found[4] or "", found[5] or ""
    if max(numbers) > _LARGEST:
        raise CallError(f"{text[:80]!r} is not a valid version: a number is too large")
    if any(part.isdigit() and len(part) > 1 and part[0] == "0" for part in pre.split(".")):
        raise CallError(f"{text[:80]!r} is not a valid version: a number of its pre-release begins with 0")
    return Version((numbers[0], numbers[1], numbers[2]), pre, build, text)


@dataclass(frozen=True, slots=True)
class _Constraint:
    operator: str
    wanted: Version
    wild: int  # how many of its numbers are given; 3: all, and it means that version

    def holds(self, version: Version, *, previews: bool) -> bool:
        if version.pre and not previews:
            return False
        check: dict[str, Callable[[Version], bool]] = {
            "": self._equal, "=": self._equal, "!=": self._unequal,
            ">": self._greater, "<": lambda v: v.key < self.wanted.key,
            ">=": lambda v: v.key >= self.wanted.key, "=>": lambda v: v.key >= self.wanted.key,
            "<=": self._less_or_equal, "=<": self._less_or_equal,
            "~": self._tilde, "~>": self._tilde, "^": self._caret,
        }  # fmt: skip
        return check[self.operator](version)

    def _equal(self, version: Version) -> bool:
        return self._tilde(version) if self.wild < 3 else version.key == self.wanted.key

    def _unequal(self, version: Version) -> bool:
        if self.wild == 3:
            return version.key != self.wanted.key
        given = max(self.wild, 1)
        if version.numbers[:given] != self.wanted.numbers[:given]:
            return True
        if self.wild == 0:
            # All numbers are free, but upstream compares with 0.0.0 here.
            return version.key != self.wanted.key
        return self.wild == 2 and bool(version.pre or self.wanted.pre) and version.pre != self.wanted.pre

    def _greater(self, version: Version) -> bool:
        if self.wild in (0, 3):
            return version.key > self.wanted.key
        return version.numbers[: self.wild] > self.wanted.numbers[: self.wild]

    def _less_or_equal(self, version: Version) -> bool:
        if self.wild == 3:
            return version.key <= self.wanted.key
        given = 1 if self.wild == 1 else 2
        return version.numbers[:given] <= self.wanted.numbers[:given]

    def _tilde(self, version: Version) -> bool:
        if version.key < self.wanted.key:
            return False
        if self.wanted.numbers == (0, 0, 0) and self.wild in (0, 3):
            return True
        given = 1 if self.wild == 1 else 2
        return version.numbers[:given] == self.wanted.numbers[:given]

    def _caret(self, version: Version) -> bool:
        if version.key < self.wanted.key:
            return False
        major, minor, _ = self.wanted.numbers
        if major > 0 or self.wild == 1:
            return version.numbers[0] == major
        if version.numbers[0] > 0:
            return False
        if minor > 0 or self.wild == 2:
            return version.numbers[1] == minor
        return version.numbers == self.wanted.numbers


@functools.lru_cache(maxsize=512)
def _constraints(text: str) -> tuple[tuple[_Constraint, ...], ...]:
    if len(text) > _LONGEST or not text.isascii():
        raise CallError(f"{text[:80]!r} is not a valid constraint: expected for example '>= 1.30.0, < 1.33'")
    text = _RANGE.sub(_rewritten, text)
    return tuple(_group(part) for part in text.split("||"))


def _rewritten(found: Any) -> str:
    return f">= {found[1]}, <= {found[7]} "


def _group(text: str) -> tuple[_Constraint, ...]:
    if _ALL.fullmatch(text) is None:
        raise CallError(f"{text!r} is not a valid constraint: expected for example '>= 1.30.0, < 1.33'")
    return tuple(_one(found.group()) for found in _FIND.finditer(text))


def _one(text: str) -> _Constraint:
    found = _ONE.fullmatch(text)
    assert found is not None
    tags = f"-{found[5]}" if found[5] else ""
    numbers = [found[i] or "*" for i in (2, 3, 4)]
    wild = next((i for i, each in enumerate(numbers) if each in _ANY), 3)
    known = numbers[:wild] + ["0"] * (3 - wild)
    if not all(each.isdigit() for each in known):
        raise CallError(f"{text!r} is not a valid constraint: a number is expected")
    return _Constraint(found[1] or "", parse(".".join(known) + tags), wild)


def satisfies(constraint: str, version: str) -> bool:
    groups = _constraints(constraint)
    found = parse(version)
    return any(
        all(each.holds(found, previews=any(one.wanted.pre for one in group)) for each in group) for group in groups
    )


FUNCTIONS: Final = functions({"semver": ("string", parse), "semverCompare": ("string string", satisfies)}, cheap=True)
