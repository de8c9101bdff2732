"""The controllers of ClusterResourceSets and their bindings, and what wakes them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from homeport.api.addons.v1beta2 import ClusterResourceSet, ClusterResourceSetBinding
from homeport.api.cluster.v1beta2 import Cluster
from homeport.capi.capi import Capi
from homeport.capi.name import Condition
from homeport.capi.object.paused import is_paused
from homeport.client.protocol import Key
from homeport.core.clusterresourceset.binding import BindingReconciler
from homeport.core.clusterresourceset.reconciler import SetReconciler
from homeport.core.clusterresourceset.source import METADATA
from homeport.core.index import ensure_index, keys_of
from homeport.machinery import condition
from homeport.machinery.selector import from_label_selector
from homeport.runtime.cache import key_of
from homeport.runtime.controller import Controller
from homeport.runtime.manager import Manager

_SOURCE = "core.resource"


def install(manager: Manager, capi: Capi) -> Controller:
    reconciler = SetReconciler(capi)
    sets, clusters = reconciler.objects, manager.informers.get(Cluster).cache
    ensure_index(sets, _SOURCE, _sources)
    controller = reconciler.controller

    def of_cluster(cluster: Cluster) -> Iterable[Key]:
        for each in sets.list(cluster.metadata.namespace):
            selector = from_label_selector(each.spec.cluster_selector)
            if not selector.empty and selector.matches(cluster.metadata.labels):
                yield key_of(each)

    def of_source(kind: str) -> Callable[[Any], Iterable[Key]]:
        return lambda obj: keys_of(sets.by(_SOURCE, f"{kind} {key_of(obj)}"))

    controller.map(Cluster, of_cluster, predicate=_cluster_matters)
    for kind, metadata in METADATA.items():
        controller.map(metadata, of_source(kind))

    def connection_changed(cluster: Key) -> None:
        found = clusters.get(cluster)
        for key in of_cluster(found) if found is not None else ():
            controller.wake(key)

    capi.remotes.follow(connection_changed)
    _install_binding(manager)
    return manager.add(controller)


def _install_binding(manager: Manager) -> None:
    reconciler = BindingReconciler(manager)
    controller = Controller("clusterresourcesetbinding", ClusterResourceSetBinding, reconciler, clock=manager.clock)
    controller.map(Cluster, lambda cluster: (key_of(cluster),), predicate=_cluster_matters)
    manager.add(controller)


def _sources(found: ClusterResourceSet) -> Iterable[str]:
    return (f"{each.kind} {found.metadata.namespace}/{each.name}" for each in found.spec.resources)


def _cluster_matters(old: Cluster | None, new: Cluster | None) -> bool:
    """It came or went, has other labels, was paused or resumed, or answers for the first time or again."""
    return old is None or new is None or _matter(old) != _matter(new)


def _matter(cluster: Cluster) -> Any:
    meta = cluster.metadata
    answers = condition.is_true(cluster.status.conditions, Condition.REMOTE_CONNECTION_PROBE)
    return meta.uid, meta.labels, bool(meta.deletion_timestamp), is_paused(cluster, cluster), answers
