"""What the deletion of a Machine does in the workload cluster: cordon, evict, look for volumes, delete the Node."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from homeport.api.cluster.v1beta2 import MachineDrainRule
from homeport.api.meta import Resource, Unstructured
from homeport.client.absence import drop_object
from homeport.client.errors import ApiError, Forbidden, NotFound, TooManyRequests
from homeport.client.protocol import Client, Key, MergePatch, Query, Write
from homeport.core.machine import drain, volume
from homeport.runtime.cache import key_of

NODE = Resource("", "v1", "Node", "nodes", namespaced=False)
POD = Resource("", "v1", "Pod", "pods")
NAMESPACE = Resource("", "v1", "Namespace", "namespaces", namespaced=False)
PERSISTENT_VOLUME = Resource("", "v1", "PersistentVolume", "persistentvolumes", namespaced=False)
DAEMON_SET = Resource("apps", "v1", "DaemonSet", "daemonsets")
DISRUPTION_BUDGET = Resource("policy", "v1", "PodDisruptionBudget", "poddisruptionbudgets")
VOLUME_ATTACHMENT = Resource("storage.k8s.io", "v1", "VolumeAttachment", "volumeattachments", namespaced=False)

_PAGE = 500
_WRITE = Write(field_manager="homeport-machine")


def pods_of(node: str) -> Query:
    return Query(fields=f"spec.nodeName={node}")


class Workload:
    """The workload cluster of one Machine, for one loop."""

    def __init__(self, client: Client, node: Unstructured) -> None:
        self._client = client
        self.node = node

    async def cordon(self) -> None:
        if not (self.node.get("spec") or {}).get("unschedulable"):
            patch = MergePatch({"spec": {"unschedulable": True}})
            self.node = await self._client.patch(NODE, Key("", self.node.name), patch, _WRITE)

    async def plan(self, rules: Sequence[MachineDrainRule], now: float) -> drain.Plan:
        pods = await self._list(POD, pods_of(self.node.name))
        around = drain.DrainContext(
            rules=rules,
            namespaces=await self._namespaces(pods, rules),
            orphaned=await self._orphaned(pods),
            unreachable=drain.unreachable(self.node),
            now=now,
        )
        return drain.plan(pods, around)

    async def evict(self, pods: Sequence[Unstructured]) -> tuple[list[Unstructured], dict[str, list[Unstructured]]]:
        """(those that go now, why the others do not)."""
        going: list[Unstructured] = []
        refused: dict[str, list[Unstructured]] = {}
        for pod in pods:
            try:
                await self._evict(pod)
                going.append(pod)
            except NotFound:
                continue
            except (TooManyRequests, Forbidden) as error:
                refused.setdefault(refusal(error), []).append(pod)
        return going, refused

    async def _evict(self, pod: Unstructured) -> None:
        eviction: dict[str, Any] = {
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {"name": pod.name, "namespace": pod.namespace},
        }
        if drain.unreachable(self.node):
            # Nobody there could use the time: the sooner the deadline has passed, the sooner the Pod counts as gone.
            eviction["deleteOptions"] = {"gracePeriodSeconds": drain.UNREACHABLE_GRACE_SECONDS}
        await self._client.create(eviction, _WRITE, kind=POD, key=key_of(pod), subresource="eviction")

    async def volumes(self, rules: Sequence[MachineDrainRule], now: float) -> list[str]:
        """Volumes that are still attached and should not be. Volumes of Pods that stay on the Node stay with them."""
        if drain.unreachable(self.node):
            return []  # no kubelet is left to unmount volumes
        reported, named = volume.attached(self.node, await self._list(VOLUME_ATTACHMENT))
        if not reported and not named:
            return []
        staying = volume.claims_of((await self.plan(rules, now)).skipped)
        return volume.waiting(reported, named, await self._list(PERSISTENT_VOLUME), staying)

    async def _namespaces(
        self, pods: Sequence[Unstructured], rules: Sequence[MachineDrainRule]
    ) -> dict[str, dict[str, str]]:
        if not pods or not any(each.namespace_selector for rule in rules for each in rule.spec.pods):
            return {}  # no drain rule selects by their labels
        return {each.name: each.metadata.get("labels") or {} for each in await self._list(NAMESPACE)}

    async def _orphaned(self, pods: Sequence[Unstructured]) -> frozenset[Key]:
        named = {key for pod in pods if (key := drain.daemon_set_of(pod)) is not None}
        gone = set()
        for key in sorted(named):
            try:
                await self._client.get(DAEMON_SET, key)
            except NotFound:
                gone.add(key)
        return frozenset(gone)

    async def _list(self, kind: Resource, query: Query | None = None) -> list[Unstructured]:
        query = query or Query()
        found: list[Unstructured] = []
        token = ""
        while True:
            page = await self._client.list(
                kind, Query(fields=query.fields, labels=query.labels, limit=_PAGE, continue_=token)
            )
            found += page.items
            token = page.continue_
            if not token:
                return found


async def delete_node(client: Client, name: str) -> None:
    await drop_object(client, NODE, Key("", name))


def refusal(error: ApiError) -> str:
    """Why a Pod could not be evicted, with the name of the PodDisruptionBudget."""
    details = [cause.message for cause in error.causes if cause.message]
    if isinstance(error, TooManyRequests) and details:
        return f"it would violate a disruption budget: {', '.join(details)}"
    if any(cause.reason == "NamespaceTerminating" for cause in error.causes):
        return "its namespace is being deleted, and with it the Pod"
    return error.message
