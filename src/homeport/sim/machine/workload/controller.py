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
from homeport.runtime.task import cancel
from homeport.sim.machine.workload.alarm import Alarm
from homeport.sim.machine.workload.pod.budget import settle_budgets
from homeport.sim.machine.workload.pod.container import Containers
from homeport.sim.machine.workload.pod.daemon import settle_daemon_sets
from homeport.sim.machine.workload.pod.life import settle_pods
from homeport.sim.machine.workload.pod.replica import (
    settle_deployments,
    settle_jobs,
    settle_orphans,
    settle_replica_sets,
    settle_stateful_sets,
)
from homeport.sim.machine.workload.pod.scheduler import settle_schedule
from homeport.sim.machine.workload.standin.standins import WATCHED, Standins
from homeport.sim.machine.workload.storage.claim import settle_claims
from homeport.sim.machine.workload.storage.volume import settle_volumes
from homeport.sim.machine.workload.trust.signer import settle_requests
from homeport.sim.machine.workload.trust.token import settle_tokens
from homeport.sim.machine.workload.view import Reader, View
from homeport.store import Change, StoreUnavailable

log = structlog.get_logger(__name__)

_WATCHED = (
    "pods", "nodes", "deployments.apps", "replicasets.apps", "daemonsets.apps", "statefulsets.apps", "jobs.batch",
    "poddisruptionbudgets.policy", "namespaces", "volumeattachments.storage.k8s.io",
    "persistentvolumes", "persistentvolumeclaims", "storageclasses.storage.k8s.io",
    "certificatesigningrequests.certificates.k8s.io", "secrets", "configmaps", *WATCHED,
)  # fmt: skip
_MOST_PASSES = 100
_RETRY_SECONDS = 5.0
_READER_SECONDS = 5.0  # how long what was decoded is kept for the next change
# Which program does what. Where a control plane's programs are started one by one, only some of them may run.
MANAGER, SIGNER, TOKENS, SCHEDULER, KUBELET = "manager", "signer", "tokens", "scheduler", "kubelet"
_STEPS = (
    (MANAGER, settle_deployments),
    (MANAGER, settle_replica_sets),
    (MANAGER, settle_stateful_sets),
    (MANAGER, settle_jobs),
    (MANAGER, settle_daemon_sets),
    (MANAGER, settle_orphans),
    (MANAGER, settle_claims),
    (SCHEDULER, settle_schedule),
    (KUBELET, settle_pods),
    (MANAGER, settle_volumes),
    (MANAGER, settle_budgets),
    (SIGNER, settle_requests),
    (TOKENS, settle_tokens),
)
EVERYTHING = frozenset(role for role, _ in _STEPS)


class Controllers:
    """`alive(node)`: the kubelet of that node runs and reaches the API. `pull_problem(node, image)`: see Guest."""

    def __init__(
        self,
        server: EmbeddedServer,
        clock: Clock,
        alive: Callable[[str], bool],
        containers: Containers,
        standins: Standins,
        pull_problem: Callable[[str, str], str],
    ) -> None:
        self._server = server
        self._standins = standins
        self._containers = containers
        self._clock = clock
        self._alive = alive
        self._pull_problem = pull_problem
        self._dirty = False
        self._task: asyncio.Task[None] | None = None
        self._alarm = Alarm(self._again)
        self._reader: Reader | None = None
        self._forgetting = Alarm(self._forget)
        self._closed = False
        self._stuck = False  # waits for the timer whatever else happens
        self._roles = EVERYTHING
        for bucket in _WATCHED:
            server.store.subscribe(bucket, self._take)

    def play(self, roles: frozenset[str]) -> None:
        """Which programs run from now on."""
        if roles != self._roles:
            self._roles = roles
            self.wake()

    def _take(self, changes: list[Change]) -> None:
        self.wake()

    def wake(self) -> None:
        self._dirty = True
        if self._task is None and not self._stuck and not self._closed:
            self._task = asyncio.get_running_loop().create_task(self._run(), name="controllers of a simulated cluster")

    async def _run(self) -> None:
        try:
            reader = self._reader = self._reader or Reader(self._server.store)
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
            self._forgetting.after(_READER_SECONDS)
            if self._dirty and not self._stuck and not self._closed:
                self.wake()

    async def _pass(self, reader: Reader) -> None:
        for role, step in _STEPS:
            if role in self._roles:
                await step(self._view(reader))
        if KUBELET in self._roles:
            await self._standins.settle(self._view(reader))
            self._containers.settle(self._view(reader))

    def _view(self, reader: Reader) -> View:
        containers = self._containers
        return View(
            self._server,
            reader,
            self._clock,
            self._alive,
            self._later,
            containers.busy,
            containers.has_program,
            self._pull_problem,
            containers.unready,
        )

    def _later(self, seconds: float = _RETRY_SECONDS) -> None:
        self._alarm.after(seconds)

    def _again(self) -> None:
        self._stuck = False
        self.wake()

    def _forget(self) -> None:
        self._reader = None

    async def idle(self) -> None:
        """Returns when there is nothing left to do now."""
        while self._task is not None:
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.shield(self._task)

    async def close(self) -> None:
        self._closed = True
        self._alarm.close()
        self._forgetting.close()
        await cancel(self._task)
        await self._standins.close()
        await self._containers.close()
