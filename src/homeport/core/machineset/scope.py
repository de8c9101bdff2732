"""A MachineSet in work."""

from __future__ import annotations

from typing import Any

from homeport.api.cluster.v1beta2 import Cluster, Machine, MachineDeployment, MachineSet
from homeport.core.machineset.status import report
from homeport.core.related import Related
from homeport.machinery import condition
from homeport.runtime.clock import parse_time
from homeport.runtime.outcome import Wait
from homeport.runtime.reconciler import Scope


class SetScope(Scope[MachineSet]):
    def __init__(self, machine_set: MachineSet, cluster: Cluster | None) -> None:
        super().__init__(machine_set)
        self.cluster = cluster
        self.deployment: MachineDeployment | None = None
        self.machines: list[Machine] | None = None  # None: not looked yet
        self.bootstrap = Related()
        self.infrastructure = Related()
        self.unreadable: Wait | None = None  # Machines may be missing here that exist
        self.blocked: list[str] = []  # why no Machine is made
        self.trouble = ""

    @property
    def wanted(self) -> int:
        return self.object.spec.replicas or 0

    def report(self, kind: str, status: condition.Status, reason: str, message: str, now: str) -> bool | None:
        """Called for every outcome: computes the whole status from what this reconcile observed."""
        before = _reported(self.object)
        if reason == "ReconcileError":
            self.trouble = message
        self.timer = report(
            self.object,
            self.machines,
            blocked=[*self.blocked, *self._missing()],
            trouble=self.trouble,
            now=parse_time(now),
        )
        return before != _reported(self.object)

    def _missing(self) -> list[str]:
        found = [related.trouble for related in (self.bootstrap, self.infrastructure) if related.trouble]
        return found + [f"{each} does not exist" for each in (self.bootstrap, self.infrastructure) if each.missing]


def _reported(machine_set: MachineSet) -> list[tuple[Any, ...]]:
    return [(c["type"], c["status"], c["reason"], c["message"]) for c in machine_set.status.conditions]
