"""The controller of ClusterAddons, and what wakes it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from homeport.addons.peers import parent_of
from homeport.addons.reconciler import AddonReconciler
from homeport.addons.source import WATCHED, names_of
from homeport.api.addon.v1alpha1 import ClusterAddon
from homeport.api.cluster.v1beta2 import Cluster
from homeport.capi.capi import Capi
from homeport.capi.chartsettings import ChartSettings
from homeport.capi.object.paused import is_paused
from homeport.client.protocol import Key
from homeport.machinery.selector import from_label_selector
from homeport.runtime.cache import key_of
from homeport.runtime.controller import Controller

_SOURCE = "addons.source"


def install(capi: Capi, settings: ChartSettings | None = None) -> Controller:
    reconciler = AddonReconciler(capi, settings or ChartSettings())
    addons, controller, peers = reconciler.objects, reconciler.controller, reconciler.peers
    addons.add_index(_SOURCE, names_of)

    def of_cluster(cluster: Cluster) -> Iterable[Key]:
        yield from peers.keys(key_of(cluster))
        for each in addons.list(cluster.metadata.namespace):
            selector = from_label_selector(each.spec.cluster_selector)
            if not each.spec.cluster_name and not selector.empty:
                yield key_of(each)  # it may have matched before

    def of_source(kind: str) -> Callable[[Any], Iterable[Key]]:
        return lambda obj: [key_of(each) for each in addons.by(_SOURCE, f"{kind} {key_of(obj)}")]

    def of_peer(addon: ClusterAddon) -> Iterable[Key]:
        """Those that wait for it, in the same Cluster; and the parent that reports on it."""
        if addon.spec.cluster_name:
            own = key_of(addon)
            yield from (each for each in peers.keys(Key(own.namespace, addon.spec.cluster_name)) if each != own)
        if parent := parent_of(addon):
            yield Key(addon.metadata.namespace, parent)

    controller.map(Cluster, of_cluster, predicate=_cluster_matters)
    controller.map(ClusterAddon, of_peer, predicate=_peer_matters)
    for kind, metadata in WATCHED.items():
        controller.map(metadata, of_source(kind))

    def connection_changed(cluster: Key) -> None:
        for key in peers.keys(cluster):
            controller.wake(key)

    capi.remotes.follow(connection_changed)
    return capi.manager.add(controller)


def _cluster_matters(old: Cluster | None, new: Cluster | None) -> bool:
    """It came or went, has other labels or another spec, or was paused or resumed."""
    return old is None or new is None or _matter(old) != _matter(new)


def _matter(cluster: Cluster) -> Any:
    meta = cluster.metadata
    return meta.uid, meta.generation, meta.labels, bool(meta.deletion_timestamp), is_paused(cluster, cluster)


def _peer_matters(old: ClusterAddon | None, new: ClusterAddon | None) -> bool:
    return old is None or new is None or _reported(old) != _reported(new)


def _reported(addon: ClusterAddon) -> Any:
    meta, status = addon.metadata, addon.status
    said = [(each["type"], each["status"], each["reason"], each["message"]) for each in status.conditions]
    return (
        meta.generation,
        bool(meta.deletion_timestamp),
        status.observed_generation,
        status.version,
        status.phase,
        said,
    )
