"""The harness on another API server: a real kube-apiserver, upstream's definitions, our webhooks, real time.

No controller-manager runs there: nobody collects garbage, and what must go is deleted by its controller or stays.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from capikit import generic, manifest
from capikit.harness import Harness, make_hooks
from capikit.role import role_kubeconfig
from homeport.api.cluster.v1beta2 import MachineDeployment
from homeport.api.controlplane.v1beta2 import KubeadmControlPlane
from homeport.api.meta import Object, Resource
from homeport.client.http import HttpClient
from homeport.client.kubeconfig import load
from homeport.client.protocol import Client, Key, Write
from homeport.runtime.clock import SystemClock
from homeport.runtime.definition import CRD, established
from homeport.runtime.manager import Manager
from homeport.runtime.telemetry.explain import LogTail
from homeport.runtime.testing import Plane
from homeport.runtime.webhook.configuration import (
    MUTATING,
    VALIDATING,
    Url,
    render_configurations,
    with_conversion,
)
from homeport.runtime.webhook.hook import Hooks
from homeport.runtime.webhook.server import WebhookServer
from homeport.sim.machine.fleet import Fleet
from homeport.sim.machine.pace import QUICK
from homeport.sim.network import Network
from homeport.sim.network.proxy import Proxy
from realkube import RealKube

_TEST = Write(field_manager="test")
_SECRET = Key("default", "webhook-ca")
_WAIT_SECONDS = 60.0


class OutsidePlane(Plane):
    """A manager on a server that is not ours, with the rights of an installation, and a client to play the user."""

    def __init__(self, kubeconfig: Path, crds: Iterable[Mapping[str, Any]], logs: LogTail, role: Path) -> None:
        self.clock = SystemClock()
        self.logs = logs
        self.client: Any = HttpClient(load(kubeconfig), field_manager="user")
        self._plain = HttpClient(load(role))
        self.manager = Manager(self._plain, clock=self.clock)
        self._running = None
        self._kinds = {(each.api_version, each.kind): each for crd in crds for each in _served(crd)}
        self._kinds["v1", "Secret"] = Resource("", "v1", "Secret", "secrets")

    def resource(self, obj: Mapping[str, Any] | Object) -> Resource:
        if isinstance(obj, Object):
            return type(obj).__resource__
        return self._kinds[str(obj["apiVersion"]), str(obj["kind"])]

    def renew(self) -> Manager:
        """Another manager, which knows nothing but what is in the API."""
        self.manager = Manager(self._plain, clock=self.clock)
        return self.manager

    def refuse_refusals(self) -> None:
        """What the role of an installation lacks would not be seen otherwise: controllers try again."""
        refused = [line for line in self.logs.lines() if "is forbidden: User" in line]
        assert not refused, "\n".join(refused)

    async def close(self) -> None:
        try:
            await self.stop()
        finally:
            for client in (self.client, self._plain):
                await client.close()


class OutsideHarness(Harness):
    """The same hands, on a server that is not ours."""

    def __init__(self, plane: OutsidePlane, network: Network, fleet: Fleet, proxy: str) -> None:
        super().__init__(plane, network, fleet, generic.Generic(network, fleet), proxy, None)

    async def steady(self, name: str, control_planes: int, workers: int, version: str, timeout: float = 120.0) -> None:
        """As in the harness; upstream's older definitions know the lowest version alone, and no list of versions."""
        await self.until(
            KubeadmControlPlane,
            f"{name}-cp",
            lambda k: settled(k, control_planes) and k.status.version == version,
            timeout,
            what=f"{control_planes} control planes at {version}",
        )
        if workers:
            await self.until(
                MachineDeployment, f"{name}-md-0", lambda m: settled(m, workers), timeout, what=f"{workers} workers"
            )

    async def restart(self) -> None:
        await self.plane.stop()
        assert isinstance(self.plane, OutsidePlane)
        self.install(self.plane.renew())
        await self.plane.start()


