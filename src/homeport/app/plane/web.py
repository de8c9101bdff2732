"""What the plane serves beside its API: the page. It is made above this layer, and given to the plane."""

from __future__ import annotations

from typing import Protocol

from homeport.client.config import Config
from homeport.client.dial import DialOptions


class Web(Protocol):
    async def start(self, base: Config, host: str, port: int, *, dial: DialOptions) -> str:
        """Serves; gives the address. `base` says where the API is, and carries no credential; `dial` how the plane
        reaches hypervisors. Raises OSError."""

    async def stop(self) -> None: ...
