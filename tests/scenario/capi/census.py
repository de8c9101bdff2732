"""Counts Machines from outside, at every revision of the store: nobody has to be asked, nothing is missed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from types import TracebackType

import msgspec

from capikit.harness import Harness
from homeport.api.cluster.v1beta2 import Machine
from homeport.machinery import condition
from homeport.store import Change

_NAMES = ("cluster.x-k8s.io/deployment-name", "cluster.x-k8s.io/control-plane-name", "cluster.x-k8s.io/set-name")


@dataclass(frozen=True)
class Count:
    """Of one owner, at one moment."""

    there: int  # those that are being deleted among them
    staying: int
    available: int  # and staying


Rule = Callable[[Count], str]  # what is wrong; '' if nothing


class Census:
    """While it is entered, every change of a Machine is held against the rules of the owners of all."""

    def __init__(self, h: Harness) -> None:
        self._store = h.plane.server.store
        self._machines: dict[str, Machine] = {}
        self.rules: dict[str, Rule] = {}
        self.most: dict[str, int] = {}
        self.least: dict[str, int] = {}  # available ones
        self.broken: list[str] = []

    def count(self, owner: str) -> Count:
        mine = [m for m in self._machines.values() if any(m.metadata.labels.get(each) == owner for each in _NAMES)]
        staying = [m for m in mine if not m.metadata.deletion_timestamp]
        available = [m for m in staying if condition.is_true(m.status.conditions, "Available")]
        return Count(len(mine), len(staying), len(available))

    def _take(self, changes: list[Change]) -> None:
        for change in changes:
            if change.record is None:
                self._machines.pop(change.name, None)
            else:
                self._machines[change.name] = msgspec.json.decode(change.record.value, type=Machine)
            for owner, rule in self.rules.items():
                counted = self.count(owner)
                self.most[owner] = max(self.most.get(owner, 0), counted.there)
                self.least[owner] = min(self.least.get(owner, 1 << 30), counted.available)
                problem = rule(counted)
                if problem:
                    self.broken.append(f"{owner} at revision {change.revision}: {problem}: {counted}")

    def __enter__(self) -> Census:
        bucket = Machine.__resource__.qualified
        for record in self._store.range(bucket):
            self._machines[record.name] = msgspec.json.decode(record.value, type=Machine)
        self._end = self._store.subscribe(bucket, self._take)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end()
        if error is None:
            assert not self.broken, "\n".join(self.broken[:10])


def between(least_available: int, most: int) -> Rule:
    def rule(count: Count) -> str:
        if count.there > most:
            return f"more than {most} Machines"
        if count.available < least_available:
            return f"fewer than {least_available} available Machines"
        return ""

    return rule
