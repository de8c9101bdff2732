"""The other add-ons of a Cluster, as their objects report them."""

from __future__ import annotations

from collections.abc import Iterable

from homeport.addons.catalogue import entries_before
from homeport.addons.dependency import Peer, dependents, expected_first, find_cycle, graph_of
from homeport.api.addon.v1alpha1 import ClusterAddon
from homeport.api.meta import Resource
from homeport.client.protocol import Key
from homeport.machinery import condition
from homeport.runtime.cache import Cache
from homeport.runtime.outcome import Wait

BY_CLUSTER = "addons.cluster"
READY = "Ready"
KIND: Resource = ClusterAddon.__resource__


def by_cluster(addon: ClusterAddon) -> Iterable[str]:
    if addon.spec.cluster_name:
        yield f"{addon.metadata.namespace}/{addon.spec.cluster_name}"


def parent_of(addon: ClusterAddon) -> str:
    """The name of the ClusterAddon with a selector that this one was created by; '' if a user created it."""
    for owner in addon.metadata.owner_references:
        if owner.kind == KIND.kind and owner.api_version.startswith(f"{KIND.group}/") and owner.controller:
            return owner.name
    return ""


def is_ready(addon: ClusterAddon) -> bool:
    """As of its present spec."""
    status = addon.status
    current = status.observed_generation >= addon.metadata.generation
    return current and condition.is_true(status.conditions, READY) and not addon.metadata.deletion_timestamp


def peer_of(addon: ClusterAddon) -> Peer:
    found = condition.find(addon.status.conditions, READY) or {}
    return Peer(
        parent_of(addon) or addon.metadata.name,
        is_ready(addon),
        bool(addon.metadata.deletion_timestamp),
        tuple(each.name for each in addon.spec.depends_on),
        addon.spec.addon,
        str(found.get("reason", "")),
    )


class Peers:
    def __init__(self, addons: Cache[ClusterAddon]) -> None:
        self._addons = addons
        addons.add_index(BY_CLUSTER, by_cluster)

    def of(self, cluster: Key) -> list[Peer]:
        return [peer_of(each) for each in self._addons.by(BY_CLUSTER, str(cluster))]

    def keys(self, cluster: Key) -> list[Key]:
        return [Key(each.metadata.namespace, each.metadata.name) for each in self._addons.by(BY_CLUSTER, str(cluster))]

    def others(self, addon: Key, cluster: Key) -> frozenset[str]:
        """Names of the other add-ons of the Cluster that exist, and so can own something there."""
        return frozenset(each.name for each in self.keys(cluster) if each != addon)

    def await_first(self, addon: ClusterAddon, cluster: Key) -> Wait | None:
        """What must be Ready before this add-on is installed."""
        me, peers = peer_of(addon), self.of(cluster)
        cycle = find_cycle(graph_of(peers), me.name)
        if cycle:
            way = " -> ".join(cycle)
            message = f"spec.dependsOn: the add-ons depend on each other in a circle ({way}): remove one of them"
            return Wait("DependencyCycle", message, warning=True)
        known = {each.name: each for each in peers}
        for name in me.depends_on:
            peer = known.get(name)
            if peer is None:
                return Wait("DependencyNotFound", self._missing(addon, cluster, name))
            if not peer.ready:
                return Wait("WaitingForDependency", f"ClusterAddon {name} is not Ready{_because(peer)}")
        usual = expected_first(me, peers, entries_before(me.addon))
        if usual:
            first = usual[0]
            return Wait(
                "WaitingForDependency", f"ClusterAddon {first.name} ({first.addon}) is installed first{_because(first)}"
            )
        return None

    def await_dependents(self, addon: ClusterAddon, cluster: Key) -> Wait | None:
        """What must be removed before this add-on is."""
        written, usual = dependents(peer_of(addon), self.of(cluster), entries_before)
        for each in [*written, *usual]:
            if each.deleting:
                return Wait("WaitingForDependents", f"ClusterAddon {each.name} is removed first")
            message = f"ClusterAddon {each.name} depends on this one: delete it first, or change its spec.dependsOn"
            return Wait("WaitingForDependents", message)
        return None

    def _missing(self, addon: ClusterAddon, cluster: Key, name: str) -> str:
        field = f"spec.dependsOn: ClusterAddon {addon.metadata.namespace}/{name}"
        found = self._addons.get(Key(addon.metadata.namespace, name))
        if found is None:
            return f"{field} does not exist: create it, or remove it from the list"
        if found.spec.cluster_name:
            return f"{field} is for Cluster {found.spec.cluster_name}, not for {cluster.name}"
        return f"{field} is not for Cluster {cluster.name}: change its clusterSelector, or remove it from the list"


def _because(peer: Peer) -> str:
    return f" ({peer.reason})" if peer.reason and peer.reason != READY else ""
