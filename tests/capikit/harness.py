"""A whole management plane with simulated machines, in this process: in virtual or real time.

@virtual
async def test_a_cluster_comes_up():
    async with harness() as h:
        await h.create("one", 1, 0)
        await h.provisioned("one")
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import sys
import traceback
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, MutableMapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson
import structlog

from capikit import generic, manifest
from homeport import bootstrap, controlplane, core
from homeport.api.cluster.v1beta2 import Cluster, Machine, MachineDeployment
from homeport.api.controlplane.v1beta2 import KubeadmControlPlane
from homeport.builtin.install import install as install_builtin
from homeport.capi import conversion
from homeport.capi.capi import Capi
from homeport.capi.definition.kind import definitions
from homeport.client.errors import NotFound
from homeport.client.protocol import Client, Key, MergePatch, Query
from homeport.machinery import condition
from homeport.runtime.clock import LoopClock
from homeport.runtime.definition import establish
from homeport.runtime.manager import Manager, Mode
from homeport.runtime.testing import Plane, plane
from homeport.runtime.webhook.embedded import install as install_hooks
from homeport.runtime.webhook.hook import Hooks
from homeport.sim.machine.fleet import Fleet
from homeport.sim.machine.pace import QUICK, Pace
from homeport.sim.network import Network
from homeport.sim.network.proxy import Proxy

NAMESPACE = "default"

Wrap = Callable[[Client], Any]  # what controllers have in place of a client


@dataclass(frozen=True)
class Part:
    """A further part of the plane that a scenario is about."""

    definitions: Callable[[], Iterable[Mapping[str, Any]]]
    register: Callable[[Hooks], object]
    install: Callable[[Capi], object]


def make_hooks(client: Client) -> Hooks:
    hooks = Hooks()
    conversion.register(hooks)
    core.register(hooks, client)
    bootstrap.register(hooks)
    controlplane.register(hooks)
    return hooks


@functools.cache
def _definitions() -> bytes:
    """Rendered once per process: rendering takes half of the time that a harness needs to start."""
    return orjson.dumps(definitions())


class Harness:
    """A management plane, its simulated infrastructure, and what a user does with them."""

    def __init__(
        self,
        plane: Plane,
        network: Network,
        fleet: Fleet,
        infra: generic.Generic,
        proxy: str,
        wrap: Wrap | None,
        parts: Sequence[Part] = (),
    ) -> None:
        self._parts = parts
        self.plane = plane
        self.client = plane.client
        self.network = network
        self.fleet = fleet
        self.infra = infra
        self.proxy = proxy
        self._wrap: Wrap = wrap or (lambda client: client)

    @property
    def clock(self) -> LoopClock:
        assert isinstance(self.plane.clock, LoopClock)
        return self.plane.clock

    def manager(self, mode: Mode | None = None, who: str = "") -> Manager:
        """Controllers that do not run yet."""
        made = Manager(self._wrap(self.plane.server.client()), mode=mode, clock=self.plane.clock, who=who)
        install_builtin(self.plane.server, made)
        self.install(made)
        return made

    def install(self, manager: Manager) -> None:
        capi = Capi.make(manager, proxy=self.proxy)
        core.install(manager, capi)
        bootstrap.install(manager, capi)
        controlplane.install(manager, capi)
        generic.install(manager, self.infra)
        for part in self._parts:
            part.install(capi)

    async def restart(self) -> None:
        """The controllers end and begin anew, with nothing but what is in the API."""
        await self.plane.stop()
        self.plane.manager = self.manager()
        await self.plane.start()

    # -- a user ------------------------------------------------------------------------------------------------

    async def create(self, name: str, control_planes: int, workers: int, version: str = "v1.30.0") -> None:
        await self.plane.have(*manifest.cluster_objects(name, control_planes, workers, version))

    async def patch(self, kind: Any, name: str, body: Mapping[str, Any]) -> Any:
        return await self.client.patch(kind, Key(NAMESPACE, name), MergePatch(body))

    async def delete(self, kind: Any, name: str) -> None:
        with contextlib.suppress(NotFound):
            await self.client.delete(kind, Key(NAMESPACE, name))

    # -- looking -----------------------------------------------------------------------------------------------

    async def until(
        self, kind: Any, name: str, predicate: Callable[[Any], bool], timeout: float = 600.0, what: str = ""
    ) -> Any:
        return await self.plane.until(kind, Key(NAMESPACE, name), predicate, timeout, what=what)

    async def gone(self, kind: Any, name: str, timeout: float = 600.0) -> None:
        await self.plane.gone(kind, Key(NAMESPACE, name), timeout)

    async def machines(self, cluster: str = "") -> list[Machine]:
        labels = f"cluster.x-k8s.io/cluster-name={cluster}" if cluster else ""
        return list((await self.client.list(Machine, Query(namespace=NAMESPACE, labels=labels))).items)

    async def available(self, name: str, timeout: float = 600.0) -> Cluster:
        """The Cluster once it says that it is available, all its machines counted."""
        found: Cluster = await self.until(Cluster, name, _available, timeout, what="being Available")
        return found

    async def steady(self, name: str, control_planes: int, workers: int, version: str, timeout: float = 3600.0) -> None:
        """All replicas are there, available and up to date."""
        await self.until(
            KubeadmControlPlane,
            f"{name}-cp",
            lambda k: _settled(k, control_planes) and _at(k, version),
            timeout,
            what=f"{control_planes} control planes at {version}",
        )
        if workers:
            await self.until(
                MachineDeployment, f"{name}-md-0", lambda m: _settled(m, workers), timeout, what=f"{workers} workers"
            )

    def alive(self) -> dict[str, str]:
        """Machines of the infrastructure: name by UID."""
        return {made.uid: made.name for made in self.infra.machines.values()}


def _available(cluster: Cluster) -> bool:
    return condition.is_true(cluster.status.conditions, "Available")


def _settled(obj: Any, replicas: int) -> bool:
    s = obj.status
    counted = (s.replicas, s.ready_replicas, s.available_replicas, s.up_to_date_replicas)
    return bool(counted == (replicas,) * 4 and (s.observed_generation or 0) >= obj.metadata.generation)


def _at(kcp: Any, version: str) -> bool:
    return [v.version for v in kcp.status.versions] == [version]


class Blunders:
    """Log lines that nobody should ever see."""

    def __init__(self) -> None:
        self._lines: list[str] = []

    def __enter__(self) -> None:
        structlog.get_config()["processors"].insert(0, self._note)

    def __exit__(self, *_: object) -> None:
        structlog.get_config()["processors"].remove(self._note)

    def _note(self, logger: Any, method: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
        if method in ("error", "exception", "critical"):
            failed = "".join(traceback.format_exception(error)) if (error := sys.exception()) is not None else ""
            self._lines.append(f"{event} {structlog.contextvars.get_contextvars()} {failed}")
        return event

    def check(self, manager: Manager) -> None:
        assert not self._lines, "errors were logged:\n" + "\n".join(self._lines[:10])
        failed = {c.name: dict(c.failed) for c in manager.controllers if c.failed}
        assert not failed, f"controllers failed at last: {failed}"


@asynccontextmanager
async def harness(
    *,
    contract: str = "v1beta2",
    pace: Pace = QUICK,
    domains: Iterable[str] = (),
    database: Path | None = None,
    start: bool = True,
    echo: bool = False,
    wrap: Wrap | None = None,
    errors: bool = False,
    parts: Sequence[Part] = (),
) -> AsyncIterator[Harness]:
    """`wrap` stands between the controllers and the API. Without `errors`, a controller that logged an error or that
    failed at its last attempt, when the scenario has come to its end, is a failure."""
    crds = [*orjson.loads(_definitions()), *generic.definitions(contract)]
    crds.extend(each for part in parts for each in part.definitions())
    async with plane(crds=(), database=database, echo=echo) as p:
        hooks = make_hooks(p.server.client())
        for part in parts:
            part.register(hooks)
        install_hooks(hooks, p.server)
        await establish(p.client, *crds)
        network = Network()
        fleet = Fleet(network, p.clock, pace=pace)
        infra = generic.Generic(network, fleet, contract)
        infra.failure_domains = list(domains)
        proxy = Proxy(network)
        made = Harness(p, network, fleet, infra, await proxy.start(), wrap, parts)
        p.manager = made.manager()
        said = Blunders()
        try:
            with said:
                if start:
                    await p.start()
                yield made
            if not errors:
                said.check(p.manager)
        finally:
            await p.stop()
            await fleet.close()
            await proxy.close()
            await asyncio.sleep(0)
