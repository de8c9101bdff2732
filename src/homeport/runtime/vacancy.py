"""Leases of others that do parts of our work, and know nothing of ours: we begin when none of them is held any more."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable

import structlog

from homeport.api.meta import Unstructured
from homeport.client.absence import find_object
from homeport.client.errors import ApiError
from homeport.client.protocol import Client, Key
from homeport.runtime.clock import Clock, SystemClock
from homeport.runtime.lease import LEASE, LeaseTiming

log = structlog.get_logger(__name__)


class Vacancy:
    """Reads these Leases and never writes them. As with a Lease of our own, one is expired when its record has not
    changed for its duration by our own clock."""

    def __init__(self, client: Client, leases: Iterable[Key], timing: LeaseTiming, clock: Clock | None = None) -> None:
        self._client = client
        self._leases = tuple(leases)
        self._timing = timing
        self._clock = clock or SystemClock()
        self._seen: dict[Key, tuple[str, float]] = {}  # revision, since when
        self._told: tuple[Key, str] | None = None

    async def wait(self, meanwhile: Callable[[], Awaitable[None]]) -> None:
        """Until none of them may be held."""
        while await self.occupied():
            await meanwhile()
            await asyncio.sleep(self._timing.retry_period)  # a poll by nature: a holder may be dead

    async def occupied(self) -> bool:
        for key in self._leases:
            try:
                lease = await find_object(self._client, LEASE, key)
            except ApiError as error:
                log.warning("lease not read", lease=str(key), error=str(error))
                return True
            if lease is not None and self._may_be_held(key, lease):
                self._tell(key, str(lease["spec"]["holderIdentity"]))
                return True
        return False

    def _may_be_held(self, key: Key, lease: Unstructured) -> bool:
        spec = lease.get("spec") or {}
        if not spec.get("holderIdentity"):
            return False
        now = self._clock.monotonic()
        revision, since = self._seen.get(key, ("", now))
        if revision != lease.resource_version:
            self._seen[key] = (lease.resource_version, now)
            return True
        return now - since <= float(spec.get("leaseDurationSeconds") or self._timing.duration)

    def _tell(self, key: Key, holder: str) -> None:
        if self._told != (key, holder):
            log.info("waiting for the lease", lease=str(key), holder=holder)
        self._told = (key, holder)
