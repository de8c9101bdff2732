"""Datastores: simulated etcds with their tenants, and which cluster belongs to which prefix.

A cluster that control plane Pods serve holds its own objects. Clients of etcd see them as keys `/PREFIX/KIND/NAME`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import msgspec
import orjson

from homeport.apiserver.verb.write import encoder
from homeport.sim.hosted.keyspace import Keyspace, KeyValue, within
from homeport.sim.machine.database import drop_database, mark_lost
from homeport.sim.machine.fleet import Fleet
from homeport.sim.machine.workload.cluster import WorkloadCluster

_SEPARATOR = " "


def cluster_key(etcd: str, prefix: str) -> str:
    return f"{etcd}{_SEPARATOR}{prefix}"


class Datastores:
    """`fleet.hosted` has the clusters, by `cluster_key`."""

    def __init__(self, fleet: Fleet) -> None:
        self._fleet = fleet
        self.etcds: dict[str, Keyspace] = {}
        self._lost: dict[str, asyncio.Event] = {}
        self._closing: set[asyncio.Task[None]] = set()
        self.keep: Callable[[], Awaitable[None]] = _nothing  # awaited before a change is acknowledged

    def open(self, name: str) -> Keyspace:
        return self.etcds.setdefault(name, Keyspace(name))

    def drop(self, name: str) -> None:
        """The volume is gone, and everything with it."""
        self.etcds.pop(name, None)
        for key in [each for each in self._fleet.hosted if each.partition(_SEPARATOR)[0] == name]:
            self.lose(key)

    # -- clusters ----------------------------------------------------------------------------------------------

    def clusters(self, etcd: Keyspace) -> Iterator[tuple[str, WorkloadCluster]]:
        """By prefix."""
        for key, cluster in self._fleet.hosted.items():
            name, _, prefix = key.partition(_SEPARATOR)
            if name == etcd.name:
                yield prefix, cluster

    def lost(self, key: str) -> asyncio.Event:
        """Set when the cluster's data are deleted."""
        return self._lost.setdefault(key, asyncio.Event())

    def lose(self, key: str) -> None:
        cluster = self._fleet.hosted.pop(key, None)
        if cluster is None:
            return
        event = self._lost.pop(key, None)
        if event is not None:
            event.set()
        if cluster.database is not None:
            mark_lost(cluster.database)
        task = asyncio.create_task(_end(cluster), name="end of a hosted cluster")
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)

    async def close(self) -> None:
        """Returns when the files of clusters whose data were deleted are gone."""
        await asyncio.gather(*self._closing)

    # -- keys --------------------------------------------------------------------------------------------------

    def range(self, etcd: Keyspace, key: bytes, end: bytes) -> list[tuple[bytes, KeyValue]]:
        found = dict(etcd.range(key, end))
        for prefix, cluster in self.clusters(etcd):
            start = f"{prefix}/".encode()
            if within(start, key, end) or key.startswith(start):
                found |= {name: each for name, each in _keys(prefix, cluster) if within(name, key, end)}
        return sorted(found.items())

    def delete(self, etcd: Keyspace, key: bytes, end: bytes) -> int:
        """A prefix that is deleted takes its cluster with it."""
        found = self.range(etcd, key, end)
        etcd.delete(name for name, _ in found)
        for prefix, _ in list(self.clusters(etcd)):
            start = f"{prefix}/".encode()
            if within(start, key, end) and (end == b"\0" or end > start + b"\xfe" or end == f"{prefix}0".encode()):
                self.lose(cluster_key(etcd.name, prefix))
        return len(found)

    async def take_over(self, etcd: Keyspace, prefix: str, cluster: WorkloadCluster) -> None:
        """Keys that somebody copied here become the cluster's objects."""
        start = f"{prefix}/".encode()
        found = [(name, each) for name, each in etcd.range(start, b"\0") if name.startswith(start)]
        for name, each in found:
            bucket, _, rest = name[len(start) :].decode("latin-1").partition("/")
            obj: dict[str, Any] = orjson.loads(each.value)
            await cluster.server.store.put(bucket, rest, encoder(obj), expect=None)
        etcd.delete(name for name, _ in found)

    # -- saved -------------------------------------------------------------------------------------------------

    def version(self) -> tuple[object, ...]:
        """Differs after every change."""
        return tuple(
            (name, each.revision, each.auth_revision, each.enabled, each.leaderless, each.full, *each.claims)
            for name, each in sorted(self.etcds.items())
        )

    def dump(self) -> bytes:
        return msgspec.json.encode([self.etcds[name] for name in sorted(self.etcds)])

    def load(self, raw: bytes) -> None:
        """Raises msgspec.DecodeError."""
        self.etcds = {each.name: each for each in msgspec.json.decode(raw, type=list[Keyspace])}


async def _nothing() -> None: ...


async def _end(cluster: WorkloadCluster) -> None:
    await cluster.close()
    if cluster.database is not None:
        await asyncio.to_thread(drop_database, cluster.database)


def _keys(prefix: str, cluster: WorkloadCluster) -> Iterator[tuple[bytes, KeyValue]]:
    store = cluster.server.store
    for bucket in store.buckets():
        for record in store.range(bucket):
            name = f"{prefix}/{bucket}/{record.name}".encode("latin-1", "replace")
            yield name, KeyValue(record.value, record.created, record.revision)
