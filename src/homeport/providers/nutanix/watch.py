"""Watches the VMs of machines with one list for all of them; enqueues the machines whose VM has changed.

Prism Central has no watches. What runs is looked at once a minute; what is about to change (a VM that powers on, that
gets its address) soon and then less and less often. When anybody finds out that Prism Central or one of its clusters
does not answer, all who depend on it should say so, and not a minute later.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

import structlog

from homeport.infra.error import ProviderError, Unreachable
from homeport.providers.nutanix.prism.record import Prism, Vm
from homeport.runtime.clock import Clock

log = structlog.get_logger(__name__)

STEADY_SECONDS = 60.0
_FIRST_SECONDS, _FACTOR, _SLOWEST_SECONDS = 0.25, 1.5, 15.0
_FRESH_SECONDS = 1.5 * STEADY_SECONDS  # records are read every minute; an older one is no longer followed
_GATHER_SECONDS = 0.02  # how long a question waits for others like it
_FORGET_SECONDS = 900.0  # not asked for since: its object is gone
_DOUBT_SECONDS = 5.0  # a doubt that comes sooner after the last one costs no request


@dataclass(slots=True)
class _Watched:
    vm: Vm  # as it was seen last
    read_at: float
    wake: Callable[[], None]
    asked: float
    due: float
    delay: float = STEADY_SECONDS
    sample: bool = False  # looked at for all VMs of its cluster

    @property
    def steady(self) -> bool:
        return self.delay >= STEADY_SECONDS


@dataclass(slots=True)
class _Question:
    name: str
    answer: asyncio.Future[Vm | None]


class Watch:
    """`find` a VM and be woken when it changes, until `forget`; `hurry` while a change is expected, then `settle`."""

    def __init__(self, prism: Prism, clock: Clock) -> None:
        self._prism = prism
        self._clock = clock
        self._watched: dict[str, _Watched] = {}  # by who asked
        self._questions: dict[str, _Question] = {}
        self._answering: asyncio.Task[None] | None = None
        self._looking: asyncio.Task[None] | None = None
        self._rescheduled = asyncio.Event()
        self._doubted = -_DOUBT_SECONDS  # when, by the monotonic clock

    def __len__(self) -> int:
        return len(self._watched)

    async def close(self) -> None:
        tasks = [task for task in (self._answering, self._looking) if task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def find(self, who: str, vm_id: str, name: str, wake: Callable[[], None]) -> Vm | None:
        """As it is, or was at the last look for all. None is said after Prism Central was asked for this very one."""
        now, held = self._clock.monotonic(), self._watched.get(who)
        if held is not None and held.vm.id == vm_id and now - held.read_at < _FRESH_SECONDS:
            held.asked, held.wake = now, wake
            return held.vm
        vm = await self._ask(vm_id, name)
        if vm is None:
            self.forget(who)
        else:
            self.note(who, vm, wake)
        return vm

    def note(self, who: str, vm: Vm, wake: Callable[[], None]) -> None:
        """Somebody read it just now."""
        now = self._clock.monotonic()
        made = _Watched(_kept(vm), now, wake, now, now + STEADY_SECONDS)
        held = self._watched.get(who)
        if held is not None and not held.steady:
            made.delay, made.due = held.delay, held.due
        self._watched[who] = made
        self._reschedule()

    def hurry(self, who: str, *, expected: bool = False) -> None:
        """Checks the VM more often. `expected`: an action was just started, so a change is expected."""
        held = self._watched.get(who)
        if held is not None and (held.steady or expected):
            held.delay = _FIRST_SECONDS
            held.due = self._clock.monotonic() + _FIRST_SECONDS
            self._reschedule()

    def settle(self, who: str) -> None:
        held = self._watched.get(who)
        if held is not None and not held.steady:
            held.delay, held.due = STEADY_SECONDS, held.read_at + STEADY_SECONDS
            self._reschedule()

    def forget(self, who: str) -> None:
        self._watched.pop(who, None)

    def doubt(self) -> None:
        """Prism Central, or a cluster of it, may be away: looks at one VM of each cluster now, and at the others of a
        cluster if that one can't be read or has changed."""
        now = self._clock.monotonic()
        if now - self._doubted < _DOUBT_SECONDS or not self._watched:
            return
        self._doubted = now
        steady = sorted(self._watched.values(), key=lambda each: each.steady)  # others may have been looked at just now
        for each in {each.vm.cluster_id: each for each in steady}.values():
            each.sample = True
        self._reschedule()

    # -- questions that come together ----------------------------------------------------------------------------

    async def _ask(self, vm_id: str, name: str) -> Vm | None:
        asked = self._questions.get(vm_id)
        if asked is None:
            loop = asyncio.get_running_loop()
            asked = self._questions[vm_id] = _Question(name, loop.create_future())
            if len(self._questions) == 1:
                self._answering = loop.create_task(self._answer(), name="questions to Prism Central")
        return await asyncio.shield(asked.answer)

    async def _answer(self) -> None:
        failed: ProviderError = Unreachable("the connection to Prism Central was closed: retrying")
        found: dict[str, Vm] | None = None
        asked: dict[str, _Question] = {}
        try:
            await asyncio.sleep(_GATHER_SECONDS)
            asked, self._questions = self._questions, {}
            found = await self._read({vm_id: each.name for vm_id, each in asked.items()})
        except ProviderError as error:
            failed = error
        finally:  # also when this is cancelled: nobody waits for ever
            for vm_id, each in (asked or self._questions).items():
                if found is not None:
                    each.answer.set_result(found.get(vm_id))
                else:
                    each.answer.set_exception(failed)
                    each.answer.exception()  # whoever asked may be gone

    async def _read(self, wanted: dict[str, str]) -> dict[str, Vm]:
        found = {vm.id: vm for vm in await self._prism.vms(wanted)}
        if len(wanted) > 1:
            for vm_id in wanted:
                # Lists may lag behind, and on this answer machines are given up.
                if vm_id not in found and (vm := await self._prism.vm(vm_id)) is not None:
                    found[vm_id] = vm
        return found

    # -- looks ---------------------------------------------------------------------------------------------------

    def _reschedule(self) -> None:
        self._rescheduled.set()
        if self._looking is None or self._looking.done():
            self._looking = asyncio.get_running_loop().create_task(self._look_on(), name="VMs of Prism Central")

    async def _look_on(self) -> None:
        while self._watched:
            self._rescheduled.clear()
            if samples := {who: each for who, each in self._watched.items() if each.sample}:
                await self._look(samples)
                continue
            pause = min(each.due for each in self._watched.values()) - self._clock.monotonic()
            if pause > 0:
                try:
                    async with asyncio.timeout(pause):
                        await self._rescheduled.wait()
                    continue
                except TimeoutError:
                    pass
            await self._look(self._due())

    def _due(self) -> dict[str, _Watched]:
        """Those whose time has come, and of the same kind those for whom it would come soon: they go along."""
        now = self._clock.monotonic()
        self._watched = {who: each for who, each in self._watched.items() if now - each.asked < _FORGET_SECONDS}
        kinds = {each.steady for each in self._watched.values() if each.due <= now}
        return {
            who: each
            for who, each in self._watched.items()
            if each.steady in kinds and each.due <= now + each.delay / 2
        }

    async def _look(self, due: dict[str, _Watched]) -> None:
        if not due:
            return
        try:
            found = await self._read({each.vm.id: each.vm.name for each in due.values()})
        except ProviderError as error:
            log.info("VMs could not be read", error=error.message)
            self._drop([*due, *self._neighbours(each for each in due.values() if each.sample)])
            return
        now = self._clock.monotonic()
        for each in self._neighbours(
            each for each in due.values() if _is_alarming(each, found.get(each.vm.id))
        ).values():
            each.due = now
        self._drop(who for who, each in due.items() if each.vm.id not in found)
        for who, each in due.items():
            if each.vm.id in found and self._watched.get(who) is each:
                self._take(each, found[each.vm.id], now)

    def _neighbours(self, some: Iterable[_Watched]) -> dict[str, _Watched]:
        """All VMs of the clusters of these."""
        clusters = {each.vm.cluster_id for each in some}
        return {who: each for who, each in self._watched.items() if each.vm.cluster_id in clusters}

    def _take(self, held: _Watched, vm: Vm, now: float) -> None:
        changed = _differ(held.vm, vm)
        held.vm, held.read_at, held.sample = _kept(vm), now, False
        held.delay = held.delay if held.steady else min(held.delay * _FACTOR, _SLOWEST_SECONDS)
        held.due = now + held.delay
        if changed:
            held.wake()

    def _drop(self, whose: Iterable[str]) -> None:
        """They look for themselves: what they then find is what they tell."""
        for held in [self._watched.pop(who, None) for who in list(whose)]:
            if held is not None:
                held.wake()


def _kept(vm: Vm) -> Vm:
    """Without its ETag, which may be another one by the time that somebody acts on it, and without its many words."""
    return replace(vm, etag="", raw=None)


def _is_alarming(held: _Watched, now: Vm | None) -> bool:
    """Whether the other VMs of its cluster may have changed, too."""
    return now is not None and _differ(held.vm, now) and (held.sample or now.power == "unknown")


def _differ(before: Vm, after: Vm) -> bool:
    return _read_of(before) != _read_of(after)


def _read_of(vm: Vm) -> tuple[Any, ...]:
    """The fields of a VM that machines depend on. Other fields change all the time."""
    return (vm.name, vm.power, vm.addresses, vm.marks, vm.cluster_id)
