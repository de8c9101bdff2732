"""Waits until the Deployments of an installation run, and says how far they are."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from homeport.app.kubernetes.install import DEPLOYMENT, InstallError
from homeport.app.kubernetes.layout import Placement
from homeport.client.protocol import Client, Key
from homeport.runtime.clock import Clock, SystemClock

_POLL_SECONDS = 1.0


async def await_available(
    client: Client,
    placements: Iterable[Placement],
    say: Callable[[str], None],
    seconds: float,
    clock: Clock | None = None,
) -> None:
    """Raises InstallError when the time is over."""
    clock = clock or SystemClock()
    until = clock.monotonic() + seconds
    said: dict[Placement, str] = {}
    waiting = list(placements)
    while True:
        for placement in list(waiting):
            found = await client.get(DEPLOYMENT, Key(placement.namespace, placement.name))
            text = progress(found)
            if said.get(placement) != text:
                said[placement] = text
                say(f"{placement}: {text or 'available'}")
            if not text:
                waiting.remove(placement)
        if not waiting:
            return
        if clock.monotonic() > until:
            first = waiting[0]
            look = f"kubectl describe pods -n {first.namespace} -l control-plane={first.name}"
            raise InstallError(
                f"Deployment {first} is not available after {seconds:.0f} s: {said[first]}. See '{look}'"
            )
        await asyncio.sleep(_POLL_SECONDS)


def progress(deployment: Mapping[str, Any]) -> str:
    """What is missing; '' when all replicas of this version are available."""
    status = deployment.get("status") or {}
    wanted = int(deployment["spec"].get("replicas", 1))
    if int(status.get("observedGeneration", 0)) < int(deployment["metadata"].get("generation", 0)):
        return "waiting for the Deployment controller"
    failed = [each for each in status.get("conditions") or () if each["type"] == "ReplicaFailure"]
    if failed and failed[0]["status"] == "True":
        return f"Pods can't be created: {failed[0].get('message', '')}"
    updated, available = int(status.get("updatedReplicas", 0)), int(status.get("availableReplicas", 0))
    if updated < wanted:
        return f"{updated} of {wanted} replicas updated"
    if (old := int(status.get("replicas", 0)) - updated) > 0:
        return f"{old} old replicas remaining"
    return "" if available >= wanted else f"{available} of {wanted} replicas available"
