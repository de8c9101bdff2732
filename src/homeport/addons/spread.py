"""A ClusterAddon with a selector: one ClusterAddon for each Cluster that matches, and a summary of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from homeport.addons.name import PARENT_LABEL, child_name, label_value
from homeport.addons.peers import is_ready, parent_of
from homeport.addons.scope import AddonScope
from homeport.api.addon.v1alpha1 import ClusterAddon, ClusterAddonCluster
from homeport.api.cluster.v1beta2 import Cluster
from homeport.api.meta import wire
from homeport.capi.name import CLUSTER_NAME_LABEL
from homeport.capi.object.ownership import owner_reference
from homeport.capi.object.selection import selected_clusters
from homeport.client.absence import drop_object
from homeport.client.protocol import Client, Key, Write
from homeport.machinery import condition
from homeport.runtime.cache import Cache
from homeport.runtime.outcome import Wait

KIND = ClusterAddon.__resource__
_SHOWN = 5


class Spread:
    def __init__(self, client: Client, addons: Cache[ClusterAddon], clusters: Cache[Cluster], write: Write) -> None:
        self._client = client
        self._addons = addons
        self._clusters = clusters
        self._write = write

    async def converge(self, scope: AddonScope) -> Wait | None:
        parent, children = scope.object, self._children(scope.object)
        matching = self._matching(parent)
        refused: list[str] = []
        for cluster in matching:
            why = await self._hold(parent, cluster)
            if why:
                refused.append(why)
        for child in children:
            if self._leaves(parent, child, matching):
                await self._delete(child)
        return self._summary(scope, refused, matching)

    async def release(self, scope: AddonScope) -> Wait | None:
        """The parent goes when its children are gone."""
        scope.phase = "Deleting"
        children = self._children(scope.object)
        for child in children:
            await self._delete(child)
        if children:
            left = ", ".join(sorted(each.spec.cluster_name for each in children)[:_SHOWN])
            return Wait("Removing", f"the add-on is removed from {len(children)} Clusters: {left}")
        return None

    def _children(self, parent: ClusterAddon) -> list[ClusterAddon]:
        return [
            each
            for each in self._addons.list(parent.metadata.namespace)
            if parent_of(each) == parent.metadata.name and each.spec.cluster_name
        ]

    def _matching(self, parent: ClusterAddon) -> list[Cluster]:
        return selected_clusters(self._clusters, parent.metadata.namespace, parent.spec.cluster_selector)

    def _leaves(self, parent: ClusterAddon, child: ClusterAddon, matching: Sequence[Cluster]) -> bool:
        name = child.spec.cluster_name
        if name in {each.metadata.name for each in matching}:
            return False
        cluster = self._clusters.get(Key(child.metadata.namespace, name))
        gone = cluster is None or bool(cluster.metadata.deletion_timestamp)
        return gone or not parent.spec.keep_on_selector_mismatch

    async def _hold(self, parent: ClusterAddon, cluster: Cluster) -> str:
        """The add-on of one Cluster as the parent writes it. Returns why that can't be."""
        key = Key(parent.metadata.namespace, child_name(parent.metadata.name, cluster.metadata.name))
        known = self._addons.get(key)
        if known is not None and parent_of(known) != parent.metadata.name:
            return (
                f"Cluster {cluster.metadata.name}: ClusterAddon {key.name} already exists and belongs to something else"
            )
        spec = {**wire(parent.spec), "clusterName": cluster.metadata.name}
        spec.pop("clusterSelector", None)
        spec.pop("keepOnSelectorMismatch", None)
        if known is None or (_without_defaults(known) != spec and not known.metadata.deletion_timestamp):
            await self._client.apply(self._render(parent, key, spec), self._write, kind=KIND, force=True)
        return ""

    def _render(self, parent: ClusterAddon, key: Key, spec: dict[str, Any]) -> dict[str, Any]:
        labels = {PARENT_LABEL: label_value(parent.metadata.name), CLUSTER_NAME_LABEL: spec["clusterName"]}
        owner = {**owner_reference(parent), "controller": True, "blockOwnerDeletion": True}
        meta = {"name": key.name, "namespace": key.namespace, "labels": labels, "ownerReferences": [owner]}
        return {**KIND.type_meta, "metadata": meta, "spec": spec}

    async def _delete(self, child: ClusterAddon) -> None:
        if child.metadata.deletion_timestamp:
            return
        await drop_object(
            self._client, ClusterAddon, Key(child.metadata.namespace, child.metadata.name), uid=child.metadata.uid
        )

    def _summary(self, scope: AddonScope, refused: Sequence[str], matching: Sequence[Cluster]) -> Wait | None:
        children = sorted(self._children(scope.object), key=lambda each: each.spec.cluster_name)
        status = scope.object.status
        status.clusters = [_entry(each) for each in children]
        ready = sum(each.ready for each in status.clusters)
        total = len({each.spec.cluster_name for each in children} | {each.metadata.name for each in matching})
        status.cluster_count = f"{ready}/{total}"
        versions = {each.version for each in status.clusters if each.version}
        status.version = versions.pop() if len(versions) == 1 else ""
        if refused:
            return Wait("NameTaken", "\n".join(refused[:_SHOWN]), warning=True)
        waiting = [each for each in status.clusters if not each.ready]
        if waiting or ready < total:
            scope.phase = "Installing"
            lines = [f"Cluster {each.name}: {each.message or each.reason}" for each in waiting[:_SHOWN]]
            more = [f"... ({len(waiting) - _SHOWN} more)"] if len(waiting) > _SHOWN else []
            head = f"{ready} of {total} Clusters are Ready"
            return Wait("WaitingForClusters", "\n".join([head, *lines, *more]))
        scope.message = "" if total else "no Cluster matches spec.clusterSelector"
        return None


def _entry(child: ClusterAddon) -> ClusterAddonCluster:
    found = condition.find(child.status.conditions, "Ready") or {}
    ready = is_ready(child)
    return ClusterAddonCluster(
        name=child.spec.cluster_name,
        addon=child.metadata.name,
        ready=ready,
        phase=child.status.phase,
        version=child.status.version,
        reason=str(found.get("reason", "")),
        message="" if ready else str(found.get("message", "")),
    )


def _without_defaults(child: ClusterAddon) -> Any:
    return wire(child.spec)
