"""Decides which faults strike. Counting and chance are its only state; the same seed strikes the same way."""

from __future__ import annotations

import random
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import TypeVar, cast

import msgspec

from homeport.runtime.clock import Clock
from homeport.sim.engine.fault import REQUEST_EFFECTS, TASK_EFFECTS, Fault, Match, RequestEffect, TaskEffect

E = TypeVar("E")


@dataclass(frozen=True, slots=True)
class Subject:
    """What a fault may meet: a request, a task, a machine, a cluster."""

    method: str = ""
    path: str = ""
    route: str = ""
    verb: str = ""
    resources: tuple[str, ...] = ()  # the ways to spell it
    namespace: str = ""
    kind: str = ""
    name: str = ""
    ext_id: str = ""
    clusters: tuple[str, ...] = ()  # names and ids
    state: Mapping[str, str] = field(default_factory=dict)
    operation: str = ""
    user: str = ""


class Count(msgspec.Struct, rename="camel"):
    """How often a fault was met and how often it struck."""

    fault: Fault
    met: int = 0
    struck: int = 0


class Injector:
    def __init__(self, clock: Clock, faults: Iterable[Fault] = (), *, seed: int = 0) -> None:
        self._clock = clock
        self._rng = random.Random(seed)  # noqa: S311  (chance of faults, not of secrets)
        self._counts: list[Count] = []
        self._since = clock.monotonic()
        self.set(faults)

    def set(self, faults: Iterable[Fault]) -> list[str]:
        """Replaces all faults and restarts their counts and time windows. Returns their names."""
        self._counts = []
        self._since = self._clock.monotonic()
        return [self.add(fault) for fault in faults]

    def add(self, fault: Fault) -> str:
        """Adds one, and gives the name by which it can be removed."""
        if not fault.name:
            fault = msgspec.structs.replace(fault, name=self._free_name())
        elif any(count.fault.name == fault.name for count in self._counts):
            raise ValueError(f"a fault called {fault.name!r} exists")
        self._counts.append(Count(fault))
        return fault.name

    def _free_name(self) -> str:
        taken = {count.fault.name for count in self._counts}
        number = len(taken) + 1
        while f"fault-{number}" in taken:
            number += 1
        return f"fault-{number}"

    def remove(self, name: str) -> bool:
        before = len(self._counts)
        self._counts = [count for count in self._counts if count.fault.name != name]
        return len(self._counts) < before

    @property
    def counts(self) -> list[Count]:
        return list(self._counts)

    def strike(self, subject: Subject, *effects: type[E], only: Collection[str] = ()) -> list[tuple[str, E]]:
        """The faults of these kinds that strike now, with their names; counts them. `only`: those of these names."""
        found: list[tuple[str, E]] = []
        for count in self._counts:
            effect = count.fault.effect
            if only and count.fault.name not in only:
                continue
            if isinstance(effect, effects) and self._meets(count, subject):
                found.append((count.fault.name, effect))
        return found

    def on_request(self, subject: Subject) -> list[tuple[str, RequestEffect]]:
        return cast("list[tuple[str, RequestEffect]]", self.strike(subject, *REQUEST_EFFECTS))

    def on_task(self, subject: Subject) -> TaskEffect | None:
        found = self.strike(subject, *TASK_EFFECTS)
        return cast("TaskEffect", found[0][1]) if found else None

    def holds(self, subject: Subject, *effects: type[E]) -> E | None:
        """A condition that lasts, such as an outage: looked at, never counted."""
        for count in self._counts:
            effect = count.fault.effect
            if isinstance(effect, effects) and self._in_window(count.fault.match) and _fits(count.fault.match, subject):
                return effect
        return None

    def window_ends(self) -> list[float]:
        """Moments (monotonic) at which conditions begin or end."""
        now = self._clock.monotonic() - self._since
        edges = [edge for count in self._counts for edge in (count.fault.match.after, count.fault.match.until)]
        return [self._since + edge for edge in edges if edge is not None and edge > now]

    def _in_window(self, match: Match) -> bool:
        passed = self._clock.monotonic() - self._since
        return passed >= match.after and (match.until is None or passed < match.until)

    def _meets(self, count: Count, subject: Subject) -> bool:
        match = count.fault.match
        if not self._in_window(match) or not _fits(match, subject):
            return False
        if count.fault.times is not None and count.struck >= count.fault.times:
            return False
        count.met += 1
        if match.numbers and count.met not in match.numbers:
            return False
        if match.every and count.met % match.every:
            return False
        if match.share < 1 and self._rng.random() >= match.share:
            return False
        count.struck += 1
        return True


def _fits(match: Match, subject: Subject) -> bool:
    return (
        _like(match.method, subject.method)
        and _like(match.route, subject.path, subject.route)
        and _like(match.verb, subject.verb)
        and _like(match.resource, *subject.resources)
        and _like(match.namespace, subject.namespace)
        and _like(match.kind, subject.kind)
        and _like(match.entity, subject.name, subject.ext_id)
        and _like(match.cluster, *subject.clusters)
        and _like(match.operation, subject.operation)
        and _like(match.user, subject.user)
        and all(_is(wanted, subject.state.get(name, "")) for name, wanted in match.state.items())
    )


def _is(wanted: str | bool, value: str) -> bool:
    if isinstance(wanted, bool):
        return value.lower() in (("true", "on") if wanted else ("false", "off"))
    return _like(wanted, value)


def _like(pattern: str, *texts: str) -> bool:
    return not pattern or any(fnmatchcase(text.lower(), pattern.lower()) for text in texts)
