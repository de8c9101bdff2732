"""Indexes of the shared caches. Controllers share them: the first one adds each."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from homeport.api.cluster.v1beta2 import Machine, MachineDeployment, MachineHealthCheck, MachinePool, MachineSet
from homeport.api.meta import Object, Unstructured
from homeport.client.protocol import Key
from homeport.runtime.cache import Cache, key_of

T = TypeVar("T", bound=Object | Unstructured)
C = TypeVar("C", Machine, MachineSet, MachineDeployment, MachinePool, MachineHealthCheck)

CLUSTER = "core.cluster"
PROVIDER_ID = "core.providerID"


def ensure_index(cache: Cache[T], name: str, index: Callable[[T], Iterable[str]]) -> None:
    with contextlib.suppress(ValueError):
        cache.add_index(name, index)


def by_cluster(cache: Cache[C]) -> Callable[[Key], Sequence[C]]:
    """The objects of a Cluster, by their spec.clusterName."""
    ensure_index(cache, CLUSTER, lambda obj: (f"{obj.metadata.namespace}/{obj.spec.cluster_name}",))
    return lambda cluster: cache.by(CLUSTER, str(cluster))


def keys_of(objects: Iterable[Object | Unstructured]) -> list[Key]:
    return [key_of(obj) for obj in objects]
