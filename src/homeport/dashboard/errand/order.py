"""What the process of an errand gets: who the user is, how to reach hypervisors, and what to do."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from homeport.client.config import Config
from homeport.client.dial import DialOptions
from homeport.dashboard.handover import HandOver, config_of, read


class Order(msgspec.Struct, frozen=True):
    """Goes through a pipe: it carries the user's credential, which must not be in arguments or the environment."""

    errand: str
    options: dict[str, Any]
    given: HandOver
    server: str
    ca: bytes | None = None
    ca_file: str = ""
    insecure: bool = False
    server_name: str = ""
    proxy: str = ""
    dial_proxy: str = ""
    dial_ca: bytes = b""

    def __repr__(self) -> str:
        return f"Order({self.errand!r})"

    @property
    def config(self) -> Config:
        base = Config(
            self.server,
            ca=self.ca,
            ca_file=Path(self.ca_file) if self.ca_file else None,
            insecure=self.insecure,
            server_name=self.server_name,
            proxy=self.proxy,
        )
        return config_of(base, self.given)

    @property
    def dial(self) -> DialOptions:
        return DialOptions(self.dial_proxy, self.dial_ca)


async def write_order(errand: str, options: dict[str, Any], config: Config, dial: DialOptions) -> Order:
    """Raises ApiError: the credential can't be read any more."""
    return Order(
        errand,
        options,
        await read(config),
        config.server,
        ca=config.ca,
        ca_file=str(config.ca_file or ""),
        insecure=config.insecure,
        server_name=config.server_name,
        proxy=config.proxy,
        dial_proxy=dial.proxy,
        dial_ca=dial.ca_pem,
    )


class Outcome(msgspec.Struct, frozen=True):
    """What the process answers with: a result, or a problem to show."""

    result: Any = None
    problem: str = ""
