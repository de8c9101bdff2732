"""Everything at once: a plane with all controllers, and behind it a simulated Prism Central whose machines boot.

    @virtual
    async def test_a_cluster_comes_up():
        async with nutanix_site() as site:
            await site.have(*manifest.cluster_objects("one", 1, 0))
            await site.running("one", 1)

Prism Central is called by the name that manifests give it, through a proxy, with its certificate verified. The cloud
controller manager that workload clusters are given runs in them, by the network and as the account of its Pod.
"""

from __future__ import annotations

import asyncio
import builtins
import contextlib
import tempfile
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson

from homeport.api.cluster.v1beta2 import Cluster, Machine, MachineDeployment
from homeport.api.controlplane.v1beta2 import KubeadmControlPlane
from homeport.api.meta import Resource
from homeport.api.nutanix.v1beta1 import NutanixCluster, NutanixMachine
from homeport.apiserver.verb.write import encoder
from homeport.app import ccm
from homeport.app.kubernetes import standin
from homeport.app.platform import chosen
from homeport.builtin.install import install as install_builtin
from homeport.capi.environment import Environment
from homeport.client.dial import DialOptions
from homeport.client.errors import NotFound
from homeport.client.protocol import Key, MergePatch, Query
from homeport.runtime.clock import Clock, SystemClock
from homeport.runtime.definition import establish
from homeport.runtime.manager import Manager
from homeport.runtime.testing import Plane, plane
from homeport.runtime.webhook.embedded import install as install_hooks
from homeport.sim.engine.fault import Effect, Fault, Match
from homeport.sim.engine.tls import Authority
from homeport.sim.machine.fleet import Describe, Fleet, describe
from homeport.sim.machine.pace import QUICK
from homeport.sim.machine.pace import Pace as MachinePace
from homeport.sim.network import Loopback, Network, Proxy
from homeport.sim.prism.entity import Vm
from homeport.sim.prism.pace import INSTANT, Pace
from homeport.sim.prism.prism import Prism
from homeport.sim.prism.serve import NAMES
from homeport.sim.prism.wire import Wire
from homeport.sim.prism.world import WorldFile, default_world
from scenario.hosted.estate import Estate

NAMESPACE = "default"
Backup = dict[tuple[str, str], bytes]
EVENT = Resource("events.k8s.io", "v1", "Event", "events")
SECRET = Resource("", "v1", "Secret", "secrets")
_CATEGORY = "KubernetesClusterName"


