"""A MachineSet in work."""

from __future__ import annotations

from homeport.api.cluster.v1beta2 import Cluster, Machine, MachineDeployment, MachineSet
from homeport.core.machineset.status import report
from homeport.core.related import Related
from homeport.core.scope import ComputedScope
from homeport.runtime.outcome import Wait


class SetScope(ComputedScope[MachineSet]):
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

    def note_trouble(self, reason: str, message: str) -> None:
        self.trouble = message

    def compute(self, now: float) -> Wait | None:
        blocked = [*self.blocked, *self._missing()]
        return report(self.object, self.machines, blocked=blocked, trouble=self.trouble, now=now)

    def _missing(self) -> list[str]:
        found = [related.trouble for related in (self.bootstrap, self.infrastructure) if related.trouble]
        return found + [f"{each} does not exist" for each in (self.bootstrap, self.infrastructure) if each.missing]
