"""What the plane serves beside its API: the page. It is made above this layer, and given to the plane."""

from __future__ import annotations

from typing import Protocol

from homeport.client.config import Config


class Web(Protocol):
    async def start(self, base: Config, host: str, port: int) -> str:
        """Serves; gives the address. `base` says where the API is, and carries no credential. Raises OSError."""

    async def stop(self) -> None: ...