class Site:
    def __init__(self, p: Plane, network: Network, fleet: Fleet, prism: Prism, dial: DialOptions) -> None:
        self.plane = p
        self.client = p.client
        self.network = network
        self.fleet = fleet
        self.prism = prism
        self.dial = dial
        self.dialled: Counter[tuple[str, str]] = Counter()  # attempts to connect: which host, to which address
        self.estate: Estate | None = None  # where Pods of the plane run
        self.created: list[str] = []  # names of VMs in the order in which they came to be
        prism.journal.on_entry = lambda entry: self._note()
        self._known: set[str] = {vm.ext_id for vm in prism.world.vms}

    @property
    def clock(self) -> Clock:
        return self.plane.clock

    def _note(self) -> None:
        for vm in self.prism.world.vms:
            if vm.ext_id not in self._known:
                self._known.add(vm.ext_id)
                self.created.append(vm.name)

    def install(self, manager: Manager) -> None:
        if self.estate is not None:
            self.estate.install(self.plane.server, manager)
        else:
            install_builtin(self.plane.server, manager)
        chosen().install(manager, Environment(manager.client, self.dial, self.plane.server))

    async def restart(self) -> None:
        """The controllers end and begin anew, with nothing but what is in the API."""
        await self.plane.stop()
        await self.begin()

    async def begin(self) -> None:
        self.plane.manager = Manager(self.plane.server.client(), clock=self.clock)
        self.install(self.plane.manager)
        await self.plane.start()

    def backup(self) -> Backup:
        """All objects of users, as a backup of this moment has them."""
        store = self.plane.server.store
        return {
            (bucket, record.name): record.value
            for bucket in store.buckets()
            if not bucket.startswith("events")
            for record in store.range(bucket)
            if record.name.startswith(f"{NAMESPACE}/")
        }

    async def restore(self, backup: Backup) -> None:
        """The controllers end, the objects are again as they were at the backup, and the controllers begin anew.

        What runs on Prism Central and in workload clusters knows nothing of that.
        """
        await self.plane.stop()
        store = self.plane.server.store
        for key, value in self.backup().items():
            if key not in backup:
                await store.delete(*key, encoder(orjson.loads(value)), expect=None)
        for key, value in backup.items():
            await store.put(*key, encoder(orjson.loads(value)), expect=None)
        await self.begin()

    # -- a user ------------------------------------------------------------------------------------------------

    async def have(self, *objects: Mapping[str, Any]) -> None:
        await self.plane.have(*objects)

    async def patch(self, kind: Any, name: str, body: Mapping[str, Any], namespace: str = NAMESPACE) -> Any:
        return await self.client.patch(kind, Key(namespace, name), MergePatch(body))

    async def delete(self, kind: Any, name: str, namespace: str = NAMESPACE) -> None:
        with contextlib.suppress(NotFound):
            await self.client.delete(kind, Key(namespace, name))

    def fault(self, effect: Effect, *, times: int | None = None, name: str = "fault", **match: Any) -> None:
        self.prism.faults.add(Fault(effect, Match(**match), name=name, times=times))
        self.prism.core.on_change()

    def clear_faults(self) -> None:
        self.prism.faults.set(())
        self.prism.core.on_change()

    # -- looking -----------------------------------------------------------------------------------------------

    async def until(
        self,
        kind: Any,
        name: str,
        predicate: Callable[[Any], bool],
        timeout: float = 900.0,
        what: str = "",
        namespace: str = NAMESPACE,
    ) -> Any:
        return await self.plane.until(kind, Key(namespace, name), predicate, timeout, what=what)

    async def gone(self, kind: Any, name: str, timeout: float = 900.0, namespace: str = NAMESPACE) -> None:
        await self.plane.gone(kind, Key(namespace, name), timeout)

    async def get(self, kind: Any, name: str, namespace: str = NAMESPACE) -> Any:
        return await self.client.get(kind, Key(namespace, name))

    async def list(self, kind: Any, namespace: str = NAMESPACE) -> builtins.list[Any]:
        return list((await self.client.list(kind, Query(namespace=namespace))).items)

    async def running(
        self, name: str, control_planes: int, workers: int = 0, timeout: float = 1800.0, namespace: str = NAMESPACE
    ) -> builtins.list[Machine]:
        """All Machines of the cluster, once they run."""
        await self.until(
            KubeadmControlPlane,
            f"{name}-kcp",
            lambda k: k.status.ready_replicas == control_planes == k.status.replicas,
            timeout,
            what=f"{control_planes} control planes ready",
            namespace=namespace,
        )
        if workers:
            await self.until(
                MachineDeployment,
                f"{name}-md-0",
                lambda m: m.status.ready_replicas == workers == m.status.replicas,
                timeout,
                what=f"{workers} workers ready",
                namespace=namespace,
            )
        machines = [each for each in await self.list(Machine, namespace) if each.spec.cluster_name == name]
        assert {each.status.phase for each in machines} == {"Running"}
        return machines

    async def condition(
        self, kind: Any, name: str, type_: str, status: str, *words: str, timeout: float = 90.0
    ) -> dict[str, Any]:
        """The condition, once it has this status and its reason or message has all these words."""

        def fits(obj: Any) -> bool:
            found = _condition(obj, type_)
            text = f"{found.get('reason', '')} {found.get('message', '')}"
            return found.get("status") == status and all(word in text for word in words)

        obj = await self.until(kind, name, fits, timeout, what=f"{type_}={status} with {words}")
        return _condition(obj, type_)

    def vms(self) -> builtins.list[Vm]:
        return list(self.prism.world.vms)

    def categories(self) -> builtins.list[str]:
        """Values of clusters' own category."""
        return [each.value for each in self.prism.world.categories if each.key == _CATEGORY and each.value]

    def calls(self, since: int = 0) -> Counter[str]:
        """What was asked of Prism Central, by verb and route."""
        return Counter(f"{e.method} {e.route}" for e in self.prism.journal if e.number > since)

    async def events(self, reason: str = "") -> builtins.list[Any]:
        found = await self.list(EVENT)
        return [each for each in found if not reason or each.get("reason") == reason]

    async def empty(self, name: str) -> None:
        """Nothing of the cluster is left, here or on Prism Central."""
        for kind in (NutanixMachine, NutanixCluster, Machine, Cluster):
            assert await self.list(kind) == []
        assert [vm.name for vm in self.vms()] == []
        assert name not in self.categories()


