"""A workload cluster: one API server in memory behind every control plane that can serve, and the state of its etcd."""

from __future__ import annotations

import contextlib
import errno
import random
import socket
from collections.abc import Iterable
from dataclasses import dataclass, field
from ipaddress import ip_network
from pathlib import Path

import orjson

from homeport.api.meta import Resource
from homeport.apiserver.embedded import EmbeddedServer
from homeport.apiserver.kinds.install import leave_protection
from homeport.client.errors import AlreadyExists
from homeport.client.protocol import Client, Key, MergePatch
from homeport.runtime.clock import Clock
from homeport.runtime.task import Tasks
from homeport.sim.machine.etcdwire.member import PORT as ETCD_PORT
from homeport.sim.machine.etcdwire.member import EtcdService
from homeport.sim.machine.workload.controller import Controllers
from homeport.sim.machine.workload.etcd import Etcd
from homeport.sim.machine.workload.facts import Facts, parse_version
from homeport.sim.machine.workload.guest import Guest
from homeport.sim.machine.workload.k0s.platform import Platform
from homeport.sim.machine.workload.kind import LEASE, NODE, Json
from homeport.sim.machine.workload.kubelet import Kubelet
from homeport.sim.machine.workload.loop import Loops
from homeport.sim.machine.workload.network.podnetwork import PodNetwork
from homeport.sim.machine.workload.network.portforward import PodDialer
from homeport.sim.machine.workload.network.vip import Vip, VipConfig
from homeport.sim.machine.workload.network.webhook import WebhookRoute
from homeport.sim.machine.workload.pod.container import Containers
from homeport.sim.machine.workload.standin.standins import Standins
from homeport.sim.machine.workload.trust.authority import Authority, ClusterPki
from homeport.sim.network import Network, Service
from homeport.sim.network.balancer import answering
from homeport.store import Change, History

_BOOTSTRAP_MANAGER = "kubeadm"
# As much of the past as etcd keeps: heartbeats would pile up for hours otherwise.
_HISTORY = History(seconds=300.0)


class ApiService:
    """What answers at the ports of a cluster's control planes."""

    def __init__(self, cluster: WorkloadCluster) -> None:
        self.cluster = cluster
        self._tasks = Tasks()

    async def accept(self, sock: socket.socket, source: str) -> None:
        """Straight into the server, without a detour by its own port."""
        http = self.cluster.server.http
        if http is None or self.cluster.closed:
            raise ConnectionRefusedError(errno.ECONNREFUSED, "connection refused: the API server has ended")
        self._tasks.start(http.take(sock), f"connection of {source}")


@dataclass(slots=True, eq=False, repr=False)
class ControlPlane:
    guest: Guest
    node: str
    address: str
    port: int
    vip: VipConfig | None = None
    more_ports: tuple[int, ...] = ()  # of k0s: the join API and konnectivity
    version: str = ""  # of the API server, where no Node tells it: controllers of k0s, Pods of a hosted cluster
    more_vips: tuple[VipConfig, ...] = ()
    stopped: bool = False  # its programs are being restarted

    @property
    def ports(self) -> tuple[int, ...]:
        return (self.port, *self.more_ports)

    @property
    def vips(self) -> tuple[VipConfig, ...]:
        return (*((self.vip,) if self.vip is not None else ()), *self.more_vips)


