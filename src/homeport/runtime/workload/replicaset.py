"""ReplicaSets: as many Pods as asked for."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from homeport.api.meta import Resource, Unstructured
from homeport.client.absence import drop_object
from homeport.client.errors import NotFound
from homeport.client.protocol import Client, Key, MergePatch, Write
from homeport.runtime.clock import parse_time
from homeport.runtime.outcome import Wait
from homeport.runtime.workload.kind import (
    BY_OWNER,
    POD,
    REPLICA_SET,
    active,
    deleting,
    phase,
    ready_since,
    spec_of,
    status_of,
)
from homeport.runtime.workload.reconciler import WorkloadReconciler
from homeport.runtime.workload.template import pod_of

_WRITE = Write(field_manager="replicaset-controller")
_NONE: Mapping[str, str] = MappingProxyType({})
_BURST = 50  # Pods that are made or deleted in one loop


class ReplicaSetReconciler(WorkloadReconciler):
    kind = REPLICA_SET

    async def converge(self, owner: Unstructured) -> Wait | None:
        pods = [pod for pod in self._pods.by(BY_OWNER, owner.uid) if active(pod)]
        if not deleting(owner):
            await self._scale(owner, pods)
        status, next_look = count_replicas(owner, pods, self._clock.now())
        await write_status(self._client, REPLICA_SET, owner, status, _WRITE)
        return Wait("NotAvailableYet", after=next_look, quiet=True) if next_look is not None else None

    async def _scale(self, owner: Unstructured, pods: Sequence[Unstructured]) -> None:
        wanted = int(spec_of(owner).get("replicas", 1))
        missing = min(wanted - len(pods), _BURST)
        if missing > 0:
            body = pod_of(owner, REPLICA_SET, spec_of(owner)["template"])
            await asyncio.gather(*(self._client.create(body, _WRITE, kind=POD) for _ in range(missing)))
        for pod in surplus(pods, len(pods) - wanted)[:_BURST]:
            await delete_pod(self._client, pod)


def surplus(pods: Sequence[Unstructured], count: int) -> list[Unstructured]:
    """The `count` Pods that are missed least: those not started, not ready, and the youngest first."""
    if count <= 0:
        return []

    def worth(pod: Unstructured) -> tuple[bool, bool, bool]:
        return bool(spec_of(pod).get("nodeName")), phase(pod) == "Running", ready_since(pod) is not None

    youngest = sorted(pods, key=lambda pod: str(pod.metadata.get("creationTimestamp")), reverse=True)
    return sorted(youngest, key=worth)[:count]


def count_replicas(
    owner: Unstructured, pods: Sequence[Unstructured], now: float
) -> tuple[dict[str, Any], float | None]:
    """The status, and in how many seconds the next Pod has been ready long enough to count as available."""
    labels = ((spec_of(owner).get("template") or {}).get("metadata") or {}).get("labels") or {}
    ready = [pod for pod in pods if ready_since(pod) is not None]
    waits = [left for pod in ready if (left := seconds_to_available(owner, pod, now)) > 0]
    status: dict[str, Any] = {
        "replicas": len(pods),
        "observedGeneration": owner.metadata.get("generation", 0),
        "fullyLabeledReplicas": sum(labels.items() <= (p.metadata.get("labels") or {}).items() for p in pods),
        "readyReplicas": len(ready),
        "availableReplicas": len(ready) - len(waits),
    }
    return {k: v for k, v in status.items() if v or k == "replicas"}, min(waits, default=None)


def seconds_to_available(owner: Unstructured, pod: Unstructured, now: float) -> float:
    """0 for a Pod that has been ready for minReadySeconds."""
    since = ready_since(pod)
    least = float(spec_of(owner).get("minReadySeconds") or 0)
    if since is None:
        return least
    return max(parse_time(since) + least - now, 0.0) if since and least else 0.0


async def delete_pod(client: Client, pod: Unstructured) -> None:
    await drop_object(client, POD, Key(pod.namespace, pod.name), uid=pod.uid)


async def write_status(
    client: Client,
    kind: Resource,
    obj: Unstructured,
    status: dict[str, Any],
    write: Write,
    *,
    annotations: Mapping[str, str] = _NONE,
) -> None:
    """Replaces the status where it differs; what it no longer says is taken away. `annotations` are set besides."""
    before = status_of(obj)
    changed = [field for field in before.keys() | status.keys() if before.get(field) != status.get(field)]
    if not changed and not annotations:
        return
    patch: dict[str, Any] = {"metadata": {"uid": obj.uid}}
    if annotations:
        patch["metadata"]["annotations"] = dict(annotations)
    if changed:
        patch["status"] = {field: status.get(field) for field in sorted(changed)}
    try:
        await client.patch(kind, Key(obj.namespace, obj.name), MergePatch(patch), write, subresource="status")
    except NotFound:
        return
