"""Writes down, at every revision of the store, who was told which version when, and which Machines came to run."""

from __future__ import annotations

from types import TracebackType
from typing import Any, NamedTuple

import msgspec

from capikit.blueprint import DEPLOYMENT_LABEL
from capikit.harness import Harness
from homeport.api.cluster.v1beta2 import Machine, MachineDeployment
from homeport.api.controlplane.v1beta2 import KubeadmControlPlane
from homeport.capi.version import parse
from homeport.store import Change

KINDS: tuple[Any, ...] = (KubeadmControlPlane, MachineDeployment, Machine)


class VersionChange(NamedTuple):
    """'' is the control plane, everything else the name of a deployment in the topology."""

    which: str
    version: str
    at: int  # revision of the store


class Record:
    """While it is entered."""

    def __init__(self, h: Harness) -> None:
        self._store = h.plane.server.store
        self._versions: dict[str, str] = {}
        self._made: dict[str, VersionChange] = {}  # Machines by name
        self._machines: dict[str, VersionChange] = {}  # those that are there
        self._changes: list[VersionChange] = []
        self._skews: list[int] = []
        self._most = 0

    def told(self, version: str) -> list[tuple[str, int]]:
        """Who was told to be at the version, in the order of time."""
        return [(each.which, each.at) for each in self._changes if each.version == version]

    def steps(self) -> list[tuple[str, str]]:
        return [(each.which, each.version) for each in self._changes]

    def first_machine(self, which: str, version: str) -> int:
        return min(each.at for each in self._made.values() if (each.which, each.version) == (which, version))

    def last_machine(self, which: str, version: str) -> int:
        return max(each.at for each in self._made.values() if (each.which, each.version) == (which, version))

    def most_at_once(self) -> int:
        """How many parts were told a version that not all their Machines had, at the same time."""
        return self._most

    def widest_skew(self) -> int:
        """By how many minor versions workers were behind the control plane."""
        return max(self._skews)

    def _take(self, changes: list[Change]) -> None:
        for change in changes:
            if change.record is None:
                self._machines.pop(change.name, None)
                continue
            raw = msgspec.json.decode(change.record.value)
            kind = next(each for each in KINDS if each.__resource__.kind == raw["kind"])
            self._note(msgspec.convert(raw, kind), change.name, change.revision)
            self._look()

    def _note(self, obj: Any, name: str, now: int) -> None:
        which = obj.metadata.labels.get(DEPLOYMENT_LABEL, "")
        if isinstance(obj, Machine):
            seen = VersionChange(which, obj.spec.version, now)
            self._made.setdefault(name, seen)
            self._machines[name] = seen
            return
        version = obj.spec.version if isinstance(obj, KubeadmControlPlane) else obj.spec.template.spec.version
        if self._versions.get(which) != version:
            self._versions[which] = version
            self._changes.append(VersionChange(which, version, now))

    def _look(self) -> None:
        by_part: dict[str, set[str]] = {}
        for each in self._machines.values():
            by_part.setdefault(each.which, set()).add(each.version)
        busy = [which for which, versions in by_part.items() if versions != {self._versions.get(which)}]
        self._most = max(self._most, len(busy))
        if "" in by_part:
            newest = max(parse(each).minor for each in by_part[""])
            workers = [parse(each).minor for which, listed in by_part.items() if which for each in listed]
            self._skews += [newest - each for each in workers]

    def __enter__(self) -> Record:
        self._ends = []
        for kind in KINDS:
            bucket = kind.__resource__.qualified
            for record in self._store.range(bucket):
                self._note(msgspec.json.decode(record.value, type=kind), record.name, 0)
            self._ends.append(self._store.subscribe(bucket, self._take))
        self._changes.clear()
        self._made.clear()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for end in self._ends:
            end()
