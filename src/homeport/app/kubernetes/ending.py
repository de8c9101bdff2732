"""Waits until the Pods of Deployments that were deleted have ended."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable

from homeport.api.meta import Unstructured
from homeport.client.errors import Forbidden
from homeport.client.protocol import Client, Query
from homeport.runtime.clock import Clock, SystemClock
from homeport.runtime.workload.kind import POD

# A Pod has 30 seconds to end, and the garbage collector takes a moment to tell it to.
ENDED_SECONDS = 60.0
_POLL_SECONDS = 0.5


async def await_ended(
    client: Client, deployments: Iterable[Unstructured], say: Callable[[str], None], clock: Clock | None = None
) -> None:
    """Their controllers need their permissions to the end: they finish writes and give their Leases back, so that the
    next ones need not wait until these expire. A Pod on a Node that does not answer may never end: what it may do is
    removed then, while it is still there, which is as safe.
    """
    clock, deployments = clock or SystemClock(), list(deployments)
    until, said = clock.monotonic() + ENDED_SECONDS, False
    while names := [name for each in deployments for name in await _pods(client, each)]:
        if clock.monotonic() > until:
            text = f"not ended after {ENDED_SECONDS:.0f} s: Pods {', '.join(names)}"
            say(f"{text}. Their permissions are removed now; see 'kubectl describe' of these Pods and of their Nodes")
            return
        if not said:
            say(f"waiting for Pods of removed Deployments to end: {', '.join(names)}")
            said = True
        await asyncio.sleep(_POLL_SECONDS)


async def _pods(client: Client, deployment: Unstructured) -> list[str]:
    labels = deployment["spec"]["selector"]["matchLabels"]
    query = Query(namespace=deployment.namespace, labels=",".join(f"{name}={value}" for name, value in labels.items()))
    try:
        found = (await client.list(POD, query)).items
    except Forbidden:  # whoever may not read Pods does not wait for them
        return []
    return [f"{each.namespace}/{each.name}" for each in found if _runs(each)]


def _runs(pod: Unstructured) -> bool:
    return (pod.get("status") or {}).get("phase") not in ("Succeeded", "Failed")
