"""Console logs of simulated machines, from the log of the plane."""

from __future__ import annotations

from homeport.client.errors import ApiError
from homeport.client.http import HttpClient

_LOG = "/api/v1/namespaces/homeport-system/pods/homeport/log?container=sim-machine"


async def read_simulated(client: HttpClient) -> dict[str, list[str]]:
    """The lines of all simulated machines, by the name of the VM; nothing where no machines are simulated."""
    try:
        answer = await client.raw("GET", _LOG)
        text = answer.check(_LOG).decode(errors="replace")
    except ApiError:
        return {}
    found: dict[str, list[str]] = {}
    for line in text.splitlines():
        name, colon, said = line.partition(": ")
        if colon:
            found.setdefault(name, []).append(said)
    return found
