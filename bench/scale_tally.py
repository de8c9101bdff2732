"""Counts who writes what: every change of the objects of clusters, by kind and by what it changed."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any

from homeport.api.meta import Resource
from homeport.client.http import HttpClient
from homeport.client.protocol import Query

_KINDS = (
    Resource("cluster.x-k8s.io", "v1beta2", "Cluster", "clusters"),
    Resource("cluster.x-k8s.io", "v1beta2", "Machine", "machines"),
    Resource("controlplane.cluster.x-k8s.io", "v1beta2", "KubeadmControlPlane", "kubeadmcontrolplanes"),
    Resource("bootstrap.cluster.x-k8s.io", "v1beta2", "KubeadmConfig", "kubeadmconfigs"),
    Resource("infrastructure.cluster.x-k8s.io", "v1beta1", "NutanixCluster", "nutanixclusters"),
    Resource("infrastructure.cluster.x-k8s.io", "v1beta1", "NutanixMachine", "nutanixmachines"),
    Resource("infrastructure.cluster.x-k8s.io", "v1beta1", "NutanixMachineTemplate", "nutanixmachinetemplates"),
    Resource("", "v1", "Secret", "secrets"),
    Resource("", "v1", "Event", "events"),
)


class Tally:
    """`async with`; does nothing unless `wanted`."""

    def __init__(self, client: HttpClient, wanted: bool) -> None:
        self._client = client
        self._kinds = _KINDS if wanted else ()
        self._counts: Counter[str] = Counter()
        self._known: dict[tuple[str, str], Any] = {}
        self._tasks: list[asyncio.Task[None]] = []

    async def __aenter__(self) -> Tally:
        self._tasks = [asyncio.create_task(self._follow(kind)) for kind in self._kinds]
        return self

    async def __aexit__(self, *error: object) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def take(self) -> Counter[str]:
        """What was counted since the last time."""
        for task in self._tasks:
            if task.done():
                task.result()
        found, self._counts = self._counts, Counter()
        return found

    async def _follow(self, kind: Resource) -> None:
        async with self._client.watch(kind, Query(namespace="default"), initial_events=True) as events:
            async for event in events:
                if event.type == "BOOKMARK":
                    continue
                obj: Any = event.object
                place = (kind.kind, obj.name)
                self._counts[f"{kind.kind} {self._word(event.type, self._known.get(place), obj)}"] += 1
                if event.type == "DELETED":
                    self._known.pop(place, None)
                else:
                    self._known[place] = obj

    def _word(self, event: str, before: Any, now: Any) -> str:
        if event != "MODIFIED" or before is None:
            return {"ADDED": "created", "DELETED": "deleted"}.get(event, "changed")
        return "status" if before.get("status") != now.get("status") else "changed"
