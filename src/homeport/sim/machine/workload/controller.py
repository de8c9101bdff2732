"""The controllers of a workload cluster, in small: workloads become Pods, Pods get nodes and run, budgets are counted.

They run when something changed and rest otherwise: an idle cluster costs nothing. One pass looks at everything, which
is cheap for clusters of the size that are simulated, and passes go on until one changes nothing.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable

import structlog

from homeport.apiserver.embedded import EmbeddedServer
from homeport.client.errors import ApiError
from homeport.runtime.clock import Clock
from homeport.sim.machine.workload.budget import settle_budgets
from homeport.sim.machine.workload.container import Containers
from homeport.sim.machine.workload.daemon import settle_daemon_sets
from homeport.sim.machine.workload.podlife import settle_pods
from homeport.sim.machine.workload.replica import (
    settle_deployments,
    settle_jobs,
    settle_orphans,
    settle_replica_sets,
    settle_stateful_sets,
)
from homeport.sim.machine.workload.scheduler import settle_schedule
from homeport.sim.machine.workload.signer import settle_requests
from homeport.sim.machine.workload.token import settle_tokens
from homeport.sim.machine.workload.view import Reader, View
from homeport.sim.machine.workload.volume import settle_volumes
from homeport.store import Change, StoreUnavailable

log = structlog.get_logger(__name__)

_WATCHED = (
    "pods", "nodes", "deployments.apps", "replicasets.apps", "daemonsets.apps", "statefulsets.apps", "jobs.batch",
    "poddisruptionbudgets.policy", "namespaces", "volumeattachments.storage.k8s.io",
    "persistentvolumes", "persistentvolumeclaims",
    "certificatesigningrequests.certificates.k8s.io", "secrets", "configmaps",
)  # fmt: skip
_MOST_PASSES = 100
_RETRY_SECONDS = 5.0
_STEPS = (
    settle_deployments,
    settle_replica_sets,
    settle_stateful_sets,
    settle_jobs,
    settle_daemon_sets,
    settle_orphans,
    settle_schedule,
    settle_pods,
    settle_volumes,
    settle_budgets,
    settle_requests,
    settle_tokens,
)


class Controllers:
    """`alive(node)`: the kubelet of that node runs and reaches the API."""

    def __init__(
        self, server: EmbeddedServer, clock: Clock, alive: Callable[[str], bool], containers: Containers
    ) -> None:
        self._server = server
        self._containers = containers
        self._clock = clock
        self._alive = alive
        self._dirty = False
        self._task: asyncio.Task[None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._closed = False
        self._stuck = False  # waits for the timer whatever else happens
        for bucket in _WATCHED:
            server.store.subscribe(bucket, self._take)

    def _take(self, changes: list[Change]) -> None:
        self.wake()

    def wake(self) -> None:
        self._dirty = True
        if self._task is None and not self._stuck and not self._closed:
            self._task = asyncio.get_running_loop().create_task(self._run(), name="controllers of a simulated cluster")

    async def _run(self) -> None:
        try:
            reader = Reader(self._server.store)  # kept no longer than there is something to do
            for _ in range(_MOST_PASSES):
                if not self._dirty:
                    return
                self._dirty = False
                await self._pass(reader)
            self._stuck = True  # something never settles: it gets its turn, but not all of the time
            self._later()
        except StoreUnavailable:
            return  # closed in the meantime
        except ApiError as error:
            log.warning("a controller of a simulated cluster was refused", why=str(error))
            self._stuck = True
            self._later()
        finally:
            self._task = None
            if self._dirty and not self._stuck and not self._closed:
                self.wake()

    async def _pass(self, reader: Reader) -> None:
        for step in _STEPS:
            await step(self._view(reader))
        self._containers.settle(self._view(reader))

    def _view(self, reader: Reader) -> View:
        return View(self._server, reader, self._clock, self._alive, self._later, self._containers.busy)

    def _later(self, seconds: float = _RETRY_SECONDS) -> None:
        if self._closed:
            return
        loop = asyncio.get_running_loop()
        if self._timer is not None:
            if self._timer.when() <= loop.time() + seconds:
                return
            self._timer.cancel()
        self._timer = loop.call_later(seconds, self._again)

    def _again(self) -> None:
        self._timer = None
        self._stuck = False
        self.wake()

    async def idle(self) -> None:
        """Returns when there is nothing left to do now."""
        while self._task is not None:
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.shield(self._task)

    async def close(self) -> None:
        self._closed = True
        if self._timer is not None:
            self._timer.cancel()
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task
        await self._containers.close()
