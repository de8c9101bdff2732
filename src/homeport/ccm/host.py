"""Cloud controller managers of clusters with hosted control planes: they run here, and credentials stay here.

Each has a manager of its own on the connection to its workload cluster. It needs no lease: only the plane that works on
the Cluster runs one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextvars import Context, copy_context
from dataclasses import dataclass

import structlog

from homeport.capi.cloud import Cloud
from homeport.capi.remote.workload import Remote
from homeport.ccm.install import install
from homeport.ccm.service import Pool
from homeport.client.protocol import Key
from homeport.runtime.manager import Manager
from homeport.runtime.queue import Backoff

log = structlog.get_logger(__name__)

_AGAIN = Backoff(first=1.0, limit=60.0)


@dataclass(frozen=True, slots=True)
class Hosted:
    """What one workload cluster's manager is made of. `text`: another one is another manager."""

    text: str
    open: Callable[[], Cloud]
    pools: tuple[Pool, ...] = ()


@dataclass(frozen=True, slots=True)
class _Running:
    remote: Remote
    text: str
    task: asyncio.Task[None]


class CloudHost:
    def __init__(self, manager: Manager) -> None:
        self._manager = manager
        self._running: dict[Key, _Running] = {}
        self._group = asyncio.TaskGroup()
        self._started = asyncio.Event()
        self._context: Context | None = None  # of the job: what is started in a reconcile is not part of it
        manager.job(self._run)

    def runs(self, key: Key) -> bool:
        return key in self._running

    async def ensure(self, key: Key, remote: Remote, wanted: Hosted) -> bool:
        """True: it was not running before."""
        known = self._running.get(key)
        if known is not None and (known.remote, known.text) == (remote, wanted.text):
            return False
        await self.stop(key)
        await self._started.wait()
        assert self._context is not None
        task = self._group.create_task(
            self._serve(key, remote, wanted), name=f"{key}: cloud controller manager", context=self._context.copy()
        )
        self._running[key] = _Running(remote, wanted.text, task)
        return known is None

    async def stop(self, key: Key) -> None:
        """It has written its last word when this returns."""
        known = self._running.pop(key, None)
        if known is not None:
            known.task.cancel()
            await asyncio.wait([known.task])

    async def stop_others(self, mine: Callable[[Key], bool]) -> None:
        for key in [each for each in self._running if not mine(each)]:
            await self.stop(key)

    async def _run(self) -> None:
        self._context = copy_context()
        try:
            async with self._group:
                self._started.set()
                await asyncio.Event().wait()
        finally:
            self._running.clear()

    async def _serve(self, key: Key, remote: Remote, wanted: Hosted) -> None:
        failures = 0
        with structlog.contextvars.bound_contextvars(cluster=str(key)):
            while True:
                manager = Manager(remote.current, name="homeport-ccm", clock=self._manager.clock)
                install(manager, wanted.open(), wanted.pools)
                try:
                    await manager.run()
                except Exception:  # one cluster must not end the managers of all others
                    log.exception("the cloud controller manager failed")
                failures += 1
                await asyncio.sleep(_AGAIN.delay(failures))
