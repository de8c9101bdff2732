"""`homeport dashboard --serve`: the dashboard of any cluster, on this machine or in a Pod of that cluster."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from pathlib import Path

from homeport.app.kubernetes.dashboard.place import names_of
from homeport.app.kubernetes.health import HealthServer
from homeport.client.config import Config
from homeport.client.credential import Static
from homeport.dashboard.certificate import Certificate
from homeport.dashboard.guard import is_loopback
from homeport.dashboard.wire.server import Dashboard
from homeport.runtime.task import cancel


class ServiceError(Exception):
    """It can't be served so; the text names the option."""


@dataclass(frozen=True, slots=True)
class ServiceOptions:
    listen: tuple[str, int]
    tls: Path | None = None  # a folder with tls.crt and tls.key
    hosts: tuple[str, ...] = ()  # more names, besides the address and those of the Service
    health: tuple[str, int] | None = None

    def check(self) -> None:
        """Raises ServiceError."""
        if self.tls is None and not is_loopback(self.listen[0]):
            raise ServiceError(
                f"--listen {self.listen[0]}:{self.listen[1]}: credentials would cross the network in the clear; add "
                "--tls FOLDER with tls.crt and tls.key, or listen on 127.0.0.1"
            )


async def serve(config: Config, options: ServiceOptions, ready: Callable[[str], Awaitable[None]]) -> None:
    """Until `ready`, which gets the address, returns. Raises ServiceError, CertificateError and OSError."""
    options.check()
    certificate = Certificate(options.tls) if options.tls is not None else None
    following = asyncio.create_task(certificate.follow()) if certificate is not None else None
    dashboard, health = Dashboard(), await _serve_health(options, certificate)
    names = frozenset([*names_of([]), *options.hosts]) if certificate is not None else frozenset(options.hosts)
    context = certificate.context if certificate is not None else None
    try:
        address = await dashboard.start(
            replace(config, credential=Static()), *options.listen, context, names, forwarded=certificate is not None
        )
        await ready(address)
    finally:
        await dashboard.stop()
        if following is not None:
            await cancel(following)
        if health is not None:
            await health.close()


async def _serve_health(options: ServiceOptions, certificate: Certificate | None) -> HealthServer | None:
    if options.health is None:
        return None

    def problems() -> dict[str, str]:
        return {"certificate": certificate.unready} if certificate is not None and certificate.unready else {}

    made = HealthServer(problems)
    await made.start(*options.health)
    return made
