"""A whole simulated Harvester in this process: the API server, its controllers and its admission.

    harvester = await Harvester.open(pki, clock=clock, guests=fleet)
    client = harvester.client()          # or: await harvester.serve(), and HTTPS
    await harvester.settled()            # nothing left to do now
    await harvester.close()

Any number of them run in one process. Everything that is to last is in the API server's store: `database` names its
file, and a Harvester that is opened on it again goes on where it was.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import Iterable
from pathlib import Path

from homeport.api.meta import Resource
from homeport.apiserver.auth.pki import PKI
from homeport.apiserver.embedded import EmbeddedServer
from homeport.apiserver.kinds.pod.log import LogBuffer
from homeport.builtin.install import install as install_builtin
from homeport.client.errors import AlreadyExists
from homeport.client.protocol import Client, MergePatch
from homeport.runtime.clock import Clock, SystemClock, rfc3339
from homeport.runtime.manager import Manager
from homeport.sim.engine.download import Downloads, Fetch
from homeport.sim.engine.fault import Fault
from homeport.sim.engine.guest import Guests, NoGuests
from homeport.sim.engine.injector import Injector
from homeport.sim.engine.journal import Journal
from homeport.sim.harvester import access, admission
from homeport.sim.harvester.admission.machine import BY_MAC
from homeport.sim.harvester.admission.rule import macs
from homeport.sim.harvester.balancer.balancing import FOLLOWED as BALANCED
from homeport.sim.harvester.balancer.balancing import Balancing
from homeport.sim.harvester.console import Consoles
from homeport.sim.harvester.controller.claim import Claims
from homeport.sim.harvester.controller.image import Images
from homeport.sim.harvester.controller.instance import Instances
from homeport.sim.harvester.controller.keypair import KeyPairs
from homeport.sim.harvester.controller.launcher import BY_INSTANCE, CREATED_BY, Launchers, is_launcher
from homeport.sim.harvester.controller.machine import Machines
from homeport.sim.harvester.controller.volume import DataVolumes
from homeport.sim.harvester.core import Core
from homeport.sim.harvester.definition import definitions
from homeport.sim.harvester.gate import KubernetesGate, RevisionHistory
from homeport.sim.harvester.guest import Guestroom
from homeport.sim.harvester.host.hosting import FOLLOWED as HOSTED
from homeport.sim.harvester.host.hosting import Hosting
from homeport.sim.harvester.kind import (
    CLAIM,
    DATA_VOLUME,
    DEFINITION,
    IMAGE,
    KEY_PAIR,
    NAD,
    NODE,
    POD,
    SETTING,
    STORAGE_CLASS,
    VM,
    VMI,
    VOLUME,
    Json,
)
from homeport.sim.harvester.lease import Leases
from homeport.sim.harvester.loop import Loop
from homeport.sim.harvester.manifest import DEPLOYMENTS, SYSTEM, deployment_pod, image, objects
from homeport.sim.harvester.mirror import Mirror
from homeport.sim.harvester.object import key_of, labels, status_of
from homeport.sim.harvester.pace import INSTANT, Pace
from homeport.sim.harvester.subresource import Subresources
from homeport.sim.harvester.wake import Wakes
from homeport.sim.harvester.world import WorldFile, default_world
from homeport.sim.network import Network
from homeport.store import History

_FOLLOWED = (VM, VMI, POD, NODE, CLAIM, VOLUME, DATA_VOLUME, STORAGE_CLASS, IMAGE, NAD, SETTING, KEY_PAIR)
_HARVESTER_ALONE = ("harvesterhci.io",)
# As much of the past as etcd keeps.
_HISTORY = History(seconds=300.0)


class Harvester:
    """Made by `open`."""

    def __init__(
        self, server: EmbeddedServer, world: WorldFile, core: Core, manager: Manager, network: Network, journal: Journal
    ) -> None:
        self.server = server
        self.world = world
        self.core = core
        self.journal = journal
        self._past = RevisionHistory(server.store, core.clock)
        self.log = LogBuffer(clock=core.clock.now)
        self._manager = manager
        self._running: asyncio.Task[None] | None = None
        self.images = Images(core)
        self.claims = Claims(core)
        self.volumes = DataVolumes(core)
        self.machines = Machines(core)
        self.launchers = Launchers(core)
        self.instances = Instances(core, self.launchers, Guestroom(core))
        self.loops = {
            "image": Loop("image", self.images.settle),
            "keypair": Loop("keypair", KeyPairs(core).settle),
            "claim": Loop("claim", self.claims.settle),
            "volume": Loop("volume", self.volumes.settle),
            "machine": Loop("machine", self.machines.settle),
            "instance": Loop("instance", self.instances.settle),
            "launcher": Loop("launcher", self.launchers.settle),
        }
        self.balancing = Balancing(core, network)
        self.hosting = Hosting(core, self.instances, self.launchers)
        self.loops.update({**self.balancing.loops, **self.hosting.loops})
        self.consoles = Consoles(core, server.builtin.logs, self.instances.machine_of)
        self._wakes = Wakes(core, self.loops, self.launchers, self.instances)

    @classmethod
    async def open(
        cls,
        pki: PKI,
        *,
        world: WorldFile | None = None,
        clock: Clock | None = None,
        pace: Pace = INSTANT,
        faults: Iterable[Fault] | Injector = (),
        journal: Journal | None = None,
        guests: Guests | None = None,
        seed: int = 0,
        database: Path | None = None,
        copy_of: Path | None = None,
        network: Network | None = None,
        fetch: Fetch | None = None,
    ) -> Harvester:
        """`fetch` brings files that images are made of; None: every URL is there.

        `database` None keeps everything in memory, beginning with the backup `copy_of` if there is one.
        """
        clock = clock or SystemClock()
        world = world if world is not None else default_world()
        server = await EmbeddedServer.open(database, pki, clock=clock.now, history=_HISTORY, copy_of=copy_of)
        manager = Manager(server.client(field_manager="harvester"), clock=clock, name="harvester")
        install_builtin(server, manager)
        core = Core(
            world,
            server.client(field_manager="harvester"),
            Mirror(server.store),
            clock,
            pace,
            guests or NoGuests(),
            faults if isinstance(faults, Injector) else Injector(clock, faults, seed=seed),
            manager.recorder,
            Leases(world.vlans, world.pod_network),
            # Not the same again after a restart: names would be taken.
            random.Random(f"{seed}/{server.store.revision}"),  # noqa: S311  (names and pauses, not secrets)
            Downloads(fetch) if fetch is not None else None,
        )
        made = cls(server, world, core, manager, network or Network(), journal if journal is not None else Journal())
        await made._start()
        return made

    async def _start(self) -> None:
        await self._define()
        mirror = self.core.mirror
        for kind in (*_FOLLOWED, *BALANCED, *HOSTED):
            mirror.follow(kind)
        self.balancing.install(self.server.admission)
        self.hosting.install(self.server.registry)
        mirror.index(POD, BY_INSTANCE, lambda pod: [labels(pod)[CREATED_BY]] if is_launcher(pod) else [])
        self._wakes.index()
        self.consoles.start()
        mirror.index(VM, BY_MAC, macs)
        admission.install(self.server, self.core)
        Subresources(self.core, self.instances).install(self.server)
        await self._populate()
        self._wakes.connect(self.balancing.connect, self.hosting.connect)
        self._running = asyncio.create_task(self._manager.run(), name="harvester built-in loops")
        await self._manager.ready.wait()
        for vmi in mirror.all(VMI):
            if status_of(vmi).get("phase") == "Running":
                await self.instances.wake(vmi)
        for loop in self.loops.values():
            loop.start()

    async def _define(self) -> None:
        client = self.client()
        for definition in definitions():
            group = definition["spec"]["group"]
            if self.world.harvester or not group.endswith(_HARVESTER_ALONE):
                with contextlib.suppress(AlreadyExists):
                    await client.create(definition, kind=DEFINITION)
        await self.server.custom.settled()

    async def _populate(self) -> None:
        """The world's objects, the first time."""
        core, now = self.core, self.core.clock.now()
        if core.mirror.count(NODE):
            self._register_logs()
            return
        for obj, kind in objects(self.world, now):
            await self._put(obj, kind)
        for each in self.world.images if self.world.harvester else ():
            obj, kind = image(each)
            await self._put(obj, kind)
            stored = core.mirror.get(IMAGE, key_of(obj))
            if stored is not None:
                await self.images.finish(stored, each.size_bytes, each.virtual_size_bytes)
        for name in DEPLOYMENTS if self.world.harvester else ():
            await self._put({**deployment_pod(name, self.world), "status": _pod_status(rfc3339(now))}, POD)
        self._register_logs()
        for obj, kind in access.objects():
            await self._put(obj, kind)
        for obj in self.world.objects:
            await self._put(obj, self._resource(obj))

    async def _put(self, obj: Json, kind: Resource) -> None:
        """Creates an object with its status."""
        client, key = self.client(), key_of(obj)
        with contextlib.suppress(AlreadyExists):
            await client.create(obj, kind=kind)
        served = self.server.catalog.by_kind(kind.group, kind.kind)
        if "status" in obj and served is not None and served.versions[kind.version].status:
            await client.patch(kind, key, MergePatch({"status": obj["status"]}), subresource="status")

    def _resource(self, obj: Json) -> Resource:
        group, _, version = str(obj.get("apiVersion", "")).rpartition("/")
        served = self.server.catalog.by_kind(group, str(obj.get("kind", "")))
        if served is None or version not in served.versions:
            raise ValueError(f"objects: {obj.get('apiVersion')} {obj.get('kind')} is not a kind of Harvester")
        return served.versions[version].resource

    def _register_logs(self) -> None:
        for name in DEPLOYMENTS:
            self.server.builtin.logs.register(SYSTEM, f"{name}-0", "apiserver", self.log)

    # -- for whoever uses it -----------------------------------------------------------------------------------------

    def client(self, *, field_manager: str = "harvester") -> Client:
        """As an administrator, without a network in between."""
        return self.server.client(field_manager=field_manager)

    async def serve(self, host: str = "127.0.0.1", port: int = 0) -> str:
        """Listens over TLS; gives the URL."""
        url = await self.server.serve(host, port)
        http, core = self.server.http, self.core
        assert http is not None
        http.root.version = lambda: f"{self.world.kubernetes}+rke2r1"
        http.gate = KubernetesGate(core.faults, self.journal, self._past, core.clock, log=self.log.write)
        return url

    def meet_faults(self) -> None:
        """Faults have changed: machines and images look whether one meets them."""
        for name, kind in (("image", IMAGE), ("instance", VMI)):
            for obj in self.core.mirror.all(kind):
                self.loops[name].add(str(key_of(obj)))
        self.hosting.meet_faults()

    @property
    def faults(self) -> Injector:
        return self.core.faults

    async def settled(self) -> None:
        """Returns when nothing is left to do now; what takes time may still be under way."""
        while not all(loop.idle for loop in self.loops.values()):  # noqa: ASYNC110 - one loop wakes another
            await asyncio.sleep(0)

    async def close(self) -> None:
        for loop in self.loops.values():
            await loop.close()
        if self.core.downloads is not None:
            await self.core.downloads.close()
        self.balancing.close()
        self.core.mirror.close()
        if self._running is not None:
            self._running.cancel()
            await asyncio.gather(self._running, return_exceptions=True)
        self.log.close()
        await self.server.close(drain_seconds=1.0)


def _pod_status(now: str) -> Json:
    kinds = ("PodScheduled", "Initialized", "ContainersReady", "Ready")
    return {
        "phase": "Running",
        "startTime": now,
        "conditions": [{"type": kind, "status": "True", "lastTransitionTime": now} for kind in kinds],
        "containerStatuses": [
            {
                "name": "apiserver",
                "image": "rancher/harvester",
                "imageID": "",
                "ready": True,
                "started": True,
                "restartCount": 0,
                "state": {"running": {"startedAt": now}},
            }
        ],
    }
