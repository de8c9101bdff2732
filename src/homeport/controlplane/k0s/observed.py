"""What the planner knows: plain values, taken from objects and from the workload cluster."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class MemberState:
    """A member of etcd, as k0s reports it by an EtcdMember."""

    name: str
    joined: bool = True
    leave: bool = False  # it was asked to leave
    message: str = ""


@dataclass(frozen=True, slots=True)
class MachineState:
    """One control plane Machine."""

    name: str
    created: float
    node: bool = False  # k0s runs: its ControlNode exists
    member: str = ""  # of etcd; '' : it has none, or has left
    version: str = ""  # that it runs; '' : not known
    behind: bool = False  # it runs an older version than desired
    ahead: bool = False  # it runs a newer one
    outdated: tuple[str, ...] = ()  # why it has to be replaced, versions aside
    problem: str = ""  # why it is not healthy
    unhealthy: bool = False  # a health check failed, and it is on us to replace it
    failure_domain: str = ""
    deleting: bool = False
    deleted: float = 0.0
    hook: bool = True  # carries our pre-terminate hook
    awaits_hook: bool = False  # drained and detached: only pre-terminate hooks hold it
    other_hooks: tuple[str, ...] = ()
    marked_for_deletion: bool = False

    @property
    def healthy(self) -> bool:
        return not self.problem


@dataclass(frozen=True, slots=True)
class PlanState:
    """The autopilot plan in the cluster."""

    version: str
    state: str  # of the plan, as k0s spells it; '' : not looked at by k0s yet
    created: float
    targets: tuple[str, ...] = ()
    details: str = ""  # what k0s says about each controller
    ours: bool = True


@dataclass(frozen=True, slots=True)
class Observed:
    """Everything that a decision depends on."""

    now: float
    replicas: int
    version: str
    machines: Sequence[MachineState] = ()
    initialized: bool = False
    down: str = ""  # why the cluster can't be asked; '' : it was asked
    etcd: bool = True  # k0s runs etcd on the controllers
    members: Sequence[MemberState] = ()
    strategy: str = "InPlace"
    domains: Sequence[str] = ()
    plan: PlanState | None = None
    certificates: bool = True
    unreadable: str = ""
    unsafe: str = ""

    @property
    def deleting(self) -> list[MachineState]:
        return [each for each in self.machines if each.deleting]

    @property
    def voters(self) -> list[MemberState]:
        return [each for each in self.members if each.joined]

    @property
    def in_place(self) -> bool:
        return self.strategy == "InPlace"

    def is_up(self, machine: MachineState) -> bool:
        """It has joined: k0s and, where k0s runs etcd, a member of it."""
        return machine.node and (not self.etcd or bool(machine.member))

    def replaced(self, machine: MachineState) -> bool:
        """Another Machine is to take its place."""
        return bool(machine.outdated) or (machine.behind and not self.in_place)
