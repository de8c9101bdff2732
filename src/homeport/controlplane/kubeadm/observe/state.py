"""What the planner knows: plain values, taken from objects, the workload cluster and its etcd."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from homeport.controlplane.kubeadm.etcd.client import Member
from homeport.runtime.clock import parse_time, rfc3339


@dataclass(frozen=True, slots=True)
class Remediation:
    """Which Machine is or was replaced because it was unhealthy, and how often that was tried in a row."""

    machine: str
    time: float
    retries: int = 0

    @classmethod
    def parse(cls, text: str) -> Remediation | None:
        """None: nothing, or nothing that can be read."""
        try:
            found: Any = json.loads(text)
            return cls(
                str(found["machine"]),
                parse_time(str(found.get("timestamp") or "1970-01-01T00:00:00Z")),
                int(found.get("retryCount") or 0),
            )
        except (ValueError, KeyError, TypeError, AttributeError):
            return None

    def render(self) -> str:
        said: dict[str, Any] = {"machine": self.machine, "timestamp": rfc3339(self.time), "retryCount": self.retries}
        return json.dumps(said, separators=(",", ":"))


@dataclass(frozen=True, slots=True)
class MachineState:
    """One control plane Machine."""

    name: str
    created: float
    node: str = ""  # '' : no Node is known
    member: str = ""  # the name that its etcd member has: that of the Node, known a little earlier
    failure_domain: str = ""
    deleting: bool = False
    deleted: float = 0.0
    outdated: tuple[str, ...] = ()  # why it has to be replaced
    marked_for_deletion: bool = False
    marked_for_remediation: bool = False
    unhealthy: bool = False  # the health check failed, and it is on us to replace it
    recovered: bool = False  # it was to be replaced, and is healthy again
    remediation: Remediation | None = None  # it was made to replace an unhealthy one
    problems: Mapping[str, str] = field(default_factory=dict)  # components that are not healthy, and why
    etcd_problem: str = ""  # why its etcd member is not healthy
    hook: bool = True  # carries our pre-terminate hook
    other_hooks: tuple[str, ...] = ()
    awaits_hook: bool = False  # drained and detached: only pre-terminate hooks hold it
    updating: bool = False  # changed in place at the moment

    @property
    def healthy(self) -> bool:
        return bool(self.node) and not self.problems and not self.etcd_problem


@dataclass(frozen=True, slots=True)
class RemediationRule:
    max_retry: int | None = None
    retry_period: float = 0.0
    min_healthy_period: float = 3600.0


@dataclass(frozen=True, slots=True)
class Observed:
    """Everything that a decision depends on."""

    now: float
    replicas: int
    machines: Sequence[MachineState] = ()
    initialized: bool = False
    certificates: bool = True
    etcd_managed: bool = True
    members: Sequence[Member] | None = None  # None: not known at the moment
    alarmed: frozenset[int] = frozenset()  # IDs of members with alarms
    answering: frozenset[str] = frozenset()  # names of members that were asked and are well
    gone: frozenset[int] = frozenset()  # IDs of members without a Machine whose machine is proven to be gone
    max_surge: int = 1
    domains: Sequence[str] = ()  # failure domains for control planes
    in_progress: Remediation | None = None
    rule: RemediationRule = RemediationRule()
    pending_version: str = ""  # an upgrade that is about to come from the Cluster's topology
    unreadable: str = ""  # Machines, or what was made for them, that exist and can't be read
    unsafe: str = ""  # why the spec must not be acted on
    hooks_in_order: bool = True  # Kubernetes 1.31 or newer: our hook is the last

    def machine(self, name: str) -> MachineState | None:
        return next((each for each in self.machines if each.name == name), None)

    @property
    def strays(self) -> list[Member]:
        """Members without a Machine. None while a Machine has no Node: its member shows up before its Node does."""
        if not self.etcd_managed or not self.members or not self.machines:
            return []
        if any(not machine.node for machine in self.machines):
            return []
        known = {machine.member for machine in self.machines if machine.member}
        return sorted((each for each in self.members if each.name not in known), key=lambda each: (each.name, each.id))

    @property
    def outdated(self) -> list[MachineState]:
        return [each for each in self.machines if each.outdated]

    @property
    def deleting(self) -> list[MachineState]:
        return [each for each in self.machines if each.deleting]