def _condition(obj: Any, type_: str) -> dict[str, Any]:
    return next((dict(each) for each in obj.status.conditions if each["type"] == type_), {})


def with_network(brought: bool) -> Describe:
    """What is on images, whether or not a network for Pods is among it."""
    return describe if brought else lambda machine: replace(describe(machine), cni=False)


@asynccontextmanager
async def nutanix_site(
    *,
    world: WorldFile | None = None,
    pace: Pace = INSTANT,
    machine_pace: MachinePace = QUICK,
    faults: Iterable[Fault] = (),
    newest_minor: int = 4,
    v4: bool = True,
    start: bool = True,
    echo: bool = False,
    session_seconds: float = 900.0,
    seed: int = 0,
    cni: bool = True,
    hosted: bool = False,
) -> AsyncIterator[Site]:
    """`cni` False: Nodes are not ready until somebody brings a network for Pods. `hosted`: the plane runs Pods of
    control planes."""
    async with contextlib.AsyncExitStack() as stack:
        p = await stack.enter_async_context(plane(echo=echo))
        network = Network()
        proxy, trust = Proxy(network), b""

        def reach_from(host: str) -> DialOptions:
            return DialOptions(proxy.url(host), trust)

        fleet = Fleet(
            network,
            p.clock,
            pace=replace(machine_pace, poll=2.0),
            images=with_network(cni),
            programs=standin.first_of(ccm.programs(reach_from), standin.programs(reach_from)),
        )
        prism = Prism(
            world or default_world(),
            clock=p.clock,
            pace=pace,
            faults=faults,
            guests=fleet,
            newest_minor=newest_minor if v4 else None,
            session_seconds=session_seconds,
            seed=seed,
        )
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="homeport-site-")))
        # Certificates are verified by OpenSSL, which knows the real time alone.
        authority = Authority.ensure(folder, SystemClock())
        called = authority.called("server", NAMES, SystemClock())
        trust = authority.path.read_bytes()
        wire = Wire(prism)
        port = await wire.start(tls=called.context)
        network.stand_in(9440, network.attach("prism-central"), lambda dialled: Loopback("127.0.0.1", port))
        await proxy.start()
        site = Site(p, network, fleet, prism, DialOptions(proxy.url(), trust))
        site.dialled = proxy.dialled
        site.estate = Estate(network, fleet, p.clock) if hosted else None
        install_hooks(chosen().register(Environment(p.client, site.dial, p.server)), p.server)
        await establish(p.client, *chosen().definitions())
        try:
            if start:
                site.install(p.manager)
                await p.start()
            yield site
        finally:
            await p.stop()
            await fleet.close()  # first: what runs on machines asks Prism Central, too
            await wire.close()
            await proxy.close()
            await asyncio.sleep(1.0 if hosted else 0)  # ports of Pods see that their connections have ended
