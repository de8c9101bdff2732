"""Runs everything in one TaskGroup: informers, events, controllers, and whatever lease or shards they need.

Losing the lease ends the group; the caller starts a new manager.
"""

from __future__ import annotations

import asyncio
import os
import socket
import uuid
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

import structlog

from homeport.api.meta import Resource
from homeport.client.absence import find_object
from homeport.client.errors import ApiError
from homeport.client.protocol import Client, Key, Query, Unreadable
from homeport.runtime.clock import Clock, SystemClock
from homeport.runtime.controller import Controller
from homeport.runtime.departed import Departed
from homeport.runtime.event import Recorder
from homeport.runtime.informer import resource_of
from homeport.runtime.informers import Informers
from homeport.runtime.lease import LEASE, Lease, LeaseLost, LeaseTiming
from homeport.runtime.own_write import OwnWrites
from homeport.runtime.shard import GROUP_LABEL, Gained, Shards
from homeport.runtime.share import Share
from homeport.runtime.telemetry.trace import traced_client
from homeport.runtime.vacancy import Vacancy
from homeport.runtime.work import check_shard

log = structlog.get_logger(__name__)

_GOODBYE_SECONDS = 2.0

Job = Callable[[], Awaitable[None]]
KindShardOf = Callable[[Resource, Key, Any], str]  # the object is None if it does not exist


class Divided(Protocol):
    """What follows the shards, as controllers do: connections, for example."""

    async def let_go(self) -> None:
        """Shards may have become somebody else's. Controllers have finished their work on them."""

    def take_over(self) -> None:
        """Shards may have become ours. Controllers begin to work on them after this."""


@dataclass(frozen=True, slots=True)
class Solo:
    """This process is the only one (the embedded server admits no second)."""


@dataclass(frozen=True, slots=True)
class Elected:
    """One of several replicas works, the others wait."""

    namespace: str
    name: str
    timing: LeaseTiming | None = None


@dataclass(frozen=True, slots=True)
class Sharded:
    """Every replica works on its share. `shard_of` says which keys must stay together (by default: equal keys)."""

    namespace: str
    name: str
    timing: LeaseTiming | None = None
    shard_of: KindShardOf = lambda resource, key, obj: str(key)


Mode = Solo | Elected | Sharded


@dataclass(frozen=True, slots=True)
class Common:
    """A Lease that managers with different work hold together, under one name. While they do, none works that wants
    it for itself and does all of their work; and they wait while such a one works."""

    key: Key
    holder: str
    leases: tuple[Key, ...]  # those that the managers hold besides, each for its own work


def identity() -> str:
    """Unique for this process, readable for people."""
    return f"{socket.gethostname()}-{os.getpid()}-{uuid.uuid4().hex[:6]}".lower()


