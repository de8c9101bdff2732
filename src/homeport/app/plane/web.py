"""What the plane serves beside its API: the page. It is made above this layer, and given to the plane."""

from __future__ import annotations

from typing import Protocol
from urllib.parse import urlsplit

import structlog

from homeport.app.plane.port import holder
from homeport.client.config import Config
from homeport.client.dial import DialOptions

log = structlog.get_logger(__name__)

LOOPBACK = "127.0.0.1"
_NEXT = 10  # ports after that of the API. Those that the system chooses may go to a connection during a restart.
_LARGEST = 65535


class Web(Protocol):
    async def start(self, base: Config, host: str, port: int, *, dial: DialOptions) -> str:
        """Serves; gives the address. `base` says where the API is, and carries no credential; `dial` how the plane
        reaches hypervisors. Raises OSError."""

    async def stop(self) -> None: ...


async def serve_page(web: Web, base: Config, earlier: int, *, dial: DialOptions) -> str:
    """Gives the address, which is on loopback alone: with the port of the last start, so that open tabs and links stay
    valid, or with the next free one after that of the API."""
    api = urlsplit(base.server).port or 443
    for port in dict.fromkeys((earlier, *range(api + 1, api + _NEXT + 1))):
        if not 0 < port <= _LARGEST:
            continue
        try:
            return await web.start(base, LOOPBACK, port, dial=dial)
        except OSError as error:
            log.warning("the dashboard needs another port", port=port, error=str(error), taken_by=holder(port))
    return await web.start(base, LOOPBACK, 0, dial=dial)
