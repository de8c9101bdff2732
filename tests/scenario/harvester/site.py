"""Everything at once: a plane with all controllers, and behind it a simulated Harvester whose VMs boot.

    @virtual
    async def test_a_cluster_comes_up():
        async with harvester_site() as site:
            await site.have(*manifest.cluster_objects("one", 1, 0))
            await site.running("one", 1)

Harvester is called by its address on the simulated network, through a proxy, with a kubeconfig in a Secret.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import msgspec

from homeport.api.cluster.v1beta2 import Cluster, Machine, MachineDeployment
from homeport.api.controlplane.v1beta2 import KubeadmControlPlane
from homeport.api.kubevirt.v1alpha1 import KubevirtCluster, KubevirtMachine
from homeport.api.meta import Resource
from homeport.apiserver.auth.authn import authenticated
from homeport.apiserver.request import User
from homeport.app import ccm
from homeport.app.kubernetes import standin
from homeport.app.platform import chosen
from homeport.builtin.install import install as install_builtin
from homeport.capi.environment import Environment
from homeport.client.dial import DialOptions
from homeport.client.errors import NotFound
from homeport.client.protocol import Key, MergePatch, Query
from homeport.providers.harvester.infracluster.resource import (
    CLAIM,
    DATA_VOLUME,
    LOAD_BALANCER,
    MACHINE_UID,
    SECRET,
    SERVICE,
    VM,
    VMI,
)
from homeport.runtime.cache import labels_of
from homeport.runtime.definition import establish
from homeport.runtime.manager import Manager
from homeport.runtime.testing import Plane, plane, shared_pki
from homeport.runtime.webhook.embedded import install as install_hooks
from homeport.sim.engine.fault import Effect, Fault, Match
from homeport.sim.engine.journal import Journal
from homeport.sim.harvester.gate import KubernetesGate, RevisionHistory
from homeport.sim.harvester.harvester import Harvester
from homeport.sim.harvester.pace import INSTANT, Pace
from homeport.sim.harvester.world import WorldFile, WorldImage, default_world
from homeport.sim.machine.fleet import Fleet
from homeport.sim.machine.pace import QUICK
from homeport.sim.network import Loopback, Network, Proxy
from scenario.harvester import manifest
from scenario.hosted.estate import Estate

NAMESPACE = manifest.NAMESPACE
TOKEN = "harvester-token"


class Site:
    def __init__(self, p: Plane, network: Network, fleet: Fleet, harvester: Harvester, journal: Journal) -> None:
        self.plane = p
        self.client = p.client
        self.clock = p.clock
        self.network = network
        self.fleet = fleet
        self.harvester = harvester
        self.journal = journal
        self.dial = DialOptions()
        self.infra = harvester.client(field_manager="somebody")
        self.estate: Estate | None = None  # where Pods of the plane run
        self.created: list[str] = []  # names of VMs in the order in which they came to be
        harvester.core.mirror.on(VM, self._note)

    def _note(self, key: str, new: Mapping[str, Any] | None, old: Mapping[str, Any] | None) -> None:
        if old is None and new is not None:
            self.created.append(new["metadata"]["name"])

    # -- controllers -------------------------------------------------------------------------------------------

    def install(self, manager: Manager) -> None:
        if self.estate is not None:
            self.estate.install(self.plane.server, manager)
        else:
            install_builtin(self.plane.server, manager)
        chosen().install(manager, Environment(manager.client, self.dial, self.plane.server))

    async def start(self) -> None:
        self.install(self.plane.manager)
        await self.plane.start()

    async def restart(self) -> None:
        await self.plane.stop()
        self.plane.manager = Manager(self.plane.server.client(), clock=self.plane.clock)
        await self.start()

    # -- a user ------------------------------------------------------------------------------------------------

    def secret(self, token: str = TOKEN) -> dict[str, Any]:
        return manifest.secret(manifest.kubeconfig(self.harvester.server.pki.ca_pem, token))

    async def have(self, *objects: Mapping[str, Any]) -> None:
        await self.plane.have(*objects)

    async def patch(self, kind: Any, name: str, body: Mapping[str, Any]) -> Any:
        return await self.client.patch(kind, Key(NAMESPACE, name), MergePatch(body))

    async def delete(self, kind: Any, name: str) -> None:
        with contextlib.suppress(NotFound):
            await self.client.delete(kind, Key(NAMESPACE, name))

    def fault(self, effect: Effect, *, times: int | None = None, **match: Any) -> None:
        self.harvester.faults.add(Fault(effect, Match(**match), times=times))

    # -- looking -----------------------------------------------------------------------------------------------

    async def until(
        self, kind: Any, name: str, predicate: Callable[[Any], bool], timeout: float = 900.0, what: str = ""
    ) -> Any:
        return await self.plane.until(kind, Key(NAMESPACE, name), predicate, timeout, what=what)

    async def gone(self, kind: Any, name: str, timeout: float = 900.0) -> None:
        await self.plane.gone(kind, Key(NAMESPACE, name), timeout)

    async def all(self, kind: Any) -> list[Any]:
        return list((await self.client.list(kind, Query(namespace=NAMESPACE))).items)

    async def running(self, name: str, control_planes: int, workers: int = 0, timeout: float = 1800.0) -> list[Machine]:
        """All Machines of the cluster, once they run."""
        await self.until(
            KubeadmControlPlane,
            f"{name}-kcp",
            lambda k: k.status.ready_replicas == control_planes == k.status.replicas,
            timeout,
            what=f"{control_planes} control planes ready",
        )
        if workers:
            await self.until(
                MachineDeployment,
                f"{name}-md-0",
                lambda m: m.status.ready_replicas == workers == m.status.replicas,
                timeout,
                what=f"{workers} workers ready",
            )
        machines = [each for each in await self.all(Machine) if each.spec.cluster_name == name]
        assert {each.status.phase for each in machines} == {"Running"}
        return machines

    async def condition(
        self, kind: Any, name: str, type_: str, status: str, *words: str, timeout: float = 90.0
    ) -> dict[str, Any]:
        """The condition, once it has this status and its reason or message has all these words."""

        def fits(obj: Any) -> bool:
            found = condition_of(obj, type_)
            text = f"{found.get('reason', '')} {found.get('message', '')}"
            return found.get("status") == status and all(word in text for word in words)

        obj = await self.until(kind, name, fits, timeout, what=f"{type_}={status} with {words}")
        return condition_of(obj, type_)

    async def there(self, kind: Resource) -> list[Any]:
        """Objects of Harvester that were made for machines or clusters."""
        if kind is LOAD_BALANCER and not self.harvester.world.harvester:
            return []
        found = (await self.infra.list(kind, Query(namespace=NAMESPACE))).items
        if kind in (VM, VMI, LOAD_BALANCER):
            return list(found)
        return [each for each in found if MACHINE_UID in labels_of(each) or each.name.endswith("-lb")]

    def calls(self, since: int = 0) -> Counter[str]:
        """What was asked of Harvester, by verb and kind."""
        return Counter(f"{e.method} {e.route}" for e in self.journal if e.number > since)

    async def empty(self) -> None:
        """Nothing of any cluster is left, here or on Harvester."""
        for kind in (KubevirtMachine, KubevirtCluster, Machine, Cluster):
            assert await self.all(kind) == []
        for resource in (VM, VMI, CLAIM, DATA_VOLUME, SECRET, SERVICE, LOAD_BALANCER):
            assert [each.name for each in await self.there(resource)] == [], resource.kind


def condition_of(obj: Any, type_: str) -> dict[str, Any]:
    return next((dict(each) for each in obj.status.conditions if each["type"] == type_), {})


def world(*, agent: bool = True, **more: Any) -> WorldFile:
    """The default one, and an image with Kubernetes on it. `agent`: whether the guest agent runs in it."""
    found = default_world()
    image = WorldImage(name=manifest.IMAGE, size_bytes=2**31, virtual_size_bytes=10 * 2**30, os="ubuntu", agent=agent)
    return msgspec.structs.replace(found, images=(*found.images, image), **more)


async def _site(
    p: Plane, network: Network, fleet: Fleet, harvester: Harvester, journal: Journal, dial: DialOptions
) -> Site:
    site = Site(p, network, fleet, harvester, journal)
    site.dial = dial
    install_hooks(chosen().register(Environment(p.client, dial, p.server)), p.server)
    await establish(p.client, *chosen().definitions())
    return site


@asynccontextmanager
async def another_plane(first: Site) -> AsyncIterator[Site]:
    """On the same Harvester and the same network."""
    async with plane() as p:
        site = await _site(p, first.network, first.fleet, first.harvester, first.journal, first.dial)
        await site.start()
        await site.have(site.secret())
        try:
            yield site
        finally:
            await p.stop()


@asynccontextmanager
async def harvester_site(
    *,
    world_file: WorldFile | None = None,
    pace: Pace = INSTANT,
    echo: bool = False,
    start: bool = True,
    hosted: bool = False,
) -> AsyncIterator[Site]:
    """`hosted`: the plane runs Pods of control planes."""
    async with contextlib.AsyncExitStack() as stack:
        p = await stack.enter_async_context(plane(echo=echo))
        network = Network()
        proxy = Proxy(network)

        def reach_from(host: str) -> DialOptions:
            return DialOptions(proxy.url(host))

        fleet = Fleet(
            network,
            p.clock,
            pace=replace(QUICK, poll=2.0),
            programs=standin.first_of(ccm.programs(reach_from), standin.programs(reach_from)),
            consoles=lambda machine, line: harvester.consoles.write(machine, line),
        )
        harvester = await Harvester.open(
            shared_pki(), world=world_file or world(), clock=p.clock, pace=pace, guests=fleet, network=network
        )
        url = await harvester.serve()
        journal = Journal()
        assert harvester.server.http is not None
        past = RevisionHistory(harvester.server.store, p.clock)
        harvester.server.http.gate = KubernetesGate(harvester.faults, journal, past, p.clock)
        user = User("harvester-admin", ("system:masters",), "1")
        harvester.server.authenticator._static = {hashlib.sha256(TOKEN.encode()).digest(): authenticated(user)}
        port = int(url.rpartition(":")[2])
        network.attach("harvester", ["10.20.0.10"]).listen(6443, Loopback("127.0.0.1", port))
        await proxy.start()
        site = await _site(p, network, fleet, harvester, journal, DialOptions(proxy.url()))
        site.estate = Estate(network, fleet, p.clock) if hosted else None
        try:
            if start:
                await site.start()
            await site.have(site.secret())
            yield site
        finally:
            await p.stop()
            await fleet.close()  # first: what runs on machines asks Harvester, too
            await harvester.close()
            await proxy.close()
            await asyncio.sleep(1.0 if hosted else 0)  # ports of Pods see that their connections have ended
