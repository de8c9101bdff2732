"""The clusters that control plane Pods serve: one per datastore and prefix, however many Pods there are."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from cryptography import x509

from homeport.apiserver.auth import certificate as certs
from homeport.apiserver.auth.certificate import Issuer, PrivateKey
from homeport.runtime.clock import Clock
from homeport.sim.hosted.datastore import Datastores, cluster_key
from homeport.sim.hosted.storage import Storage
from homeport.sim.machine.database import new_database
from homeport.sim.machine.fleet import Fleet
from homeport.sim.machine.vm import Machine
from homeport.sim.machine.workload import addon
from homeport.sim.machine.workload.cluster import WorkloadCluster
from homeport.sim.machine.workload.controller import KUBELET
from homeport.sim.machine.workload.facts import Facts
from homeport.sim.machine.workload.trust.authority import Authority, HostedPki, make_authority

Save = Callable[[], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class ServerFiles:
    """What an API server is given."""

    authority: Issuer | x509.Certificate  # of clients; with its key, where the program has that
    clients: bytes  # all authorities of clients, PEM
    server: bytes  # its own key and certificate, PEM; b"": it makes them itself
    signing_key: PrivateKey


class HostedClusters:
    def __init__(self, fleet: Fleet, datastores: Datastores, clock: Clock, save: Save) -> None:
        """`save` writes which clusters there are, and the keys to their data."""
        self._fleet = fleet
        self._save = save
        self._datastores = datastores
        self.clock = clock
        self._opening: dict[str, asyncio.Lock] = {}
        # One after the other, or hundreds that start at once would all be late.
        self._starting = asyncio.Semaphore(2)
        self._roles: dict[str, Counter[str]] = {}  # programs that run beside the API servers, by cluster

    def local_storage(self, volume: str, claim: str, prefix: str) -> Storage:
        """In a volume of the Pod itself: what an etcd there would hold."""
        keyspace = self._datastores.open(volume)
        if claim and claim not in keyspace.claims:
            keyspace.claims.append(claim)
        return Storage(volume, prefix, keyspace)

    async def open(self, storage: Storage, facts: Facts, files: ServerFiles | None) -> WorkloadCluster:
        """The cluster of a datastore, made or continued, with the certificates of the Pod that came last. `files` None:
        a program that makes its certificates itself, once."""
        key = cluster_key(storage.name, storage.prefix)
        async with self._opening.setdefault(key, asyncio.Lock()):
            found = self._fleet.hosted.get(key)
            if found is None:
                async with self._starting:
                    found = await self._start(key, storage, facts, files or _make_files(self.clock))
        found.facts.version = facts.version
        if storage.user:
            found.server.store.guard = storage.check_write
        if files is not None:
            _renew(found, files)
        return found

    async def _start(self, key: str, storage: Storage, facts: Facts, files: ServerFiles) -> WorkloadCluster:
        hosts = [facts.endpoint[0], addon.service_address(facts, 1)]
        pki = HostedPki.of(Authority(_issuer(files)), files.signing_key, hosts, self.clock)
        pki.given, pki.clients = files.server, files.clients
        fleet = self._fleet
        database = new_database(fleet.databases)
        made = await WorkloadCluster.start(
            facts, pki, None, fleet.network, self.clock, fleet.pace.rng, database=database
        )
        if storage.etcd is not None:
            await self._datastores.take_over(storage.etcd, storage.prefix, made)
        made.hosted, made.initialized = key, True
        made.containers.programs = fleet.programs
        made.controllers.play(frozenset())
        fleet.hosted[key] = made
        await self._save()
        return made

    def lost(self, cluster: WorkloadCluster) -> asyncio.Event:
        """Set when the cluster's data are deleted."""
        return self._datastores.lost(cluster.hosted)

    # -- programs ----------------------------------------------------------------------------------------------

    def join(self, cluster: WorkloadCluster, roles: frozenset[str]) -> None:
        self._roles.setdefault(cluster.hosted, Counter()).update(roles)
        self.settle(cluster)

    def leave(self, cluster: WorkloadCluster, roles: frozenset[str]) -> None:
        self._roles.setdefault(cluster.hosted, Counter()).subtract(roles)
        self.settle(cluster)

    def settle(self, cluster: WorkloadCluster) -> None:
        """Controllers work while an API server answers; kubelets do so, too."""
        if cluster.closed:
            return
        self._move_nodes()
        playing = {role for role, count in self._roles.get(cluster.hosted, Counter()).items() if count > 0}
        cluster.controllers.play(frozenset(playing | {KUBELET}) if cluster.serving() else frozenset())

    def _move_nodes(self) -> None:
        """After a migration another datastore holds the cluster: its nodes follow the endpoint."""
        hosted = list(self._fleet.hosted.values())
        for old in hosted:
            if not old.kubelets or old.serving():
                continue
            new = next((each for each in hosted if each is not old and each.serving() and _same(each, old)), None)
            if new is not None:
                for node, kubelet in list(old.kubelets.items()):
                    new.kubelets[node] = old.kubelets.pop(node)
                    kubelet.cluster = new
                    if isinstance(kubelet.guest, Machine):
                        kubelet.guest.cluster = new
                new.facts.endpoint = old.facts.endpoint


def _make_files(clock: Clock) -> ServerFiles:
    authority = make_authority("ca", clock)
    return ServerFiles(authority.issuer, authority.pem, b"", certs.make_key())


def _same(one: WorkloadCluster, other: WorkloadCluster) -> bool:
    return one.pki.issuer.certificate == other.pki.issuer.certificate


def _issuer(files: ServerFiles) -> Issuer:
    """Without the authority's key nothing is signed: the controller manager brings it."""
    if isinstance(files.authority, Issuer):
        return files.authority
    return Issuer(files.authority, certs.make_key())


def _renew(cluster: WorkloadCluster, files: ServerFiles) -> None:
    pki = cluster.pki
    assert isinstance(pki, HostedPki)
    certificate = files.authority.certificate if isinstance(files.authority, Issuer) else files.authority
    if pki.issuer.certificate != certificate:
        pki.issuer = _issuer(files)
    if pki.signing_key.public_key() != files.signing_key.public_key():
        pki.signing_key = files.signing_key
        cluster.server.authenticator.use_key(files.signing_key)
    if (pki.given, pki.clients) != (files.server, files.clients):
        pki.given, pki.clients = files.server, files.clients
        cluster.server.reload_certificate()
