"""Removes the Leases of members that died: each process has a name of its own, so nobody else ever uses them again."""

from __future__ import annotations

import asyncio
import contextlib

import structlog

from homeport.api.meta import Unstructured
from homeport.client.errors import ApiError, Conflict, NotFound
from homeport.client.protocol import Client, Key, Query
from homeport.runtime.clock import Clock, SystemClock
from homeport.runtime.lease import LEASE

log = structlog.get_logger(__name__)

# Of durations without a renewal: a member stops itself within one of them.
_PATIENCE = 4


class Departed:
    """Looks at the Leases with a label. Clocks of others are not trusted: what counts is how long we saw no change.

    `duration` is that of our own Lease.
    """

    def __init__(self, client: Client, query: Query, duration: float, *, clock: Clock | None = None) -> None:
        self._client = client
        self._query = query
        self._pause = _PATIENCE * duration
        self._clock = clock or SystemClock()
        self._seen: dict[str, tuple[str, float]] = {}  # name > resourceVersion, since when

    async def run(self) -> None:
        while True:
            try:
                await self.look()
            except ApiError as error:
                log.warning("leases of replicas can't be listed", error=str(error))
            await asyncio.sleep(self._pause)

    async def look(self) -> list[str]:
        """Names of the Leases that were removed."""
        asked = self._clock.monotonic()
        leases = (await self._client.list(LEASE, self._query)).items
        known, self._seen = self._seen, {}
        removed = []
        for lease in leases:
            before = known.get(lease.name)
            unchanged = before is not None and before[0] == lease.resource_version
            self._seen[lease.name] = before if before and unchanged else (lease.resource_version, asked)
            if asked - self._seen[lease.name][1] > _PATIENCE * _duration(lease) and await self._remove(lease):
                removed.append(lease.name)
        return removed

    async def _remove(self, lease: Unstructured) -> bool:
        with contextlib.suppress(NotFound, Conflict):  # whoever renews it meanwhile lives
            key = Key(lease.namespace, lease.name)
            await self._client.delete(LEASE, key, resource_version=lease.resource_version)
            log.info("lease of a replica that is gone removed", lease=f"{lease.namespace}/{lease.name}")
            return True
        return False


def _duration(lease: Unstructured) -> float:
    return float((lease.get("spec") or {}).get("leaseDurationSeconds") or 15)
