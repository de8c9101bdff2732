"""Only one machine runs `kubeadm init`: the one whose name is in the cluster's lock, a ConfigMap.

It is taken when the data of a machine is about to be handed out, and given back when the control plane is up or that
machine is gone.
"""

from __future__ import annotations

import contextlib
from typing import Any

import orjson

from homeport.api.cluster.v1beta2 import Cluster
from homeport.api.meta import Resource, Unstructured
from homeport.capi.name import CLUSTER_NAME_LABEL
from homeport.capi.object.ownership import owner_reference
from homeport.client.absence import drop_object
from homeport.client.errors import AlreadyExists, NotFound
from homeport.client.protocol import Client, Key, Query, Write
from homeport.runtime.cache import Cache

CONFIG_MAP = Resource("", "v1", "ConfigMap", "configmaps")
LOCKS = Query(labels=CLUSTER_NAME_LABEL)
_SUFFIX = "-lock"
_KEY = "lock-information"


def lock_key(cluster: Key) -> Key:
    return Key(cluster.namespace, cluster.name + _SUFFIX)


def cluster_of_lock(name: str) -> str:
    """The cluster of a ConfigMap with this name, '' if it is not a lock."""
    return name.removesuffix(_SUFFIX) if name.endswith(_SUFFIX) else ""


class InitLock:
    def __init__(self, client: Client, locks: Cache[Unstructured], write: Write) -> None:
        self._client = client
        self._locks = locks
        self._write = write

    def holder(self, cluster: Key) -> str | None:
        """The machine that has the lock as far as is known; None: it is free. '': it can't be read."""
        found = self._locks.get(lock_key(cluster))
        return None if found is None else _machine(found)

    async def take(self, cluster: Cluster, machine: str) -> bool:
        key = lock_key(Key(cluster.metadata.namespace, cluster.metadata.name))
        lock: dict[str, Any] = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {
                "name": key.name,
                "namespace": key.namespace,
                "labels": {CLUSTER_NAME_LABEL: cluster.metadata.name},
                "ownerReferences": [owner_reference(cluster)],
            },
            "data": {_KEY: orjson.dumps({"machineName": machine}).decode()},
        }
        try:
            await self._client.create(lock, self._write, kind=CONFIG_MAP)
        except AlreadyExists:
            with contextlib.suppress(NotFound):  # free again: the first one to see that may take it
                return _machine(await self._client.get(CONFIG_MAP, key)) == machine
            return False
        return True

    async def release(self, cluster: Key) -> None:
        """Of the very lock that was seen: a new one may be somebody else's by now."""
        found = self._locks.get(lock_key(cluster))
        if found is None:
            return
        await drop_object(self._client, CONFIG_MAP, lock_key(cluster), uid=found.uid)


def _machine(lock: Unstructured) -> str:
    try:
        information = orjson.loads((lock.get("data") or {}).get(_KEY) or "{}")
    except orjson.JSONDecodeError:
        return ""
    return str(information.get("machineName") or "") if isinstance(information, dict) else ""
