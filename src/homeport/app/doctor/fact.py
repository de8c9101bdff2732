"""What the doctor knows: everything that was gathered, as plain data."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from homeport.api.meta import Unstructured
from homeport.app.doctor.diagnosis import Commands
from homeport.app.doctor.probe import Probe
from homeport.app.report.description import Description, Finding
from homeport.capi.contract import failure
from homeport.capi.name import NEGATIVE
from homeport.capi.object.cause import complaint, is_waiting
from homeport.capi.object.summary import conditions_of
from homeport.client.protocol import Key
from homeport.runtime.clock import parse_time

_SUMMARIES = ("Ready", "Available")
# The condition of an object above repeats what the object below says.
_BORROWED = frozenset(
    {
        "InfrastructureReady",
        "ControlPlaneAvailable",
        "WorkersAvailable",
        "BootstrapConfigReady",
        "ControlPlaneMachinesReady",
        "WorkerMachinesReady",
        "MachinesReady",
        "ClusterSummary",
        "InfrastructureReachable",
    }
)


@dataclass(frozen=True, slots=True)
class Problem:
    """A condition that says what is wrong, on the object that says it."""

    object: Unstructured
    condition: str
    reason: str
    message: str
    seconds: float = 0.0
    borrowed: bool = False
    waits: bool = False  # it only waits for something else

    @property
    def kind(self) -> str:
        return str(self.object.get("kind"))

    @property
    def key(self) -> str:
        return f"{self.object.namespace}/{self.object.name}"

    @property
    def place(self) -> str:
        return f"{self.kind} {self.key.removeprefix('default/')}"


@dataclass(frozen=True, slots=True)
class Workload:
    """A workload cluster, as it answers; `error` says why it does not."""

    error: str = ""
    nodes: Sequence[Mapping[str, Any]] = ()
    pods: Sequence[Mapping[str, Any]] = ()
    certificate_seconds: float | None = None  # how long the kubeconfig of the plane is still valid


@dataclass(frozen=True, slots=True)
class Facts:
    now: float
    objects: Sequence[Unstructured]
    roots: Sequence[Unstructured] = ()
    plane: Description | None = None  # None: not the embedded plane, or it may not be asked
    workloads: Mapping[Key, Workload] = field(default_factory=dict)  # by Cluster
    consoles: Mapping[Key, Sequence[str]] = field(default_factory=dict)  # by Machine: the newest lines
    commands: Commands = field(default_factory=Commands)
    probes: Sequence[Probe] = ()
    webhooks: Sequence[Unstructured] = ()  # configurations of an installation's own webhooks
    waits: Sequence[Finding] = ()  # controllers of an installation that wait for a Lease
    around: Sequence[Unstructured] = ()  # also what belongs to no cluster yet: a reference may mean it

    def of_kind(self, *kinds: str) -> list[Unstructured]:
        return [each for each in self.objects if each.get("kind") in kinds]

    def problems(self) -> list[Problem]:
        """What objects say by themselves; what only waits for something else, or repeats it, comes last."""
        found = [problem for obj in self.objects for problem in self._problems_of(obj)]
        return sorted(found, key=lambda each: (each.borrowed, each.kind, each.key))

    def _problems_of(self, obj: Unstructured) -> Iterator[Problem]:
        said = complaint(obj)
        if said is None:
            return
        broken = failure(obj)
        if broken is not None:
            yield Problem(obj, "Failure", broken.reason, broken.message or broken.reason)
        detailed = False
        for each in sorted(conditions_of(obj), key=lambda one: one.get("type") in _SUMMARIES):
            if each.get("status") == "True" or each["type"] in NEGATIVE or not each.get("message"):
                continue
            summary = each["type"] in _SUMMARIES
            if summary and detailed:
                continue
            detailed = detailed or not summary
            since = each.get("lastTransitionTime")
            yield Problem(
                obj,
                str(each["type"]),
                str(each.get("reason") or ""),
                str(each["message"]),
                max(0.0, self.now - parse_time(since)) if since else 0.0,
                borrowed=each["type"] in _BORROWED,
                waits=is_waiting(each),
            )
