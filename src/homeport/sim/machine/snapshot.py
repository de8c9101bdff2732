"""A fleet on disk: machines with their files, and the clusters that they make up. After a load they are all off, as
after a loss of power, and go on where they were once their hypervisor powers them on.

    FOLDER/fleet.json      machines and clusters
    FOLDER/<cluster>.db    what the API server of a cluster holds; hosted clusters hold it themselves (`database.py`)

Machines that have not finished their first boot are not kept: they begin it again.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Set
from pathlib import Path
from typing import Any

import msgspec
import orjson

from homeport.apiserver.auth import certificate as certs
from homeport.apiserver.auth.certificate import Issuer
from homeport.apiserver.auth.file import make_private_dir, write_private
from homeport.client.errors import NotFound
from homeport.client.protocol import Key, MergePatch
from homeport.runtime.clock import Clock
from homeport.sim.machine.database import drop_others, is_valid
from homeport.sim.machine.fleet import Fleet
from homeport.sim.machine.image import Image
from homeport.sim.machine.vm import Machine
from homeport.sim.machine.workload.cluster import ControlPlane, WorkloadCluster
from homeport.sim.machine.workload.etcd import Member
from homeport.sim.machine.workload.facts import Facts
from homeport.sim.machine.workload.kind import NODE, Json
from homeport.sim.machine.workload.kubelet import Kubelet
from homeport.sim.machine.workload.network.vip import VipConfig
from homeport.sim.machine.workload.node import lost_conditions
from homeport.sim.machine.workload.trust.authority import (
    Authority,
    ClusterPki,
    HostedPki,
    load_authority,
    load_certificate,
    load_key,
)


class SnapshotError(Exception):
    """What was kept of machines can't be read; the text names the file."""


class _File(msgspec.Struct, frozen=True):
    path: str
    content: bytes
    mode: int
    owner: str


class _Machine(msgspec.Struct, frozen=True):
    id: str
    name: str
    image: Image
    hostname: str
    installed: str
    k0s: str
    files: list[_File]
    cluster: str = ""
    node: str = ""  # of its kubelet
    manifests: list[dict[str, Any]] = []
    moves: bool = True
    simulator: str = "prism"
    platform: str = "nutanix"
    networked: bool = True  # its Pods have a network


class _Plane(msgspec.Struct, frozen=True):
    machine: str
    node: str
    address: str
    port: int
    vip: VipConfig | None
    more_ports: tuple[int, ...]
    version: str = ""
    more_vips: tuple[VipConfig, ...] = ()


class _Pair(msgspec.Struct, frozen=True):
    certificate: bytes
    key: bytes


class _Cluster(msgspec.Struct, frozen=True):
    id: str
    facts: Facts
    authority: _Pair
    etcd_authority: _Pair | None
    signing_key: bytes
    secrets_key: bytes
    hosts: tuple[str, ...]
    planes: list[_Plane]
    members: list[Member]
    etcd_id: int
    leader: str
    term: int
    alarms: list[tuple[int, str]]
    unfinished: list[str]  # nodes of machines that are not kept
    hosted: str = ""
    database: str = ""  # of a hosted cluster: its file, which is always up to date


class _Fleet(msgspec.Struct, frozen=True):
    machines: list[_Machine]
    clusters: list[_Cluster]


