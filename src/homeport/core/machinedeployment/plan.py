"""The next step of a rollout: which MachineSets get how many replicas, which one is made, which ones go. Pure.

Three numbers bound every step. There are never more than replicas + maxSurge Machines because of us; there are never
fewer than replicas - maxUnavailable available ones because of us; and of what we asked for but did not see yet, the
worst is assumed: a scale-down hits available Machines, a scale-up has happened.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from homeport.core.machinedeployment.proportion import spread

Strategy = Literal["RollingUpdate", "OnDelete"]


@dataclass(frozen=True, slots=True)
class SetView:
    """A MachineSet and its Machines, as seen now."""

    name: str
    created: str = ""  # RFC 3339: sorts by time
    revision: int = 0
    replicas: int = 0  # asked for
    machines: int = 0  # there, those being deleted included
    alive: int = 0  # there and not being deleted
    available: int = 0  # alive and of use
    acknowledged: bool = True  # its controller has acted on what it is asked for
    deleting: bool = False
    desired: int | None = None  # replicas of the MachineDeployment when it was last scaled
    maximum: int | None = None  # ... and with the surge


@dataclass(frozen=True, slots=True)
class Observed:
    replicas: int
    sets: Sequence[SetView]
    current: str = ""  # the set with the wanted template; "": there is none
    strategy: Strategy = "RollingUpdate"
    surge: int = 1
    unavailable: int = 0
    paused: bool = False
    history: int = 1  # how many old sets without Machines are kept to go back to


@dataclass(frozen=True, slots=True)
class Create:
    """A MachineSet for the wanted template."""

    replicas: int
    revision: int
    why: str = ""


@dataclass(frozen=True, slots=True)
class Promote:
    """A set that was current before is it again, under a new revision."""

    name: str
    revision: int


@dataclass(frozen=True, slots=True)
class Scale:
    name: str
    replicas: int
    why: str


@dataclass(frozen=True, slots=True)
class Remove:
    """Deletes an old MachineSet that is not kept for a rollback."""

    name: str


Action = Create | Promote | Scale | Remove


@dataclass(slots=True)
class _Step:
    """The wanted replicas of each set while they are worked out."""

    observed: Observed
    new: SetView
    old: list[SetView]
    target: dict[str, int] = field(default_factory=dict)
    why: dict[str, str] = field(default_factory=dict)

    def set(self, view: SetView, replicas: int, why: str) -> None:
        self.target[view.name] = replicas
        self.why[view.name] = why

    def of(self, view: SetView) -> int:
        return self.target.get(view.name, view.replicas)

    @property
    def changed(self) -> bool:
        return any(self.of(view) != view.replicas for view in (self.new, *self.old))


_NEW = ""  # the name of a set that does not exist yet


def plan(observed: Observed) -> list[Action]:
    """What to do now. Empty: nothing, or nothing before something else happens."""
    if observed.paused:
        return _scaled(observed, spread(_sizes(observed), observed.replicas, observed.surge, observed.strategy))
    new = next((view for view in observed.sets if view.name == observed.current), SetView(_NEW))
    old = sorted((v for v in observed.sets if v.name != new.name), key=lambda v: (v.created, v.name))
    step = _Step(observed, new, old)
    if observed.strategy == "OnDelete":
        _plan_on_delete(step)
    else:
        _plan_rolling_update(step)
    newest = max((view.revision for view in observed.sets), default=0)
    actions: list[Action] = []
    if not new.name:
        actions.append(Create(step.of(new), newest + 1, step.why.get(_NEW, "")))
    elif new.revision < newest or not new.revision:
        actions.append(Promote(new.name, newest + 1))
    # What goes is asked for first: if we stop in between, there are fewer Machines than allowed, not more.
    actions += [
        Scale(view.name, step.of(view), step.why[view.name])
        for view in (*old, new)
        if view.name and step.of(view) != view.replicas and not view.deleting
    ]
    return actions or _plan_cleanup(observed, new, old)


def _sizes(observed: Observed) -> list[SetView]:
    return [view for view in observed.sets if not view.deleting]


def _scaled(observed: Observed, target: Mapping[str, int]) -> list[Action]:
    why = f"the MachineDeployment is paused and was scaled to {observed.replicas} replicas"
    return [
        Scale(view.name, target[view.name], why)
        for view in observed.sets
        if target.get(view.name, view.replicas) != view.replicas
    ]


# -- RollingUpdate ---------------------------------------------------------------------------------------------------


def _plan_rolling_update(step: _Step) -> None:
    _grow(step, step.observed.surge)
    _drop_unborn(step)
    _shrink(step)
    _break_deadlock(step)


def _grow(step: _Step, surge: int) -> None:
    """The new set gets what there is room for, or what is too much of it is taken away."""
    wanted, new = step.observed.replicas, step.new
    if new.replicas >= wanted:
        if new.replicas > wanted:
            step.set(new, wanted, f"the MachineDeployment has {wanted} replicas")
        return
    if any(not view.acknowledged for view in step.old):
        return  # it may be making Machines that we don't see yet; its status will tell
    total = sum(_count(view) for view in (new, *step.old))
    room = min(wanted + surge - total, wanted - new.replicas)
    if room > 0:
        limit = f"{wanted} replicas + {surge} surge" if surge else f"{wanted} replicas"
        step.set(new, new.replicas + room, f"{total} Machines are fewer than {limit}")


def _count(view: SetView) -> int:
    return view.machines if view.deleting else max(view.replicas, view.machines)


def _drop_unborn(step: _Step) -> None:
    """Old Machines that do not exist yet are not made any more, where the old set has not shown that it works.

    Where it has, it may go on replacing what is lost: it is what availability rests on until the new one works.
    """
    for view in step.old:
        unborn = view.replicas - view.machines
        if unborn > 0 and not view.available:
            step.set(view, view.machines, "no more Machines of an older template are created")


def _cost(view: SetView, target: int) -> int:
    """How many available Machines a set of this size may have lost, at worst."""
    if view.deleting:
        return view.available
    return min(view.available, max(view.alive - target, 0))


def _shrink(step: _Step) -> None:
    least = max(step.observed.replicas - step.observed.unavailable, 0)
    views = (step.new, *step.old)
    available = sum(v.available - _cost(v, min(v.replicas, step.of(v))) for v in views)
    spare = available - least
    # Old Machines count for the pace even if they are of no use: else a broken template would replace a broken set
    # faster than a working one.
    pace = sum(step.of(v) for v in step.old if not v.deleting) + step.new.available - least
    pace -= _cost(step.new, min(step.new.replicas, step.of(step.new)))
    for unavailable_only in (True, False):
        for view in step.old:
            if view.deleting:
                continue
            floor = min(view.available, step.of(view)) if unavailable_only else 0
            spare, pace = _take(step, view, floor, spare, pace, f"{available} available, at least {least} required")


def _take(step: _Step, view: SetView, floor: int, spare: int, pace: int, why: str) -> tuple[int, int]:
    """Lowers one set as far as both budgets allow; gives what is left of them."""
    target = step.of(view)
    while target > floor and pace > 0:
        cost = _cost(view, target - 1) - _cost(view, target)
        if cost > spare:
            break
        target, spare, pace = target - 1, spare - cost, pace - 1
    if target != step.of(view):
        step.set(view, target, why)
    return spare, pace


def _break_deadlock(step: _Step) -> None:
    """Old Machines that are not available, beside some that are, block the rollout: which of them a set would delete
    is its own choice. Once nothing else moves, one step is made; sets delete unhealthy Machines first."""
    if step.changed or any(v.replicas != v.machines or v.machines != v.alive for v in (step.new, *step.old)):
        return
    if step.new.available != step.new.alive:
        return
    for view in step.old:
        if view.available < view.alive:
            step.set(view, view.replicas - 1, "Machines that are not available block the rollout")
            return


# -- OnDelete --------------------------------------------------------------------------------------------------------


def _plan_on_delete(step: _Step) -> None:
    """Old Machines go when somebody deletes them; then the new set takes their place."""
    for view in step.old:
        if view.replicas > view.machines and not view.deleting:
            step.set(view, view.machines, "deleted Machines are replaced by new ones")
    _grow(step, 0)
    excess = step.of(step.new) + sum(step.of(v) for v in step.old if not v.deleting) - step.observed.replicas
    for view in step.old:
        less = min(step.of(view), excess)
        if less > 0 and not view.deleting:
            step.set(view, step.of(view) - less, f"the MachineDeployment has {step.observed.replicas} replicas")
            excess -= less


# -- afterwards ------------------------------------------------------------------------------------------------------


def complete(observed: Observed) -> bool:
    """Everything runs the wanted template, and nothing else is there."""
    new = next((view for view in observed.sets if view.name == observed.current), None)
    if new is None:
        return False
    counts = {new.replicas, new.machines, new.available}
    return counts == {observed.replicas} and not any(
        v.replicas or v.machines for v in observed.sets if v.name != new.name
    )


def _plan_cleanup(observed: Observed, new: SetView, old: Sequence[SetView]) -> list[Action]:
    if not complete(observed):
        return []
    empty = sorted((v for v in old if not v.deleting and v.acknowledged), key=lambda v: (v.revision, v.created))
    return [Remove(view.name) for view in empty[: max(len(empty) - observed.history, 0)]]
