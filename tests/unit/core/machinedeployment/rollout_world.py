"""A small world for the planner: MachineSets with controllers of their own, Machines that take their time.

The planner sees MachineSets as they are, their status as of their controller's last turn, and Machines as of some
moment in the past. What is really there is checked against the limits after every single event.
"""

from __future__ import annotations

import copy
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

from homeport.core.machinedeployment.plan import Create, Observed, Promote, Remove, Scale, SetView, Strategy, plan


@dataclass
class FakeMachine:
    name: str
    available: bool = False
    deleting: bool = False


@dataclass
class FakeSet:
    name: str
    template: str
    created: str
    revision: int
    replicas: int
    generation: int = 1
    observed: int = 0
    counted: int = 0  # status.replicas
    machines: dict[str, FakeMachine] = field(default_factory=dict)


@dataclass
class Limits:
    most: int
    least: int


class World:
    def __init__(self, replicas: int, strategy: Strategy, surge: int, unavailable: int, seed: int, lag: int) -> None:
        self.random = random.Random(seed)
        self.replicas, self.strategy = replicas, strategy
        self.surge, self.unavailable = surge, unavailable
        self.lag = lag
        self.template = "a"
        self.sets: dict[str, FakeSet] = {}
        self.serial = 0
        self.past: list[dict[str, dict[str, FakeMachine]]] = []
        self.limits = Limits(0, 0)
        self.peak = self.low = 0
        self.relax()

    def have(self, template: str, replicas: int, available: int | None = None) -> None:
        """A MachineSet that has been there for a while."""
        made = self._make(template, replicas)
        for number in range(replicas):
            machine = self._born(made)
            machine.available = number < (replicas if available is None else available)
        made.observed, made.counted = made.generation, replicas
        self.peak, self.low = self.total, self.available

    def relax(self) -> None:
        """Limits after the user changed the replicas: what was allowed before may still be under way."""
        self.limits = Limits(
            max(self.limits.most, self.replicas + (self.surge if self.strategy == "RollingUpdate" else 0)),
            max(0, min(self.limits.least or 10**6, self.replicas - self.unavailable)),
        )

    # -- what is there -----------------------------------------------------------------------------------------

    @property
    def machines(self) -> list[FakeMachine]:
        return [machine for each in self.sets.values() for machine in each.machines.values()]

    @property
    def total(self) -> int:
        return len(self.machines)

    @property
    def available(self) -> int:
        return sum(m.available and not m.deleting for m in self.machines)

    def current(self) -> FakeSet | None:
        found = [each for each in self.sets.values() if each.template == self.template]
        return max(found, key=lambda each: each.replicas, default=None)

    def settled(self) -> bool:
        new = self.current()
        return (
            new is not None
            and len(new.machines) == self.replicas == self.available
            and self.total == self.replicas
            and all(each.replicas == len(each.machines) for each in self.sets.values())
        )

    # -- turns -------------------------------------------------------------------------------------------------

    def remember(self) -> None:
        self.past.append({name: copy.deepcopy(each.machines) for name, each in self.sets.items()})
        del self.past[: -1 - self.lag]

    def observe(self) -> Observed:
        seen = self.past[self.random.randrange(len(self.past))] if self.past and self.lag else {}
        views = []
        for each in self.sets.values():
            machines = seen.get(each.name, {}) if self.lag else each.machines
            views.append(
                SetView(
                    name=each.name,
                    created=each.created,
                    revision=each.revision,
                    replicas=each.replicas,
                    machines=max(len(machines), each.counted),
                    alive=sum(not m.deleting for m in machines.values()),
                    available=sum(m.available and not m.deleting for m in machines.values()),
                    acknowledged=each.observed == each.generation,
                )
            )
        new = self.current()
        name = new.name if new else ""
        return Observed(self.replicas, views, name, self.strategy, self.surge, self.unavailable)

    def deployment_turn(self) -> bool:
        actions = plan(self.observe())
        for action in actions:
            match action:
                case Create(replicas, revision, _):
                    self._make(self.template, replicas).revision = revision
                case Promote(name, revision):
                    self.sets[name].revision = revision
                case Scale(name, replicas, _):
                    self.sets[name].replicas = replicas
                    self.sets[name].generation += 1
                case Remove(name):
                    assert not self.sets[name].machines, f"{name} was removed with Machines"
                    del self.sets[name]
        self.check()
        return bool(actions)

    def set_turn(self, each: FakeSet) -> None:
        """As a MachineSet does it: those being deleted count, and are deleted first; then the unhealthy ones."""
        outdated = each.template != self.template
        surplus = len(each.machines) - each.replicas
        if surplus < 0 and not (outdated and self.strategy == "OnDelete"):
            for _ in range(-surplus):
                self._born(each)
        order = sorted(each.machines.values(), key=lambda m: (not m.deleting, m.available, m.name))
        for machine in order[: max(surplus, 0)]:
            machine.deleting = True
        each.observed, each.counted = each.generation, len(each.machines)
        self.check()

    def machine_turn(self, each: FakeSet, machine: FakeMachine) -> None:
        if machine.deleting:
            del each.machines[machine.name]
        else:
            machine.available = True
        self.check()

    def check(self) -> None:
        self.remember()
        self.peak, self.low = max(self.peak, self.total), min(self.low, self.available)
        assert self.total <= self.limits.most, f"{self.total} Machines, allowed are {self.limits.most}"
        if self.strategy == "RollingUpdate":
            assert self.available >= self.limits.least, f"{self.available} available, {self.limits.least} needed"

    def some_turn(self) -> None:
        """Whoever's turn it is."""
        turns: list[Callable[[], object]] = [self.deployment_turn]
        turns += [partial(self.set_turn, each) for each in self.sets.values()]
        for each in self.sets.values():
            turns += [
                partial(self.machine_turn, each, machine)
                for machine in each.machines.values()
                if machine.deleting or not machine.available
            ]
        self.random.choice(turns)()

    def every_turn(self) -> None:
        """All in order, once each."""
        self.deployment_turn()
        for each in list(self.sets.values()):
            self.set_turn(each)
            for machine in list(each.machines.values()):
                if machine.deleting or not machine.available:
                    self.machine_turn(each, machine)

    # -- parts -------------------------------------------------------------------------------------------------

    def _make(self, template: str, replicas: int) -> FakeSet:
        self.serial += 1
        name = f"ms{self.serial}"
        made = FakeSet(name, template, f"{self.serial:04}", self.serial, replicas)
        self.sets[name] = made
        return made

    def _born(self, each: FakeSet) -> FakeMachine:
        self.serial += 1
        machine = FakeMachine(f"m{self.serial:04}")
        each.machines[machine.name] = machine
        return machine