class Snapshot:
    """One folder. `save` writes what has changed since the last time."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._file = folder / "fleet.json"
        self._written = b""
        self._revisions: dict[str, int] = {}  # of the databases on disk, heartbeats not counted

    async def save(self, fleet: Fleet) -> None:
        make_private_dir(self._folder)
        # A machine that becomes a node while databases are copied may not be in the copy: it counts as unfinished.
        finished = frozenset(id_ for id_, machine in fleet.machines.items() if machine.provisioned)
        begun = fleet.machines.keys() - finished
        clusters = {cluster.etcd.cluster_id: cluster for cluster in fleet.clusters() if _is_kept(cluster, begun)}
        names = {id(cluster): f"{number:016x}" for number, cluster in clusters.items()}
        for cluster in clusters.values():
            await self._save_database(names[id(cluster)], cluster)
        begun = fleet.machines.keys() - finished
        state = _Fleet(
            [_of_machine(machine, names) for id_, machine in fleet.machines.items() if id_ in finished],
            [_of_cluster(cluster, names[id(cluster)], begun) for cluster in clusters.values()],
        )
        encoded = msgspec.json.encode(state)
        if encoded != self._written:
            await asyncio.to_thread(write_private, self._file, encoded)
            self._written = encoded
        self._sweep(set(names.values()))

    async def _save_database(self, name: str, cluster: WorkloadCluster) -> None:
        if cluster.database is not None:
            return
        store = cluster.server.store
        changes = store.revision - cluster.beats
        if self._revisions.get(name) != changes:
            await store.backup(self._folder / f"{name}.db")
            self._revisions[name] = changes

    def _sweep(self, kept: set[str]) -> None:
        for path in self._folder.glob("*.db"):
            if path.stem not in kept:
                path.unlink(missing_ok=True)
                self._revisions.pop(path.stem, None)

    async def load(self, fleet: Fleet) -> None:
        """Raises SnapshotError."""
        try:
            encoded = self._file.read_bytes()
            state = msgspec.json.decode(encoded, type=_Fleet)
        except FileNotFoundError:
            await asyncio.to_thread(drop_others, fleet.databases, ())
            return
        except (OSError, msgspec.DecodeError) as error:
            raise SnapshotError(f"{self._file}: can't be read ({error})") from error
        if fleet.databases is not None:
            state = await asyncio.to_thread(self._settle_databases, fleet.databases, state)
        clusters = {each.id: await self._load_cluster(fleet, each) for each in state.clusters}
        machines = {each.id: _to_machine(fleet, each) for each in state.machines}
        for saved in state.clusters:
            _to_planes(clusters[saved.id], saved, machines)
        for kept in state.machines:
            if kept.cluster in clusters:
                _to_kubelet(fleet, machines[kept.id], kept, clusters[kept.cluster])
        for saved in state.clusters:
            await _miss(clusters[saved.id], saved.unfinished, fleet.clock)

    def _settle_databases(self, folder: Path, state: _Fleet) -> _Fleet:
        """Without clusters whose data were deleted after the last save."""
        clusters = [self._move_database(folder, each) if each.hosted else each for each in state.clusters]
        kept = [each for each in clusters if not each.hosted or is_valid(folder / f"{each.database}.db")]
        drop_others(folder, {each.database for each in kept})
        return msgspec.structs.replace(state, clusters=kept)

    def _move_database(self, folder: Path, saved: _Cluster) -> _Cluster:
        """Earlier versions had hosted clusters in memory, and saved copies of them with the others."""
        if saved.database:
            return saved
        make_private_dir(folder)
        with contextlib.suppress(FileNotFoundError):  # moved by a start that was interrupted
            (self._folder / f"{saved.id}.db").replace(folder / f"{saved.id}.db")
        return msgspec.structs.replace(saved, database=saved.id)

    async def _load_cluster(self, fleet: Fleet, saved: _Cluster) -> WorkloadCluster:
        clock = fleet.clock
        authority = _to_issuer(saved.authority) if saved.hosted else _to_authority(saved.authority, clock)
        made = HostedPki if saved.hosted else ClusterPki
        pki = made.of(authority, load_key("sa", saved.signing_key), saved.hosts, clock)
        pki.secrets_key = saved.secrets_key
        etcd = None if saved.etcd_authority is None else _to_authority(saved.etcd_authority, clock)
        database = None
        if fleet.databases is not None and saved.database:
            database = fleet.databases / f"{saved.database}.db"
        copy = self._folder / f"{saved.id}.db" if database is None else None
        cluster = await WorkloadCluster.start(
            saved.facts, pki, etcd, fleet.network, clock, fleet.pace.rng, copy_of=copy, database=database
        )
        cluster.initialized = True
        if saved.hosted:
            cluster.hosted = saved.hosted
            cluster.controllers.play(frozenset())  # until its Pods are back
            fleet.hosted[saved.hosted] = cluster
        cluster.containers.programs = fleet.programs
        found = cluster.etcd
        found.members = {member.name: member for member in saved.members}
        found.cluster_id, found.leader, found.term = saved.etcd_id, saved.leader, saved.term
        found.alarms = {(member, alarm) for member, alarm in saved.alarms}
        return cluster


# -- to plain state ------------------------------------------------------------------------------------------------


def _is_kept(cluster: WorkloadCluster, begun: Set[str]) -> bool:
    return bool(cluster.hosted or _kept_planes(cluster, begun))


def _kept_planes(cluster: WorkloadCluster, begun: Set[str]) -> list[ControlPlane]:
    """A cluster that no finished control plane holds will be made again by the one that makes it."""
    planes = cluster.control_planes.values() if cluster.initialized else ()
    return [plane for plane in planes if _kept(plane.guest, begun)]


def _kept(guest: object, begun: Set[str]) -> bool:
    return isinstance(guest, Machine) and guest.provisioned and guest.id not in begun


def _of_machine(machine: Machine, names: dict[int, str]) -> _Machine:
    kubelet = machine.kubelet
    return _Machine(
        machine.id,
        machine.name,
        machine.image,
        machine.hostname,
        machine.installed,
        machine.k0s,
        [_File(path, entry.content, entry.mode, entry.owner) for path, entry in machine.disk.files()],
        names.get(id(machine.cluster), ""),
        kubelet.node if kubelet is not None and not kubelet.retired else "",
        kubelet.manifests if kubelet is not None else [],
        kubelet.moves if kubelet is not None else True,
        machine.simulator,
        machine.platform,
        kubelet.networked if kubelet is not None else True,
    )


def _of_cluster(cluster: WorkloadCluster, name: str, begun: Set[str]) -> _Cluster:
    etcd, planes = cluster.etcd, _kept_planes(cluster, begun)
    nodes = {plane.node for plane in planes}
    return _Cluster(
        name,
        cluster.facts,
        _of_authority(Authority(cluster.pki.issuer)),
        None if cluster.etcd_authority is None else _of_authority(cluster.etcd_authority),
        certs.key_pem(cluster.pki.signing_key),
        cluster.pki.secrets_key,
        cluster.pki.hosts,
        [_of_plane(plane) for plane in planes],
        # A member whose machine restarts announces itself again.
        [
            member
            for member in etcd.members.values()
            if member.name in nodes or not _unfinished(cluster, member.name, begun)
        ],
        etcd.cluster_id,
        etcd.leader,
        etcd.term,
        sorted(etcd.alarms),
        [node for node in cluster.kubelets if _unfinished(cluster, node, begun)],
        cluster.hosted,
        "" if cluster.database is None else cluster.database.stem,
    )


def _unfinished(cluster: WorkloadCluster, node: str, begun: Set[str]) -> bool:
    """Whether the node is one of a machine that has not finished its first boot."""
    plane, kubelet = cluster.control_planes.get(node), cluster.kubelets.get(node)
    guest = plane.guest if plane is not None else kubelet.guest if kubelet is not None else None
    return isinstance(guest, Machine) and not _kept(guest, begun)


def _of_plane(plane: ControlPlane) -> _Plane:
    assert isinstance(plane.guest, Machine)
    return _Plane(
        plane.guest.id,
        plane.node,
        plane.address,
        plane.port,
        plane.vip,
        plane.more_ports,
        plane.version,
        plane.more_vips,
    )


def _of_authority(authority: Authority) -> _Pair:
    return _Pair(authority.pem, certs.key_pem(authority.issuer.key))


# -- and back ------------------------------------------------------------------------------------------------------


def _to_authority(pair: _Pair, clock: Clock) -> Authority:
    return load_authority("ca", pair.certificate, pair.key, clock)


def _to_issuer(pair: _Pair) -> Authority:
    """Of a hosted cluster: what its Pods bring replaces it, so it need not be good."""
    return Authority(Issuer(load_certificate("ca", pair.certificate), load_key("ca", pair.key)))


def _to_machine(fleet: Fleet, saved: _Machine) -> Machine:
    machine = fleet.rebuild(saved.id, saved.name, saved.image, saved.simulator, saved.platform)
    machine.hostname, machine.installed, machine.k0s = saved.hostname, saved.installed, saved.k0s
    machine.provisioned = True
    for file in saved.files:
        machine.disk.write(file.path, file.content, mode=file.mode, owner=file.owner)
    return machine


def _to_planes(cluster: WorkloadCluster, saved: _Cluster, machines: dict[str, Machine]) -> None:
    for each in saved.planes:
        machine = machines[each.machine]
        machine.cluster = cluster
        cluster.add_control_plane(
            ControlPlane(
                machine,
                each.node,
                each.address,
                each.port,
                each.vip,
                tuple(each.more_ports),
                each.version,
                tuple(each.more_vips),
            )
        )


def _to_kubelet(fleet: Fleet, machine: Machine, saved: _Machine, cluster: WorkloadCluster) -> None:
    machine.cluster = cluster
    if not saved.node:
        return
    kubelet = Kubelet(
        machine,
        saved.node,
        cluster,
        saved.manifests,
        seen=fleet.clock.now(),
        networked=saved.networked,
        moves=saved.moves,
    )
    machine.kubelet = cluster.kubelets[saved.node] = kubelet
    fleet.heart.add(kubelet)


async def _miss(cluster: WorkloadCluster, unfinished: list[str], clock: Clock) -> None:
    """Nodes without a machine: deletes those of machines that restart, as they register again; marks others as lost."""
    client = cluster.client("kube-controller-manager")
    nodes: list[Json] = [orjson.loads(record.value) for record in cluster.server.store.range("nodes")]
    for node in nodes:
        key = Key("", node["metadata"]["name"])
        if key.name in cluster.kubelets:
            continue
        with contextlib.suppress(NotFound):
            if key.name in unfinished:
                await client.delete(NODE, key)
            else:
                lost = MergePatch({"status": {"conditions": lost_conditions(clock.now())}})
                await client.patch(NODE, key, lost, subresource="status")
