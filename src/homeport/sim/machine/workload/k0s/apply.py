"""Objects of any kind that the cluster serves, written, found again by a label and deleted."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import orjson

from homeport.api.meta import Resource
from homeport.client.absence import drop_object
from homeport.client.errors import AlreadyExists, Invalid
from homeport.client.protocol import Key
from homeport.sim.machine.workload.kind import NAMESPACE, Json

if TYPE_CHECKING:
    from homeport.sim.machine.workload.cluster import WorkloadCluster

_DEFINITION = "CustomResourceDefinition"


class UnknownKind(Exception):
    """The cluster does not serve this kind, or not yet."""


def resource_of(cluster: WorkloadCluster, obj: Json) -> Resource | None:
    group, _, version = str(obj.get("apiVersion", "")).rpartition("/")
    for served in cluster.server.catalog:
        if served.group == group and served.kind == obj.get("kind") and version in served.versions:
            return served.versions[version].resource
    return None


async def apply(cluster: WorkloadCluster, obj: Json, namespace: str = "default", manager: str = "k0s") -> Key:
    """Creates an object, or brings it up to date. Raises ApiError, UnknownKind."""
    kind = resource_of(cluster, obj)
    if kind is None:
        raise UnknownKind(f'no matches for kind "{obj.get("kind")}" in version "{obj.get("apiVersion")}"')
    meta = obj.setdefault("metadata", {})
    if kind.namespaced:
        meta.setdefault("namespace", namespace)
    try:
        await cluster.put([(obj, kind)], manager)
    except Invalid:
        if kind.kind not in ("Job", "Pod"):
            raise  # what can't be changed in these is left as it is
    return Key(meta.get("namespace", "") if kind.namespaced else "", meta["name"])


async def ensure_namespace(cluster: WorkloadCluster, name: str) -> None:
    with contextlib.suppress(AlreadyExists):
        await cluster.client("k0s").create({"metadata": {"name": name}}, kind=NAMESPACE)


def labelled(cluster: WorkloadCluster, label: str, value: str) -> Iterator[tuple[Resource, Json]]:
    """All objects with a label, of every kind."""
    for served in list(cluster.server.catalog):
        kind = served.versions[max(served.versions)].resource
        for record in cluster.server.store.range(kind.qualified):
            obj: Json = orjson.loads(record.value)
            if (obj["metadata"].get("labels") or {}).get(label) == value:
                yield kind, obj


async def delete(cluster: WorkloadCluster, found: Iterable[tuple[Resource, Key]]) -> None:
    client = cluster.client("k0s")
    for kind, key in found:
        await drop_object(client, kind, key)