class Manager:
    """Make one, add controllers and jobs, then `run`."""

    def __init__(
        self,
        client: Client,
        *,
        mode: Mode | None = None,
        name: str = "homeport",
        clock: Clock | None = None,
        who: str = "",
        leases: Client | None = None,
        common: Common | None = None,
        before: Iterable[Key] = (),
    ) -> None:
        """`leases` is for Leases alone: a renewal must not wait until hundreds of other requests are answered.

        `before`: Leases that must not be held when this manager begins to work.
        """
        self.mode: Mode = mode or Solo()
        self.common = common
        self.before = tuple(before)
        self.clock = clock or SystemClock()
        self.identity = who or identity()
        self.client: Client = OwnWrites(traced_client(client), fence=self.fence)
        self.informers = Informers(client, self._name_unreadable)
        self.recorder = Recorder(self.client, name, clock=self.clock)
        self.controllers: list[Controller] = []
        self.ready = asyncio.Event()
        self._leases = leases or client
        self._jobs: list[Job] = []
        self._divided: list[Divided] = []
        self._loads: list[Callable[[], Iterable[str]]] = []
        self._own = self._make_tenure()
        self._tenure = self._own if self._own is None else self._limited(self._own)

    def add(self, controller: Controller) -> Controller:
        self.controllers.append(controller)
        controller.connect(self.informers, self._share_of(controller))
        return controller

    def job(self, run: Job) -> None:
        """Something else to keep running while this process leads."""
        self._jobs.append(run)

    def divide(self, part: Divided) -> None:
        """`part` is told when shards go and come."""
        self._divided.append(part)

    def weigh(self, loads: Callable[[], Iterable[str]]) -> None:
        """`loads` returns shards that have work, each as often as it should count: replicas get equal shares."""
        self._loads.append(loads)

    def holds(self, shard: str) -> bool:
        """Whether this process works on the shard."""
        return not isinstance(self._own, Shards) or self._own.mine(shard)

    def fence(self) -> float | None:
        """Raises LeaseLost when somebody else may be working by now. For what reconcilers do outside the API.

        The seconds for which this process may surely go on; None: there is no other.
        """
        check_shard()
        return None if self._tenure is None else self._tenure.fence()

    @property
    def lease(self) -> Lease | None:
        return None if self._tenure is None else self._tenure.lease

    @property
    def synced(self) -> bool:
        return all(informer.synced.is_set() for informer in self.informers)

    def health(self) -> dict[str, str]:
        """What is wrong, by part; empty when all is well."""
        return {i.resource.qualified: i.error for i in self.informers if i.error}

    def waits(self) -> dict[str, str]:
        """Leases of controllers that must not work beside these, and what to do about each; empty while we work. One
        that another replica of ours holds is among them only if that has stopped to renew it."""
        if self.ready.is_set() or self._tenure is None:
            return {}
        found = self._tenure.waits if isinstance(self._tenure, _Joint | _After) else {}
        return {f"Lease {key}": why for key, why in {**self._tenure.stale, **found}.items()}

    def unreadable(self) -> dict[str, str]:
        """Objects that don't fit their types, and why. Everything else is worked on: this process is well."""
        return {
            f"{informer.resource.qualified} {key}": why
            for informer in self.informers
            for key, why in informer.unreadable.items()
        }

    def _name_unreadable(self, obj: Unreadable, why: str) -> None:
        self.recorder.record(obj, "Unreadable", f"does not fit its type and is not acted on: {why}", warning=True)

    async def run(self) -> None:
        """Works until cancelled. Raises LeaseLost (in an ExceptionGroup) when the lease is lost."""
        async with asyncio.TaskGroup() as group:
            # Followers keep warm caches: a new leader starts without a list.
            self.informers.start(group.create_task)
            try:
                await self._work_in_turn()
            finally:
                self.informers.stop()

    async def _work_in_turn(self) -> None:
        for informer in self.informers:
            await informer.settled.wait()
        try:
            if self._tenure is not None:
                await self._tenure.join()
            async with asyncio.TaskGroup() as group:
                self._start(group)
        finally:
            # Only now has everybody put the pen down: the next one may take it.
            self.ready.clear()
            await self._say_goodbye()

    def _start(self, group: asyncio.TaskGroup) -> None:
        if self._tenure is not None:
            group.create_task(self._tenure.run(), name="lease")
        if isinstance(self.mode, Sharded):
            members = Query(namespace=self.mode.namespace, labels=f"{GROUP_LABEL}={self.mode.name}")
            duration = (self.mode.timing or LeaseTiming()).duration
            departed = Departed(self._leases, members, duration, clock=self.clock)
            group.create_task(departed.run(), name="leases of the dead")
        group.create_task(self.recorder.run(), name="events")
        for controller in self.controllers:
            group.create_task(controller.run(), name=f"controller {controller.name}")
        for job in self._jobs:
            group.create_task(_as_coroutine(job), name="job")
        self.ready.set()
        log.info("running", controllers=[c.name for c in self.controllers], identity=self.identity)

    async def _say_goodbye(self) -> None:
        try:
            async with asyncio.timeout(_GOODBYE_SECONDS):
                await self.recorder.flush()
        except (ApiError, LeaseLost, TimeoutError) as error:
            log.info("some events were not recorded", error=str(error) or "timed out")
        if self._tenure is not None:
            await self._tenure.leave()

    def _make_tenure(self) -> _Election | Shards | None:
        match self.mode:
            case Solo():
                return None
            case Elected(namespace, name, timing):
                return _Election(
                    Lease(self._leases, Key(namespace, name), self.identity, timing=timing, clock=self.clock)
                )
            case Sharded(namespace, name, timing, _):
                return Shards(
                    self._leases,
                    namespace,
                    name,
                    self.identity,
                    lost=self._let_go,
                    won=self._take_over,
                    loads=lambda: (shard for loads in self._loads for shard in loads()),
                    timing=timing,
                    clock=self.clock,
                )

    def _limited(self, own: _Election | Shards) -> _Election | Shards | _Joint | _After:
        common, timing = self.common, own.lease.timing
        tenure: _Election | Shards | _Joint = own
        if common is not None:
            held = Lease(self._leases, common.key, common.holder, timing=timing, clock=self.clock, together=True)
            tenure = _Joint(held, own, partial(_any_held, self._leases, common.leases))
        if not self.before:
            return tenure
        return _After(tenure, Vacancy(self._leases, self.before, timing, self.clock))

    def _share_of(self, controller: Controller) -> Share | None:
        """Which keys of a controller this process works on. None: all of them."""
        if not isinstance(self.mode, Sharded):
            return None
        resource, by_kind = resource_of(controller.kind), self.mode.shard_of

        def shard_of(key: Key, obj: Any) -> str:
            special = controller.shard_of(key, obj) if controller.shard_of is not None else None
            return special or by_kind(resource, key, obj)

        return Share(self.holds, shard_of, controller.cache, self.clock)

    async def _let_go(self) -> None:
        for controller in self.controllers:
            await controller.let_go()
        for part in self._divided:
            await part.let_go()

    def _take_over(self, gained: Gained) -> None:
        for part in self._divided:
            part.take_over()
        for controller in self.controllers:
            controller.take_over(gained)


