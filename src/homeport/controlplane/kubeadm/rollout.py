"""Rollout commands of control planes for the command line, on any Client: status, restart, pause, resume."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

from homeport.api.controlplane.v1beta2 import KubeadmControlPlane
from homeport.capi.name import PAUSED
from homeport.client.errors import NotFound
from homeport.client.protocol import Client, Key, MergePatch, Query, Write
from homeport.runtime.clock import rfc3339

_WRITE = Write(field_manager="homeport-rollout")


class Refused(Exception):
    """It can't be done as things are; says what to do first."""


async def restart(client: Client, key: Key, now: float) -> str:
    """Replaces all Machines though nothing has changed. Gives the time that was set."""
    kcp = await client.get(KubeadmControlPlane, key)
    if PAUSED in kcp.metadata.annotations:
        raise Refused(f"KubeadmControlPlane {key.name} is paused: resume it first")
    when = rfc3339(now)
    await _patch(client, kcp, {"spec": {"rollout": {"after": when}}})
    return when


async def pause(client: Client, key: Key, *, paused: bool) -> bool:
    """By the annotation, which stops all work on the control plane. False: it was so already."""
    kcp = await client.get(KubeadmControlPlane, key)
    if (PAUSED in kcp.metadata.annotations) == paused:
        return False
    await _patch(client, kcp, {"metadata": {"annotations": {PAUSED: "" if paused else None}}})
    return True


async def _patch(client: Client, kcp: KubeadmControlPlane, patch: dict[str, Any]) -> None:
    """For this very object: one of the same name made meanwhile is another."""
    body = {**patch, "metadata": {**patch.get("metadata", {}), "uid": kcp.metadata.uid}}
    await client.patch(KubeadmControlPlane, Key(kcp.metadata.namespace, kcp.metadata.name), MergePatch(body), _WRITE)


def progress(kcp: KubeadmControlPlane) -> tuple[bool, str]:
    """Whether the rollout is over, and a sentence about it."""
    name, status = kcp.metadata.name, kcp.status
    wanted = 1 if kcp.spec.replicas is None else kcp.spec.replicas
    if (status.observed_generation or 0) < kcp.metadata.generation:
        return False, f"kubeadmcontrolplane/{name}: the change has not been observed yet"
    fresh, there, working = (n or 0 for n in (status.up_to_date_replicas, status.replicas, status.available_replicas))
    if fresh < wanted:
        return False, f"kubeadmcontrolplane/{name}: {fresh} of {wanted} replicas are up to date"
    if there > fresh:
        plural = "s" if there - fresh > 1 else ""
        return False, f"kubeadmcontrolplane/{name}: {there - fresh} old replica{plural} remaining"
    if working < fresh:
        return False, f"kubeadmcontrolplane/{name}: {working} of {fresh} up-to-date replicas are available"
    return True, f"kubeadmcontrolplane/{name} has finished its rollout"


async def follow(client: Client, key: Key) -> AsyncIterator[tuple[bool, KubeadmControlPlane]]:
    """The object at each change of it, until its rollout is over. Raises NotFound."""
    await client.get(KubeadmControlPlane, key)
    query = Query(namespace=key.namespace, fields=f"metadata.name={key.name}")
    while True:
        async with client.watch(KubeadmControlPlane, query, initial_events=True) as events:
            async for event in events:
                if event.type == "DELETED":
                    raise NotFound(f"KubeadmControlPlane {key.name} was deleted")
                if event.type == "BOOKMARK":
                    continue
                over, _ = progress(event.object)
                yield over, event.object
                if over:
                    return
