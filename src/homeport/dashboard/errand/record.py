"""What the controllers have logged about an object, or about a cluster and everything that belongs to it."""

from __future__ import annotations

from typing import Any

from homeport.app.doctor.diagnosis import Commands
from homeport.app.doctor.gather import gather
from homeport.app.machine.record import read_lines
from homeport.client.http import HttpClient
from homeport.client.protocol import Key

_CLUSTERS = ("Cluster", "TenantCluster", "ClusterDeployment")
_MOST = 5_000


async def logged(client: HttpClient, options: dict[str, Any]) -> list[dict[str, str]]:
    """The newest lines, in order of time. Raises ApiError and NoCluster."""
    key = Key(str(options.get("namespace") or ""), str(options.get("name") or ""))
    names = [f"{key.namespace}/{key.name}" if key.namespace else key.name]
    if options.get("kind") in _CLUSTERS:
        facts = await gather(client, key, Commands())
        names = [f"{each.namespace}/{each.name}" for each in facts.objects]
    return [line._asdict() for line in (await read_lines(client, names))[-_MOST:]]
