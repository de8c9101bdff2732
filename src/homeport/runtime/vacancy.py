"""Leases of others that do parts of our work, and know nothing of ours: we work while none of them is held."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass

import structlog

from homeport.api.meta import Unstructured
from homeport.client.absence import find_object
from homeport.client.errors import ApiError
from homeport.client.protocol import Client, Key, Query
from homeport.runtime.clock import Clock, SystemClock
from homeport.runtime.lease import LEASE, LeaseLost, LeaseTiming, explain_wait

log = structlog.get_logger(__name__)

_REPEAT_SECONDS = 300.0  # a log that was rotated still shows what we wait for


@dataclass(frozen=True, slots=True)
class _Sighting:
    """The record of a holder, and when we first saw it unchanged since. Revision '': it was deleted."""

    revision: str
    since: float
    duration: float


class Vacancy:
    """Reads these Leases and never writes them. As with a Lease of our own, one is expired when its record has not
    changed for its duration by our own clock."""

    def __init__(self, client: Client, leases: Iterable[Key], timing: LeaseTiming, clock: Clock | None = None) -> None:
        self._client = client
        self._leases = tuple(leases)
        self._timing = timing
        self._clock = clock or SystemClock()
        self._seen: dict[Key, _Sighting] = {}
        self._holders: dict[Key, str] = {}
        self._told: dict[Key, tuple[str, float]] = {}  # the reason, when
        self.waits: dict[Key, str] = {}  # those that may be held, and what to do about that

    async def wait(self, meanwhile: Callable[[], Awaitable[None]]) -> None:
        """Until none of them may be held."""
        while await self.occupied():
            await meanwhile()
            await asyncio.sleep(self._timing.retry_period)  # a poll by nature: a holder may be dead

    async def keep(self) -> None:
        """Raises LeaseLost (in an ExceptionGroup) when one of them is held again: its holder does not ask whether we
        work."""
        async with asyncio.TaskGroup() as group:
            for key in self._leases:
                group.create_task(self._follow(key), name=f"lease {key}")

    async def _follow(self, key: Key) -> None:
        """Where it may not be watched, it is read: rarely, as these are many, and this goes on for ever."""
        while True:
            pause = self._timing.retry_period
            try:
                await self._watch(key)
            except ApiError as error:
                log.debug("a lease of others is read, as it can't be watched", lease=str(key), error=str(error))
                pause = self._timing.retry_period * len(self._leases)
            await asyncio.sleep(pause)
            with contextlib.suppress(ApiError):  # no answer does not make it held
                self._insist(key, await self._held(key))

    async def _watch(self, key: Key) -> None:
        """Until the server ends the watch. Without a resourceVersion, it begins with the record as it is."""
        query = Query(namespace=key.namespace, fields=f"metadata.name={key.name}")
        async with self._client.watch(LEASE, query) as events:
            async for event in events:
                if event.type != "BOOKMARK":
                    lease = None if event.type == "DELETED" else event.object
                    self._insist(key, self._judge(key, lease, self._clock.monotonic()))

    @staticmethod
    def _insist(key: Key, why: str) -> None:
        if why:
            raise LeaseLost(f"Lease {key}: {why}")

    async def occupied(self) -> bool:
        """Looks at all of them: those that dead holders left behind expire together, and not one after the other."""
        found = dict(zip(self._leases, await asyncio.gather(*map(self._look, self._leases)), strict=True))
        self.waits = {key: why for key, why in found.items() if why}
        for key, why in self.waits.items():
            self._tell(key, why)
        return bool(self.waits)

    async def _look(self, key: Key) -> str:
        """Why it must be waited for."""
        try:
            return await self._held(key)
        except ApiError as error:
            return f"can't be read, so it may be held: {error}"

    async def _held(self, key: Key) -> str:
        """By whom it may be held, and what to do about that. Raises ApiError."""
        asked = self._clock.monotonic()
        return self._judge(key, await find_object(self._client, LEASE, key), asked)

    def _judge(self, key: Key, lease: Unstructured | None, asked: float) -> str:
        if not self._may_be_held(key, lease, asked):
            self._holders.pop(key, None)
            return ""
        if lease is not None:
            self._holders[key] = str(lease["spec"]["holderIdentity"])
        return explain_wait(key, self._holders[key])

    def _may_be_held(self, key: Key, lease: Unstructured | None, asked: float) -> bool:
        """`asked`: when the lease was requested. The response shows the state at that time, not the current one."""
        spec = (lease.get("spec") if lease is not None else None) or {}
        seen = self._seen.get(key)
        over = seen is not None and asked - seen.since > seen.duration
        # The holder of one that was deleted may not know that yet.
        if not spec.get("holderIdentity") and (lease is not None or seen is None or over):
            self._seen.pop(key, None)
            return False
        revision = "" if lease is None else lease.resource_version
        if seen is None or seen.revision != revision:
            duration = float(spec.get("leaseDurationSeconds") or self._timing.duration)
            self._seen[key] = _Sighting(revision, self._clock.monotonic(), duration)
            return True
        return not over

    def _tell(self, key: Key, why: str) -> None:
        now = self._clock.monotonic()
        told, when = self._told.get(key, ("", now))
        if told != why or now - when >= _REPEAT_SECONDS:
            log.warning("waiting for the lease", lease=str(key), holder=self._holders.get(key, ""), reason=why)
            self._told[key] = (why, now)
