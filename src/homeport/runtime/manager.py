"""Runs everything in one TaskGroup: informers, events, controllers, and whatever lease or shards they need.

Losing the lease ends the group: whoever started the manager starts it again.
"""

from __future__ import annotations

import asyncio
import os
import socket
import uuid
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

import structlog

from homeport.client.protocol import Client, Key
from homeport.runtime.clock import Clock, SystemClock
from homeport.runtime.controller import Controller
from homeport.runtime.event import Recorder
from homeport.runtime.informer import Informers
from homeport.runtime.lease import Lease, LeaseTiming
from homeport.runtime.own_write import OwnWrites
from homeport.runtime.shard import Shards

log = structlog.get_logger(__name__)

Job = Callable[[], Awaitable[None]]


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
    """Every replica works on its share. `shard_key` says which keys must stay together (by default: each by itself)."""

    namespace: str
    name: str
    timing: LeaseTiming | None = None
    shard_key: Callable[[Key], str] = str


Mode = Solo | Elected | Sharded


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
    ) -> None:
        self.mode: Mode = mode or Solo()
        self.clock = clock or SystemClock()
        self.identity = who or identity()
        self.lease: Lease | None = None
        self.client: Any = OwnWrites(client, fence=self._fence)
        self.informers = Informers(client)
        self.recorder = Recorder(self.client, name, clock=self.clock)
        self.controllers: list[Controller] = []
        self.ready = asyncio.Event()
        self._plain = client
        self._jobs: list[Job] = []
        self._shards: Shards | None = None

    def add(self, controller: Controller) -> Controller:
        self.controllers.append(controller)
        controller.connect(self.informers)
        return controller

    def job(self, run: Job) -> None:
        """Something else to keep running while this process leads."""
        self._jobs.append(run)

    def _fence(self) -> None:
        if self.lease is not None:
            self.lease.fence()

    @property
    def synced(self) -> bool:
        return all(informer.synced.is_set() for informer in self.informers)

    def health(self) -> dict[str, str]:
        """What is wrong, by part; empty when all is well."""
        return {i.resource.qualified: i.error for i in self.informers if i.error}

    async def run(self) -> None:
        """Works until cancelled. Raises LeaseLost (in an ExceptionGroup) when the lease is lost."""
        async with asyncio.TaskGroup() as group:
            for informer in self.informers:
                group.create_task(informer.run(), name=f"informer {informer.resource.qualified}")
            # Followers keep warm caches: a new leader starts without a list.
            for informer in self.informers:
                await informer.synced.wait()
            await self._begin(group)
            group.create_task(self.recorder.run(), name="events")
            for controller in self.controllers:
                group.create_task(controller.run(), name=f"controller {controller.name}")
            for job in self._jobs:
                group.create_task(_as_coroutine(job), name="job")
            self.ready.set()
            log.info("running", controllers=[c.name for c in self.controllers], identity=self.identity)

    async def _begin(self, group: asyncio.TaskGroup) -> None:
        match self.mode:
            case Solo():
                return
            case Elected(namespace, name, timing):
                self.lease = Lease(self._plain, Key(namespace, name), self.identity, timing=timing, clock=self.clock)
                await self.lease.hold()
                group.create_task(_kept(self.lease), name="lease")
            case Sharded(namespace, name, timing, shard_key):
                self._share(namespace, name, timing, shard_key)
                assert self._shards is not None
                group.create_task(self._shards.run(), name="shards")

    def _share(self, namespace: str, name: str, timing: LeaseTiming | None, shard_key: Callable[[Key], str]) -> None:
        shards = self._shards = Shards(
            self._plain,
            namespace,
            name,
            self.identity,
            lost=self._let_go,
            won=self._take_over,
            timing=timing,
            clock=self.clock,
        )
        self.lease = shards.lease
        for controller in self.controllers:
            controller.mine = lambda key: shards.mine(shard_key(key))

    async def _let_go(self) -> None:
        for controller in self.controllers:
            await controller.let_go()

    def _take_over(self) -> None:
        for controller in self.controllers:
            controller.take_over()


async def _kept(lease: Lease) -> None:
    try:
        await lease.keep()
    finally:
        await lease.release()


async def _as_coroutine(job: Job) -> None:
    await job()
