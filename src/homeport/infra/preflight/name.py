"""Whether the name of a control plane's endpoint resolves, looked up before a machine needs it."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable
from typing import Any

from homeport.capi.family import family_of
from homeport.client.dial import DialOptions
from homeport.infra.preflight.host import ENDPOINT
from homeport.infra.protocol import Check, ClusterScope

Lookup = Callable[[str], Awaitable[str]]  # why a name does not resolve; '': it does
_SECONDS = 5.0


def lookup_of(dial: DialOptions) -> Lookup:
    """Through a proxy, names are those of the proxy: this machine need not know them."""
    return _trusted if dial.proxy else look_up


async def _trusted(_: str) -> str:
    return ""


async def look_up(host: str) -> str:
    loop = asyncio.get_running_loop()
    try:
        async with asyncio.timeout(_SECONDS):
            await loop.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except TimeoutError:
        return f"no DNS server answered within {_SECONDS:.0f} s"
    except (OSError, UnicodeError) as error:  # a label that is too long has no encoding
        unknown = isinstance(error, socket.gaierror) and error.errno in (socket.EAI_NONAME, socket.EAI_NODATA)
        return "no DNS server knows it" if unknown else str(getattr(error, "strerror", "") or error)
    return ""


async def check_name(scope: ClusterScope[Any, Any], lookup: Lookup) -> list[Check]:
    """Until the control plane has answered: a name that does not resolve explains why it does not. It stops nothing,
    because the record may be made while the machines start."""
    host = scope.infra.spec.control_plane_endpoint.host
    if not host or family_of(host) or scope.cluster.status.initialization.control_plane_initialized:
        return []
    why = await lookup(host)
    if not why:
        return []
    text = f"{host!r} does not resolve: {why}. Add a DNS record that leads to the control plane, or give an address"
    return [Check(ENDPOINT, False, "EndpointNotResolved", f"spec.controlPlaneEndpoint.host: {text}", advisory=True)]