class _Election:
    """The part of a leader, in the words of Shards."""

    def __init__(self, lease: Lease) -> None:
        self.lease = lease
        self.fence = lease.fence
        self.look = lease.look
        self.join = lease.hold
        self.run = lease.keep
        self.leave = lease.release

    @property
    def stale(self) -> dict[Key, str]:
        return self.lease.stale


class _Joint:
    """A tenure under a Lease that others hold with us."""

    def __init__(self, common: Lease, own: _Election | Shards, others: Callable[[], Awaitable[bool]]) -> None:
        self._common = common
        self._own = own
        self._others = others  # whether any of those who hold it may work
        self.lease = own.lease

    @property
    def waits(self) -> dict[Key, str]:
        return self._common.waits

    @property
    def stale(self) -> dict[Key, str]:
        return self._own.stale

    async def look(self) -> None:
        await self._common.look()
        await self._own.look()

    def fence(self) -> float:
        return min(self._common.fence(), self._own.fence())

    async def join(self) -> None:
        while True:
            await self._common.hold()
            await self._own.join()
            # Once more: to become the leader may have taken days.
            if await self._common.renew():
                return
            await self._own.leave()

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(self._common.keep(), name="common lease")
            group.create_task(self._own.run(), name="own lease")

    async def leave(self) -> None:
        """The last one gives the common Lease back. Whoever works holds its own Lease, took it before it renewed the
        common one for the last time before its work, and gives it back before it asks this: of two that leave together
        at least one finds no other."""
        await self._own.leave()
        await self._common.release(unless=self._others)


class _After:
    """A tenure that begins when others have ended, who know nothing of it."""

    def __init__(self, own: _Election | Shards | _Joint, others: Vacancy) -> None:
        self._own = own
        self._others = others
        self.lease = own.lease
        self.fence = own.fence
        self.leave = own.leave

    @property
    def waits(self) -> dict[Key, str]:
        return self._others.waits | (self._own.waits if isinstance(self._own, _Joint) else {})

    @property
    def stale(self) -> dict[Key, str]:
        return self._own.stale

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(self._own.run(), name="own lease")
            group.create_task(self._others.keep(), name="leases of others")

    async def join(self) -> None:
        while True:
            await self._others.wait(self._own.look)
            await self._own.join()
            # Once more: to become the leader may have taken days.
            if not await self._others.occupied():
                return
            await self._own.leave()


async def _any_held(client: Client, leases: Iterable[Key]) -> bool:
    """A Lease whose holder died counts, too: then nobody knows since when it has not been renewed."""
    for key in leases:
        lease = await find_object(client, LEASE, key)
        if lease is not None and (lease.get("spec") or {}).get("holderIdentity"):
            return True
    return False


async def _as_coroutine(job: Job) -> None:
    await job()
