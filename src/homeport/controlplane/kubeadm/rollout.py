"""Rollout commands of control planes for the command line, on any Client: restart, pause, resume."""

from __future__ import annotations

from homeport.api.controlplane.v1beta2 import KubeadmControlPlane
from homeport.capi.name import PAUSED
from homeport.capi.object import rollout
from homeport.client.protocol import Client, Key


async def restart(client: Client, key: Key, now: float) -> str:
    found = await client.get(KubeadmControlPlane, key)
    return await rollout.restart(client, found, now, paused=PAUSED in found.metadata.annotations)


async def pause(client: Client, key: Key, *, paused: bool) -> bool:
    """By the annotation, which stops all work on the control plane. False: it was so already."""
    found = await client.get(KubeadmControlPlane, key)
    if (PAUSED in found.metadata.annotations) == paused:
        return False
    await rollout.change(client, found, {"metadata": {"annotations": {PAUSED: "" if paused else None}}})
    return True
