"""Garbage collection and the deletion of namespaces: most simulated clusters never need them, so they start late."""

from __future__ import annotations

import asyncio

import structlog

from homeport.apiserver.embedded import EmbeddedServer
from homeport.builtin.install import install
from homeport.runtime.clock import Clock
from homeport.runtime.manager import Manager
from homeport.runtime.task import cancel
from homeport.store import Change

log = structlog.get_logger(__name__)

_RETRY_SECONDS = 5.0
_LEAVING = b'"deletionTimestamp"'


class Loops:
    """Run from the first Namespace that is deleted, or from the first program that needs them, until `close`."""

    def __init__(self, server: EmbeddedServer, clock: Clock) -> None:
        self._server = server
        self._clock = clock
        self._task: asyncio.Task[None] | None = None
        self._closed = False
        server.store.subscribe("namespaces", self._look)

    def start(self) -> None:
        if self._task is None and not self._closed:
            self._task = asyncio.get_running_loop().create_task(self._run(), name="garbage of a simulated cluster")

    def _look(self, changes: list[Change]) -> None:
        if any(each.record is not None and _LEAVING in each.record.value for each in changes):
            self.start()

    async def _run(self) -> None:
        while True:
            manager = Manager(self._server.client(), name="kube-controller-manager", clock=self._clock)
            install(self._server, manager)
            try:
                await manager.run()
            except Exception as error:
                log.warning("garbage collection of a simulated cluster is started again", why=str(error))
            await asyncio.sleep(_RETRY_SECONDS)

    async def close(self) -> None:
        self._closed = True
        await cancel(self._task)
