"""What the rollout commands of MachineDeployments and control planes share, on any Client."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any, TypeVar

from homeport.api.cluster.v1beta2 import MachineDeployment
from homeport.api.controlplane.v1beta2 import KubeadmControlPlane
from homeport.client.errors import NotFound
from homeport.client.protocol import Client, Key, MergePatch, Query, Write
from homeport.runtime.clock import rfc3339

_WRITE = Write(field_manager="homeport-rollout")
T = TypeVar("T", MachineDeployment, KubeadmControlPlane)


class Refused(Exception):
    """It can't be done as things are; says what to do first."""


async def restart(client: Client, found: MachineDeployment | KubeadmControlPlane, now: float, *, paused: bool) -> str:
    """Replaces all Machines though nothing has changed. Gives the time that was set."""
    if paused:
        raise Refused(f"{found.__resource__.kind} {found.metadata.name} is paused: resume it first")
    when = rfc3339(now)
    await change(client, found, {"spec": {"rollout": {"after": when}}})
    return when


async def change(client: Client, found: MachineDeployment | KubeadmControlPlane, patch: dict[str, Any]) -> None:
    """For this very object: one of the same name made meanwhile is another."""
    body = {**patch, "metadata": {**patch.get("metadata", {}), "uid": found.metadata.uid}}
    key = Key(found.metadata.namespace, found.metadata.name)
    await client.patch(found.__resource__, key, MergePatch(body), _WRITE)


def progress(found: MachineDeployment | KubeadmControlPlane) -> tuple[bool, str]:
    """Whether the rollout is over, and a sentence about it."""
    name, status = f"{found.__resource__.kind.lower()}/{found.metadata.name}", found.status
    wanted = 1 if found.spec.replicas is None else found.spec.replicas
    if (status.observed_generation or 0) < found.metadata.generation:
        return False, f"{name}: the change has not been observed yet"
    fresh, there, working = (n or 0 for n in (status.up_to_date_replicas, status.replicas, status.available_replicas))
    if fresh < wanted:
        return False, f"{name}: {fresh} of {wanted} replicas are up to date"
    if there > fresh:
        return False, f"{name}: {there - fresh} old replica{'s' if there - fresh > 1 else ''} remaining"
    if working < fresh:
        return False, f"{name}: {working} of {fresh} up-to-date replicas are available"
    return True, f"{name} has finished its rollout"


async def follow(client: Client, kind: type[T], key: Key) -> AsyncIterator[tuple[bool, str]]:
    """Its progress at each change of the object, until the rollout is over. Raises NotFound."""
    await client.get(kind, key)
    query = Query(namespace=key.namespace, fields=f"metadata.name={key.name}")
    while True:
        async with client.watch(kind, query, initial_events=True) as events:
            async for event in events:
                if event.type == "DELETED":
                    raise NotFound(f"{kind.__resource__.kind} {key.name} was deleted")
                if event.type == "BOOKMARK":
                    continue
                over, text = progress(event.object)
                yield over, text
                if over:
                    return
