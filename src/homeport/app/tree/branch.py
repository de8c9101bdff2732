"""One object of the tree, as data."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec


class Branch(msgspec.Struct, frozen=True, rename="camel"):
    """An object, how it is, and the objects below it."""

    kind: str
    name: str
    namespace: str = ""
    api_version: str = ""
    role: str = ""  # section of the tree: Infrastructure, Control plane, Workers, Add-ons, ...
    healthy: bool | None = None  # None: the object reports nothing
    state: str = ""  # in one or two words, for example `Available`, `Provisioning`
    version: str = ""  # of Kubernetes
    replicas: str = ""  # `2 of 3`: ready and desired
    problem: str = ""  # what the object itself reports to be wrong; '' if it only waits for something below it
    age_seconds: float | None = None
    conditions: list[dict[str, Any]] = []
    children: list[Branch] = []

    def walk(self) -> Iterator[Branch]:
        yield self
        for each in self.children:
            yield from each.walk()


class Reference(msgspec.Struct, frozen=True, rename="camel"):
    kind: str
    namespace: str
    name: str
    api_version: str


class Tree(msgspec.Struct, frozen=True, rename="camel"):
    """The tree of a cluster, and the cause of what is wrong in it."""

    root: Branch
    cause: str = ""  # the deepest one that is known, in one sentence; '': nothing is wrong
    culprit: Reference | None = None  # the object that reports the cause
    unreadable: list[str] = []  # kinds that the user may not read
    since: str = ""  # when the cause was reported first, as a time; '' if that is not known
