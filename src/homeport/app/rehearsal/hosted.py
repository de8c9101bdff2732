"""Stands in for the controllers of hosted control planes, whose Pods don't run in a rehearsal: all become ready."""

from __future__ import annotations

import base64
import contextlib
from typing import Any

from homeport.api.k0smotron.v1beta2 import K0smotronControlPlane
from homeport.api.kamaji.controlplane import KamajiControlPlane
from homeport.api.meta import Resource, Unstructured
from homeport.api.steward.controlplane import StewardControlPlane
from homeport.capi.name import CLUSTER_NAME_LABEL, KUBECONFIG_SUFFIX, SECRET_TYPE, SECRET_VALUE, Condition
from homeport.capi.remote import pki
from homeport.client.errors import AlreadyExists, ApiError
from homeport.client.protocol import DEFAULT_WRITE, Client, Key, MergePatch

HOSTED: tuple[Resource, ...] = tuple(
    kind.__resource__ for kind in (StewardControlPlane, KamajiControlPlane, K0smotronControlPlane)
)
_SECRET = Resource("", "v1", "Secret", "secrets")
_ENDPOINT = {"host": "198.18.255.1", "port": 6443}
_LONG_AGO = "2020-01-01T00:00:00Z"


async def assume_ready(client: Client, kind: Resource, now: float) -> None:
    """Until cancelled."""
    async with client.watch(kind, initial_events=True) as events:
        async for event in events:
            if event.type in ("ADDED", "MODIFIED"):
                with contextlib.suppress(ApiError):  # the next event brings the object again
                    await _advance(client, kind, event.object, now)


async def _advance(client: Client, kind: Resource, obj: Unstructured, now: float) -> None:
    key = Key(obj.namespace, obj.name)
    if obj.metadata.get("deletionTimestamp"):
        if obj.metadata.get("finalizers"):
            await client.patch(kind, key, MergePatch({"metadata": {"finalizers": None}}))
        return
    cluster = next((r["name"] for r in obj.metadata.get("ownerReferences") or () if r.get("kind") == "Cluster"), "")
    if not cluster:
        return
    spec = obj.get("spec") or {}
    if not (spec.get("controlPlaneEndpoint") or {}).get("host") and kind.kind != "K0smotronControlPlane":
        await client.patch(kind, key, MergePatch({"spec": {"controlPlaneEndpoint": _ENDPOINT}}))
    at = Key(obj.namespace, cluster)
    await pki.ensure(client, at, owner=None, now=now, options=DEFAULT_WRITE, algorithm="ECDSA-P256")
    await _hold_kubeconfig(client, at)
    wanted = _status(spec, obj.get("status") or {})
    if any((obj.get("status") or {}).get(name) != value for name, value in wanted.items()):
        await client.patch(kind, key, MergePatch({"status": wanted}), subresource="status")


def _status(spec: dict[str, Any], status: dict[str, Any]) -> dict[str, Any]:
    count = spec.get("replicas") or 1
    conditions = [each for each in status.get("conditions") or () if each.get("type") != Condition.AVAILABLE]
    good = {"type": Condition.AVAILABLE, "status": "True", "reason": "Available", "message": ""}
    kept: dict[str, Any] = next((e for e in status.get("conditions") or () if e.get("type") == Condition.AVAILABLE), {})
    since = kept.get("lastTransitionTime") or _LONG_AGO
    return {
        "initialization": {"controlPlaneInitialized": True},
        "externalManagedControlPlane": True,
        "version": spec.get("version") or "",
        "conditions": [*conditions, {**good, "lastTransitionTime": since}],
        **dict.fromkeys(("replicas", "readyReplicas", "availableReplicas", "upToDateReplicas"), count),
    }


async def _hold_kubeconfig(client: Client, cluster: Key) -> None:
    content = base64.b64encode(f"rehearsal of {cluster}".encode()).decode()
    name = f"{cluster.name}{KUBECONFIG_SUFFIX}"
    body = {
        "metadata": {"name": name, "namespace": cluster.namespace, "labels": {CLUSTER_NAME_LABEL: cluster.name}},
        "type": SECRET_TYPE,
        "data": {SECRET_VALUE: content},
    }
    with contextlib.suppress(AlreadyExists):
        await client.create(body, kind=_SECRET)
