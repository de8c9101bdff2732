"""Which version each part of a Cluster should have now, on the way to the version of the topology. Pure.

The control plane goes first, one minor version at a time; workers follow when it stands, in the order of the topology,
so many at a time as the Cluster allows. Workers may skip versions as long as they stay near enough to it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce

from homeport.capi import version as versions

_SKEW = 3  # so many minor versions workers may lag behind


class NoUpgradePath(ValueError):
    """No supported upgrade path leads from one version to the other."""


@dataclass(frozen=True, slots=True)
class Plane:
    """The control plane that is there."""

    version: str
    provisioning: bool = False
    upgrading: bool = False
    running: Sequence[str] = ()  # versions of its Machines

    @property
    def moving(self) -> bool:
        return self.provisioning or self.upgrading


@dataclass(frozen=True, slots=True)
class Group:
    """A MachineDeployment that is there and stays."""

    name: str  # in the topology
    version: str
    upgrading: bool = False  # some of its Machines have another version
    deferred: bool = False  # the user says: not yet
    machines: Sequence[str] = ()  # versions of its Machines


@dataclass(frozen=True, slots=True)
class Observed:
    goal: str
    plane: Plane | None = None
    groups: Sequence[Group] = ()  # in the order of the topology
    new: Sequence[str] = ()  # groups that are wanted and not there
    known: Sequence[str] = ()  # versions that the class offers, oldest first
    concurrency: int = 1
    hooks: Sequence[str] = ()  # annotations that forbid to begin
    begun: bool = False  # the Cluster says that an upgrade is under way


@dataclass(frozen=True, slots=True)
class Plan:
    plane: str  # the version that the control plane is given
    groups: Mapping[str, str]  # versions of groups by name, the new ones among them
    steps: Sequence[str] = ()  # versions that the control plane still has to go through
    worker_steps: Sequence[str] = ()
    plane_waits: bool = False  # it can't have its next version yet, and is left as it is until then
    plane_moves: bool = False  # it is being upgraded, or begins to
    waiting: Sequence[str] = ()  # groups that are left as they are until they may have their next version
    deferred: Sequence[str] = ()  # those of them that wait for the user
    moving: Sequence[str] = ()  # groups that are being upgraded, or begin to
    withheld: Sequence[str] = ()  # new groups that are not made while the control plane changes
    blocked: Sequence[str] = ()  # annotations that hold up the beginning
    ahead: str = ""  # the version of a control plane that is newer than the topology asks for, and stays
    step: str = ""  # the version of the step that is under way; '': there is no upgrade

    @property
    def upgrading(self) -> bool:
        return bool(self.plane_waits or self.plane_moves or self.waiting or self.moving or self.withheld)


def plan(seen: Observed) -> Plan:
    """Raises NoUpgradePath, and ValueError for an invalid version."""
    if seen.plane is None:
        return Plan(seen.goal, {each.name: each.version for each in seen.groups} | dict.fromkeys(seen.new, seen.goal))
    return _Decision(seen, seen.plane).plan()


@dataclass(slots=True)
class _Decision:
    seen: Observed
    plane: Plane
    groups: list[Group] = field(init=False)
    steps: list[str] = field(init=False)
    worker_steps: list[str] = field(init=False)
    moving: list[str] = field(init=False)
    waiting: list[str] = field(default_factory=list)
    deferred: list[str] = field(default_factory=list)
    starting: bool = False

    def __post_init__(self) -> None:
        self.groups = [restored(each, self.plane.version) for each in self.seen.groups]
        self.steps = [] if self.ahead else find_steps(self.plane.version, self.seen.goal, self.seen.known)
        self.worker_steps = find_worker_steps(
            [each.version for each in self.groups], self.plane.version, self.seen.goal, self.steps
        )
        self.moving = [each.name for each in self.groups if each.upgrading]

    @property
    def behind(self) -> bool:
        return not versions.same(self.plane.version, self.seen.goal)

    @property
    def ahead(self) -> bool:
        """A topology never goes back: somebody else has given the control plane a newer version."""
        return is_newer(self.plane.version, self.seen.goal)

    @property
    def plane_ahead(self) -> bool:
        """Some of its Machines have the newer version already: a control plane is not taken back from that."""
        return self.ahead and any(is_newer(each, self.seen.goal) for each in self.plane.running)

    @property
    def workers_first(self) -> bool:
        """The control plane is where the workers have to go before it may go on."""
        return bool(self.worker_steps) and versions.same(self.worker_steps[0], self.plane.version)

    def plan(self) -> Plan:
        version, blocked = self._plane()
        settled = not self.plane.moving and not self.starting
        groups = {each.name: self._group(each, settled) for each in self.groups}
        coming = self._coming(settled)
        waits = self.behind and not self.starting and not (self.ahead and not self.plane_ahead)
        unfinished = self.behind or self.plane.upgrading or bool(self.moving or self.waiting)
        under_way = self.starting or ((self.seen.begun or (self.behind and self.workers_first)) and unfinished)
        return Plan(
            plane=version,
            groups=groups | dict.fromkeys(self.seen.new, self.seen.goal),
            steps=self.steps,
            worker_steps=self.worker_steps,
            plane_waits=waits,
            plane_moves=self.starting or self.plane.upgrading,
            waiting=self.waiting,
            deferred=self.deferred,
            moving=self.moving,
            withheld=coming,
            blocked=blocked,
            ahead=self.plane.version if self.plane_ahead else "",
            step=version if under_way else "",
        )

    def _plane(self) -> tuple[str, Sequence[str]]:
        """Its version, and what keeps the upgrade from beginning."""
        if self.ahead:
            return (self.plane.version if self.plane_ahead else self.seen.goal), ()
        if not self.behind or self.plane.moving or self.workers_first or self.moving:
            return self.plane.version, ()
        if self.seen.hooks and not self.seen.begun:
            return self.plane.version, tuple(self.seen.hooks)
        self.starting = True
        return self.steps[0], ()

    def _group(self, group: Group, settled: bool) -> str:
        if versions.same(group.version, self.seen.goal):
            return group.version
        if group.deferred:
            self.deferred.append(group.name)
        may = settled and (not self.behind or self.workers_first) and len(self.moving) < self.seen.concurrency
        if group.deferred or not may or versions.same(self.worker_steps[0], group.version):
            self.waiting.append(group.name)
            return group.version
        self.moving.append(group.name)
        return self.worker_steps[0]

    def _coming(self, settled: bool) -> list[str]:
        """Workers that join while control planes come and go may meet one that is just going. While the first control
        plane comes up nothing goes: they wait for it by themselves."""
        fine = (settled or (self.plane.provisioning and not self.plane.upgrading)) and not self.behind
        return [] if fine else list(self.seen.new)


def restored(group: Group, plane: str) -> Group:
    """The group as the topology left it, where somebody else has changed its version.

    The topology gives workers the version of the control plane and nothing else, and it does not go on before their
    Machines have it: any other version that Machines would have to be changed for is not the topology's.
    """
    if not _strayed(group, plane):
        return group
    found = [text for text in group.machines if versions.is_valid(text) and not is_newer(text, plane)]
    version = max(found, key=lambda text: versions.parse(text).build_key, default=plane)
    return replace(group, version=version, upgrading=any(not versions.same(text, version) for text in group.machines))


def _strayed(group: Group, plane: str) -> bool:
    if not versions.is_valid(group.version):
        return True
    return is_newer(group.version, plane) or (group.upgrading and not versions.same(group.version, plane))


def is_newer(one: str, other: str) -> bool:
    return versions.parse(one).build_key > versions.parse(other).build_key


def find_steps(current: str, goal: str, known: Sequence[str] = ()) -> list[str]:
    """The versions that a control plane goes through, `goal` the last of them; empty when it is there.

    With `known`: the newest of each minor version in between. Raises NoUpgradePath if it would skip a minor version.
    """
    if versions.same(current, goal):
        return []
    here, there = versions.parse(current), versions.parse(goal)
    newest: dict[tuple[int, int], str] = {}
    for text in known:
        each = versions.parse(text)
        if here < each <= there and here.line < each.line < there.line:
            best = newest.get(each.line)
            newest[each.line] = text if best is None or versions.parse(best) <= each else best
    steps = [newest[line] for line in sorted(newest)] + [goal]
    reduce(_next, steps, current)
    return steps


def _next(before: str, after: str) -> str:
    if versions.minor_distance(before, after) > 1:
        raise NoUpgradePath(
            f"no upgrade path from {before} to {after}: a control plane can't skip minor versions; upgrade one minor "
            "version at a time, or list the versions between in spec.kubernetesVersions of the ClusterClass"
        )
    return after


def find_worker_steps(workers: Sequence[str], current: str, goal: str, steps: Sequence[str]) -> list[str]:
    """The versions that workers go through: as few as possible while none lags too far behind the control plane.

    `steps` are those of the control plane, which is at `current`. Empty: there are no workers, or all are there.
    """
    behind = [text for text in workers if text and not versions.same(text, goal)]
    if not behind:
        return []
    oldest = min((versions.parse(text) for text in behind), key=lambda each: each.build_key)
    minors = {versions.parse(text).minor: text for text in (current, *steps)}
    last = versions.parse(goal).minor
    stops = [minors.get(minor, "") for minor in range(oldest.minor + _SKEW, last, _SKEW)]
    if "" in stops:
        raise NoUpgradePath(
            f"workers of {oldest} can't be upgraded to {goal}: the control plane at {current} is more than {_SKEW} "
            "minor versions newer"
        )
    return [*stops, goal]
