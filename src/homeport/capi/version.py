"""Kubernetes versions: `v1.31.2`, `1.32.0-beta.1+build.5`. Parsed once, compared by the rules of semantic versions."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

_VERSION = re.compile(
    r"v?(?P<major>0|[1-9]\d*)\.(?P<minor>0|[1-9]\d*)\.(?P<patch>0|[1-9]\d*)"
    r"(?:-(?P<pre>[0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*))?(?:\+(?P<build>[0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*))?"
)

Identifier = tuple[int, int, str]  # numbers before words, numbers by value


class Version(NamedTuple):
    """Orders as it should, build tags left out: `a < b`. `build_key` counts them in."""

    major: int
    minor: int
    patch: int
    release: int  # 1: a release, which comes after all its pre-releases
    pre: tuple[Identifier, ...]
    text: str  # as it was written; never decides, for equal numbers with other build tags compare by `key`

    @property
    def key(self) -> tuple[int, int, int, int, tuple[Identifier, ...]]:
        return (self.major, self.minor, self.patch, self.release, self.pre)

    @property
    def build(self) -> str:
        return self.text.partition("+")[2]

    @property
    def build_key(self) -> tuple[tuple[int, int, int, int, tuple[Identifier, ...]], tuple[Identifier, ...]]:
        return (self.key, _identifiers(self.build))

    @property
    def line(self) -> tuple[int, int]:
        """Major and minor: what skew is counted in."""
        return (self.major, self.minor)

    def __str__(self) -> str:
        return self.text if self.text.startswith("v") else f"v{self.text}"

    def __lt__(self, other: object) -> bool:
        return self.key < other.key if isinstance(other, Version) else NotImplemented

    def __le__(self, other: object) -> bool:
        return self.key <= other.key if isinstance(other, Version) else NotImplemented

    def __gt__(self, other: object) -> bool:
        return self.key > other.key if isinstance(other, Version) else NotImplemented

    def __ge__(self, other: object) -> bool:
        return self.key >= other.key if isinstance(other, Version) else NotImplemented

    def __eq__(self, other: object) -> bool:
        return self.key == other.key if isinstance(other, Version) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.key)


def _identifiers(text: str) -> tuple[Identifier, ...]:
    return tuple((0, int(part), "") if part.isdigit() else (1, 0, part) for part in text.split(".") if part)


@lru_cache(maxsize=1024)
def parse(text: str) -> Version:
    """Raises ValueError for anything else than a full version."""
    found = _VERSION.fullmatch(text)
    if found is None:
        raise ValueError(f"{text!r} is not a valid Kubernetes version: expected for example v1.32.4")
    pre = found["pre"] or ""
    return Version(int(found["major"]), int(found["minor"]), int(found["patch"]), int(not pre), _identifiers(pre), text)


def is_valid(text: str) -> bool:
    return _VERSION.fullmatch(text) is not None


def same(a: str, b: str) -> bool:
    """The same version, however written; build tags count, for images of machines differ by them."""
    return parse(a).build_key == parse(b).build_key


def is_at(kubelet: str, wanted: str) -> bool:
    """Whether a kubelet that reports `kubelet` has the version `wanted`. Those of k0s report no number of their build:
    `v1.29.2+k0s` is `v1.29.2+k0s.0`."""
    if kubelet == wanted:
        return True
    if not is_valid(kubelet) or not is_valid(wanted):
        return False
    one, other = parse(kubelet), parse(wanted)
    return one.key == other.key and one.build == "k0s" and other.build.startswith("k0s.")


def minor_distance(a: str, b: str) -> int:
    """How many minor versions `b` is ahead of `a`. Only within one major version there is a distance."""
    old, new = parse(a), parse(b)
    if old.major != new.major:
        raise ValueError(
            f"{a} and {b} have different major versions: the number of minor versions between them is undefined"
        )
    return new.minor - old.minor
