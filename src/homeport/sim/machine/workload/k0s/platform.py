"""The controllers of k0s that act inside its cluster. They run when something changed, on the controller that leads."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

import orjson
import structlog

from homeport.api.meta import Resource
from homeport.client.errors import AlreadyExists, ApiError, NotFound
from homeport.client.protocol import Key, MergePatch
from homeport.runtime.definition import establish
from homeport.runtime.task import cancel
from homeport.sim.machine.workload.alarm import Alarm
from homeport.sim.machine.workload.k0s.agent import Agent
from homeport.sim.machine.workload.k0s.chart import settle_charts
from homeport.sim.machine.workload.k0s.configuration import publish, settle_configuration
from homeport.sim.machine.workload.k0s.definition import (
    CHART,
    CLUSTER_CONFIG,
    CONTROL_NODE,
    ETCD_MEMBER,
    PLAN,
    definitions,
)
from homeport.sim.machine.workload.k0s.join import JoinApi
from homeport.sim.machine.workload.k0s.member import announce, settle_members
from homeport.sim.machine.workload.k0s.plan import settle_plan
from homeport.sim.machine.workload.k0s.signal import settle_signals
from homeport.sim.machine.workload.k0s.stack import FOLDER, settle_stacks
from homeport.sim.machine.workload.k0s.tunnel import TunnelPort
from homeport.sim.machine.workload.kind import NODE, Json
from homeport.sim.network import Service
from homeport.store import Change, StoreUnavailable

if TYPE_CHECKING:
    from homeport.sim.machine.workload.cluster import ControlPlane, WorkloadCluster

log = structlog.get_logger(__name__)

Settle = Callable[["Platform"], Awaitable[None]]
_STEPS: tuple[tuple[str, Settle], ...] = (
    ("etcd", settle_members),
    ("autopilot", settle_signals),
    ("autopilot", settle_plan),
    ("clusterconfig", settle_configuration),
    ("applier-manager", settle_stacks),
    ("helm", settle_charts),
)
_WATCHED = (ETCD_MEMBER, CONTROL_NODE, PLAN, NODE, CLUSTER_CONFIG, CHART)
_MOST_PASSES = 50
_RETRY_SECONDS = 5.0


class Platform:
    """`attach` each machine after its join; `wake` after a change that the API does not show."""

    def __init__(self, cluster: WorkloadCluster) -> None:
        self.cluster = cluster
        self.agents: dict[str, Agent] = {}  # controllers and workers, by the names of their machines
        self.stacks: dict[str, str] = {}  # folders of manifests as they were applied, by name
        self.complaints: dict[str, str] = {}  # what was logged last about a stack or the charts
        self.attempts: dict[str, tuple[object, float]] = {}  # to install charts, by UID: of what, and when
        self.configured: object = None  # the generation of the ClusterConfig that was applied
        self._join = JoinApi(cluster)
        self._tunnel = TunnelPort()
        self._dirty = False
        self._defined = False
        self._silent: list[Agent] = []  # controllers that have not published themselves yet
        self._task: asyncio.Task[None] | None = None
        self._alarm = Alarm(self.wake)
        for kind in _WATCHED:
            cluster.server.store.subscribe(kind.qualified, self._take)

    def service(self, plane: ControlPlane, port: int) -> Service:
        """What answers at the ports of a controller besides the API server's."""
        return self._join if port == plane.more_ports[0] else self._tunnel

    async def attach(self, agent: Agent) -> None:
        self.agents[agent.host.guest.name] = agent
        if agent.controller:
            agent.host.disk.watch(FOLDER, self.wake)
            self._silent.append(agent)
        await self._introduce()
        self.wake()

    async def _introduce(self) -> None:
        """Controllers publish themselves once after each start, as soon as the API answers."""
        while self._silent and self.cluster.serving():
            await self._define()
            agent = self._silent.pop(0)
            await announce(self, agent)
            await publish(self, agent)

    async def _define(self) -> None:
        if not self._defined:
            for body in definitions():
                with contextlib.suppress(AlreadyExists):
                    await establish(self.cluster.client("k0s"), body)
            self._defined = True

    def leader(self) -> Agent | None:
        """The controller that acts for all: of those that serve, the one that joined first."""
        serving = {id(plane.guest) for plane in self.cluster.serving()}
        guests = [plane.guest for plane in self.cluster.control_planes.values() if id(plane.guest) in serving]
        found = (self.agents.get(guest.name) for guest in guests)
        return next((agent for agent in found if agent is not None), None)

    # -- reading and writing -----------------------------------------------------------------------------------

    def all(self, kind: Resource) -> list[Json]:
        return [orjson.loads(record.value) for record in self.cluster.server.store.range(kind.qualified)]

    def read(self, kind: Resource, name: str, namespace: str = "") -> Json | None:
        record = self.cluster.server.store.get(kind.qualified, f"{namespace}/{name}" if namespace else name)
        return None if record is None else orjson.loads(record.value)

    async def put(
        self, kind: Resource, name: str, status: Json, labels: dict[str, str] | None = None, spec: Json | None = None
    ) -> None:
        """A cluster-wide object with this status."""
        client, key = self.cluster.client("k0s"), Key("", name)
        body: Json = {"metadata": {"name": name, "labels": labels or {}}, **({"spec": spec} if spec else {})}
        try:
            await client.create(body, kind=kind)
        except AlreadyExists:
            if spec:
                await client.patch(kind, key, MergePatch({"spec": spec}))
        await self.set_status(kind, name, status)

    async def set_status(self, kind: Resource, name: str, status: Json, namespace: str = "") -> None:
        patch = MergePatch({"status": status})
        await self.cluster.client("k0s").patch(kind, Key(namespace, name), patch, subresource="status")

    # -- running -----------------------------------------------------------------------------------------------

    def _take(self, changes: list[Change]) -> None:
        self.wake()

    def wake(self) -> None:
        self._dirty = True
        if self._task is None and not self.cluster.closed:
            self._task = asyncio.get_running_loop().create_task(self._run(), name="controllers of k0s")

    def later(self, seconds: float) -> None:
        self._alarm.after(seconds)

    async def _run(self) -> None:
        try:
            for _ in range(_MOST_PASSES):
                if not self._dirty or self.leader() is None:
                    return
                self._dirty = False
                await self._introduce()
                await self._pass()
            self.later(_RETRY_SECONDS)
        except (StoreUnavailable, NotFound):
            return  # closed or deleted in the meantime
        except ApiError as error:
            log.warning("k0s could not write to its cluster", why=str(error))
            self.later(_RETRY_SECONDS)
        finally:
            self._task = None

    async def _pass(self) -> None:
        for component, settle in _STEPS:
            leader = self.leader()
            if leader is not None and component not in leader.disabled:
                await settle(self)

    async def idle(self) -> None:
        """Returns when there is nothing left to do now."""
        while self._task is not None:
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.shield(self._task)

    async def close(self) -> None:
        self._alarm.close()
        await cancel(self._task)
        await self._join.close()
        await self._tunnel.close()