@dataclass(slots=True, eq=False, repr=False)
class WorkloadCluster:
    """Made by `start`. `refresh` after anything that decides who can serve: power, network, members."""

    facts: Facts
    pki: ClusterPki
    etcd_authority: Authority | None
    network: Network
    clock: Clock
    server: EmbeddedServer
    rng: random.Random
    control_planes: dict[str, ControlPlane] = field(default_factory=dict)  # by node
    kubelets: dict[str, Kubelet] = field(default_factory=dict)  # by node
    initialized: bool = False
    closed: bool = False
    database: Path | None = None  # None: its objects are in memory
    service: ApiService | None = None
    _vips: dict[str, Vip] = field(default_factory=dict)
    beats: int = 0  # revisions that only renew Leases
    etcd: Etcd = field(init=False)
    pods: PodNetwork = field(init=False)
    containers: Containers = field(init=False)
    standins: Standins = field(init=False)
    controllers: Controllers = field(init=False)
    webhooks: WebhookRoute = field(init=False)
    loops: Loops = field(init=False)
    k0s: Platform | None = None
    hosted: str = ""  # the datastore of a cluster whose control plane runs as Pods: it outlives them

    def __post_init__(self) -> None:
        self.etcd = Etcd(self._alive, self._hears, self.rng)
        self.server.store.subscribe(LEASE.qualified, self._count_beats)
        self.pods = PodNetwork(self)
        self.containers = Containers(self)
        self.standins = Standins(self)
        self.webhooks = WebhookRoute(self)
        self.loops = Loops(self.server, self.clock)
        self.controllers = Controllers(
            self.server, self.clock, self._kubelet_alive, self.containers, self.standins, self._pull_problem
        )
        if self.facts.flavour == "k0s":
            self.k0s = Platform(self)

    def _count_beats(self, changes: list[Change]) -> None:
        self.beats += len(changes)

    @classmethod
    async def start(
        cls,
        facts: Facts,
        pki: ClusterPki,
        etcd_authority: Authority | None,
        network: Network,
        clock: Clock,
        rng: random.Random,
        copy_of: Path | None = None,
        database: Path | None = None,
    ) -> WorkloadCluster:
        """`copy_of`: the database of a cluster that goes on. `database`: keeps every object on disk from the start."""
        services = str(ip_network(facts.service_subnet.split(",")[0].strip(), strict=False))
        server = await EmbeddedServer.open(
            database,
            pki,
            clock=clock.now,
            service_network=services,
            history=_HISTORY,
            copy_of=copy_of,
            simulated=True,
        )
        leave_protection(server.registry)
        made = cls(facts, pki, etcd_authority, network, clock, server, rng, database=database)
        server.builtin.ports.dial = PodDialer(made).dial
        server.webhook_caller.route = made.webhooks.reach
        await _serve(server, pki, network)
        assert server.http is not None
        server.http.root.version = made.version
        made.service = ApiService(made)
        return made

    async def close(self) -> None:
        if self.closed:
            return
        self.closed = True
        for plane in self.control_planes.values():
            self._stop_listening(plane)
        for vip in self._vips.values():
            vip.close()
        await self.controllers.close()
        await self.loops.close()
        if self.k0s is not None:
            await self.k0s.close()
        await self.server.close(drain_seconds=0.5)
        await self.webhooks.close()

    # -- the API -----------------------------------------------------------------------------------------------

    def client(self, manager: str = _BOOTSTRAP_MANAGER) -> Client:
        return self.server.client(field_manager=manager)

    async def put(self, objects: Iterable[tuple[Json, Resource]], manager: str = _BOOTSTRAP_MANAGER) -> None:
        """Creates what is not there yet; what is there is brought up to date."""
        client = self.client(manager)
        for obj, kind in objects:
            try:
                await client.create(obj, kind=kind)
            except AlreadyExists:
                meta = obj["metadata"]
                await client.patch(kind, Key(meta.get("namespace", ""), meta["name"]), MergePatch(obj))

    # -- control planes ----------------------------------------------------------------------------------------

    def add_control_plane(self, plane: ControlPlane) -> None:
        self.control_planes[plane.node] = plane
        for vip in plane.vips:
            if vip.address not in self._vips:
                self._vips[vip.address] = Vip(vip)
        if self.pki.add_hosts([plane.node, plane.address, *plane.guest.host.addresses]):
            self.server.reload_certificate()
        self.refresh()

    def drop_control_plane(self, node: str) -> None:
        """Its program has ended; what the cluster holds stays."""
        plane = self.control_planes.pop(node, None)
        if plane is not None:
            self._stop_listening(plane)
            self.refresh()

    def runs_on(self, guest: Guest) -> bool:
        """Whether the machine is a control plane."""
        return any(plane.guest is guest for plane in self.control_planes.values())

    async def lose(self, guest: Guest) -> None:
        """The machine is gone with all it had. The last control plane takes the cluster with it."""
        for node, plane in list(self.control_planes.items()):
            if plane.guest is guest:
                self._stop_listening(plane)
                plane.guest.host.unlisten(ETCD_PORT)
                del self.control_planes[node]
        if not self.control_planes:
            await self.close()
        else:
            self.refresh()

    def serving(self) -> list[ControlPlane]:
        """The control planes whose API server answers."""
        return [plane for plane in self.control_planes.values() if self._serves(plane)]

    def version(self) -> str:
        """The version of the API server. While an upgrade runs, the older one: the newer is not everywhere yet."""
        found = [version for plane in self.serving() if (version := plane.version or self._version_at(plane.node))]
        return min(found, key=parse_version, default=self.facts.version)

    def _version_at(self, node: str) -> str:
        """'' for a control plane that is not a Node, as those of k0s."""
        record = self.server.store.get(NODE.qualified, node)
        status = {} if record is None else orjson.loads(record.value).get("status") or {}
        return str((status.get("nodeInfo") or {}).get("kubeletVersion", ""))

    def refresh(self) -> None:
        """Opens and closes the ports of API servers, and lets virtual addresses move."""
        if self.closed or self.service is None:
            return
        self.etcd.elect()
        for plane in self.control_planes.values():
            self._listen_etcd(plane)
            if not self._serves(plane):
                self._stop_listening(plane)
                continue
            for port in plane.ports:
                service = self._service_at(plane, port)
                if plane.guest.host.service(port) is not service:
                    plane.guest.host.listen(port, service)
        for address, vip in self._vips.items():
            vip.settle(lambda address=address: self._able(address))  # type: ignore[misc]
        self.controllers.wake()
        if self.k0s is not None:
            self.k0s.wake()

    def _service_at(self, plane: ControlPlane, port: int) -> Service:
        assert self.service is not None
        if self.k0s is None or self.hosted or port == plane.port:
            return self.service
        return self.k0s.service(plane, port)

    def _listen_etcd(self, plane: ControlPlane) -> None:
        """etcd answers without quorum, too; a member that was removed ends. k0s keeps its etcd to itself."""
        if self.etcd_authority is None or self.k0s is not None:
            return
        host = plane.guest.host
        if plane.node not in self.etcd.members:
            if isinstance(ended := host.service(ETCD_PORT), EtcdService):
                ended.end()
            host.unlisten(ETCD_PORT)
        elif host.service(ETCD_PORT) is None:
            addresses = lambda: list(host.addresses)  # noqa: E731 - read when the certificate is made
            service = EtcdService(
                self.etcd, plane.node, self.server.store, self.etcd_authority, addresses, self.clock, self.refresh
            )
            host.listen(ETCD_PORT, service)

    def _stop_listening(self, plane: ControlPlane) -> None:
        for port in plane.ports:
            if self.service is not None and plane.guest.host.service(port) is self._service_at(plane, port):
                plane.guest.host.unlisten(port)

    def virtual_addresses(self) -> frozenset[str]:
        """Addresses that machines hold for the cluster, besides their own."""
        return self.standins.addresses() | self._vips.keys()

    def _able(self, address: str) -> list[Guest]:
        return [plane.guest for plane in self.serving() if any(vip.address == address for vip in plane.vips)]

    def _serves(self, plane: ControlPlane) -> bool:
        if not plane.guest.running or plane.stopped:
            return False
        return self.facts.external_etcd or self.etcd.quorum_at(plane.node)

    def _alive(self, node: str) -> bool:
        plane = self.control_planes.get(node)
        return plane is not None and plane.guest.running and not plane.stopped

    def _hears(self, node: str, other: str) -> bool:
        a, b = self.control_planes.get(node), self.control_planes.get(other)
        return a is not None and b is not None and self.network.reaches(a.guest.host.name, b.guest.host.name)

    # -- who reaches it ----------------------------------------------------------------------------------------

    def reachable(self, guest: Guest) -> bool:
        """Whether a machine reaches this cluster by its endpoint. k0s on a controller uses the API server beside it."""
        if self.k0s is not None and any(plane.guest is guest for plane in self.serving()):
            return True
        with contextlib.suppress(OSError):
            return cluster_at(self.network, guest.host.name, *self.facts.endpoint) is self
        return False

    def _pull_problem(self, node: str, image: str) -> str:
        kubelet = self.kubelets.get(node)
        return "" if kubelet is None else kubelet.guest.pull_problem(image)

    def _kubelet_alive(self, node: str) -> bool:
        kubelet = self.kubelets.get(node)
        return kubelet is not None and kubelet.guest.running and self.reachable(kubelet.guest)


async def _serve(server: EmbeddedServer, pki: ClusterPki, network: Network) -> None:
    """Also on a loopback address of its own, as far as the system has more than one."""
    own = network.loopback()
    pki.add_hosts([own])
    for host, port in ((own, 6443), (own, 0)):
        with contextlib.suppress(OSError):
            await server.serve(host, port)
            return
    await server.serve()


def cluster_at(network: Network, source: str, host: str, port: int) -> WorkloadCluster | None:
    """Which cluster answers `source` at host:port; None for something that is no API server. Raises OSError."""
    service = answering(network, source, host, port)
    return service.cluster if isinstance(service, ApiService) else None