def settled(obj: Any, replicas: int) -> bool:
    """All replicas are there, available and up to date."""
    s = obj.status
    counted = (s.replicas, s.ready_replicas, s.available_replicas, s.up_to_date_replicas)
    return bool(counted == (replicas,) * 4 and (s.observed_generation or 0) >= obj.metadata.generation)


def _served(crd: Mapping[str, Any]) -> list[Resource]:
    spec = crd["spec"]
    names, namespaced = spec["names"], spec["scope"] == "Namespaced"
    return [
        Resource(spec["group"], v["name"], names["kind"], names["plural"], namespaced)
        for v in spec["versions"]
        if v["served"]
    ]


@asynccontextmanager
async def outside(kube: RealKube, crds: list[dict[str, Any]]) -> AsyncIterator[OutsideHarness]:
    """`crds` are Cluster API's; the provider's are added. An earlier harness may have created them already."""
    every = [*crds, *generic.definitions()]
    with LogTail() as logs:
        plane = OutsidePlane(kube.kubeconfig, every, logs, await role_kubeconfig(kube, generic.definitions()))
        hooks = make_hooks(plane.client)
        network = Network()
        fleet = Fleet(network, plane.clock, pace=QUICK)
        proxy = Proxy(network)
        try:
            async with serving(hooks, plane.client) as webhooks:
                await prepare(plane.client, hooks, every, webhooks)
                made = OutsideHarness(plane, network, fleet, await proxy.start())
                made.install(plane.manager)
                await plane.start()
                yield made
                await plane.stop()
                plane.refuse_refusals()
        finally:
            await plane.close()
            await fleet.close()
            await proxy.close()


@asynccontextmanager
async def serving(hooks: Hooks, client: Client) -> AsyncIterator[WebhookServer]:
    webhooks = WebhookServer(hooks, client, _SECRET, ["127.0.0.1"], listen=("127.0.0.1", 0))
    task = asyncio.create_task(webhooks.run())
    started = asyncio.create_task(webhooks.started.wait())
    try:
        await asyncio.wait({task, started}, return_when=asyncio.FIRST_COMPLETED)
        assert not task.done(), task.exception()
        yield webhooks
    finally:
        started.cancel()
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


async def prepare(client: Client, hooks: Hooks, crds: list[dict[str, Any]], webhooks: WebhookServer) -> None:
    """Definitions that convert by our webhooks, and configurations by which the server asks them; all in force."""
    url = Url(f"https://127.0.0.1:{webhooks.address[1]}")
    bundle = base64.b64encode(webhooks.bundle).decode()
    for crd in with_conversion(hooks, crds, url):
        if crd["spec"].get("conversion"):
            crd["spec"]["conversion"]["webhook"]["clientConfig"]["caBundle"] = bundle
        await client.apply(crd, _TEST, kind=CRD, force=True)
    for config in render_configurations(hooks, url):
        for webhook in config["webhooks"]:
            webhook["clientConfig"]["caBundle"] = bundle
        kind = MUTATING if config["kind"] == MUTATING.kind else VALIDATING
        await client.apply(config, _TEST, kind=kind, force=True)
    async with asyncio.timeout(_WAIT_SECONDS):
        # A poll by nature: the server says nowhere that it has learnt of a configuration or a definition.
        while not (await _all_served(client, len(crds)) and await _in_force(client)):  # noqa: ASYNC110
            await asyncio.sleep(0.05)


async def _all_served(client: Client, count: int) -> bool:
    return sum(established(crd) for crd in (await client.list(CRD)).items) >= count


async def _in_force(client: Client) -> bool:
    """A MachineDeployment gets the label of its cluster by our defaults."""
    (deployment,) = [each for each in manifest.workers("probe", 1, "v1.30.0") if each["kind"] == "MachineDeployment"]
    kind = Resource("cluster.x-k8s.io", "v1beta2", "MachineDeployment", "machinedeployments")
    made = await client.create(deployment, Write(dry_run=True), kind=kind)
    return "cluster.x-k8s.io/cluster-name" in (made.metadata.get("labels") or {})
