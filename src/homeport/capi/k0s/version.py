"""Versions of k0s: `v1.33.4+k0s.0`. Image tags can't contain `+`, so that the same version is also `v1.33.4-k0s.0`."""

from __future__ import annotations

import functools
import re
from functools import lru_cache
from typing import Any, NamedTuple

from homeport.capi import version as kubernetes
from homeport.capi.version import Version
from homeport.machinery.reading import reads

_SUFFIX = re.compile(r"(?P<kubernetes>.+?)(?:[+-]k0s\.(?P<build>\d+)(?P<rest>\.[0-9A-Za-z.-]+)?)?")


@functools.total_ordering
class K0sVersion(NamedTuple):
    """One version however it was written; ordered by the Kubernetes version and then by the build of k0s."""

    kubernetes: Version
    build: int  # k0s.BUILD; 0 if none was written, as for images
    rest: str  # of a build between two releases: `.dirty`
    suffixed: bool  # whether the build was written

    @property
    def line(self) -> tuple[int, int]:
        """Major and minor: what skew is counted in."""
        return self.kubernetes.line

    @property
    def core(self) -> tuple[int, int, int]:
        return (self.kubernetes.major, self.kubernetes.minor, self.kubernetes.patch)

    @property
    def key(self) -> tuple[Any, ...]:
        return (self.kubernetes.key, self.build, self.rest)

    @property
    def tag(self) -> str:
        """As a tag of k0s' image."""
        return f"{self.kubernetes}-k0s.{self.build}{self.rest}"

    def __str__(self) -> str:
        return f"{self.kubernetes}+k0s.{self.build}{self.rest}"

    def __lt__(self, other: object) -> bool:
        return self.key < other.key if isinstance(other, K0sVersion) else NotImplemented

    def __eq__(self, other: object) -> bool:
        return self.key == other.key if isinstance(other, K0sVersion) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.key)


@lru_cache(maxsize=1024)
def parse(text: str) -> K0sVersion:
    """Raises ValueError for anything else than a full version, with or without its build of k0s."""
    found = _SUFFIX.fullmatch(text)
    if found is None or not kubernetes.is_valid(found["kubernetes"]) or "+" in found["kubernetes"]:
        raise ValueError(f"{text!r} is not a valid k0s version: expected for example v1.33.4+k0s.0")
    build = found["build"]
    return K0sVersion(kubernetes.parse(found["kubernetes"]), int(build or 0), found["rest"] or "", build is not None)


def is_valid(text: str) -> bool:
    return reads(parse, text)


def same(a: str, b: str) -> bool:
    return parse(a) == parse(b)
