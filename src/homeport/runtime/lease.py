"""Leader election by Lease, as Kubernetes' own components do it, with a fence.

Other machines' clocks are never trusted: a lease is expired when its record has not changed for its duration by our own
monotonic clock. We stop believing in our own lease earlier (`renew_deadline`) than others may take it (`duration`), and
the fence refuses writes from then on: there is a moment without a leader, never one with two. A lease that lapsed is
never renewed, even if no other process took it: others may have acted on its absence.
"""

from __future__ import annotations

import asyncio
import math
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

import structlog

from homeport.api.meta import Resource, Unstructured
from homeport.client.errors import AlreadyExists, ApiError, Conflict, NotFound
from homeport.client.protocol import Client, Key, Write
from homeport.runtime.clock import Clock, SystemClock, rfc3339_micro

log = structlog.get_logger(__name__)

LEASE = Resource("coordination.k8s.io", "v1", "Lease", "leases")
_WRITE = Write(field_manager="homeport-lease")
_TICK = 0.001
# Of a deleted record: its holder has not renewed it for so long, and no holder works on for longer without a renewal.
# A record may have claimed years.
LONGEST_SECONDS = 300.0
_QUIET_PERIODS = 2


class LeaseLost(Exception):
    """We may no longer write: somebody else may be leading."""


@dataclass(frozen=True, slots=True)
class LeaseTiming:
    duration: float = 15.0
    renew_deadline: float = 10.0
    retry_period: float = 2.0

    def __post_init__(self) -> None:
        if not 0 < self.retry_period < self.renew_deadline < self.duration:
            raise ValueError(
                "lease timing: 0 < retry_period < renew_deadline < duration must hold, got "
                f"{self.retry_period}, {self.renew_deadline}, {self.duration}"
            )

    @property
    def seconds(self) -> int:
        """As the record says it: whole seconds, never less than meant."""
        return math.ceil(self.duration)


@dataclass(slots=True)
class _Sighting:
    """A record of somebody else, and when we first saw it unchanged since."""

    revision: str = ""
    since: float = 0.0
    duration: float = 0.0


@dataclass(frozen=True, slots=True)
class _Reading:
    """The record as we last read or wrote it, and when that request was sent."""

    revision: str
    transitions: int
    asked: float


class Lease:
    """One Lease object and our part in it: `hold` until it is ours, `keep` until it no longer is (LeaseLost).

    `together`: several processes hold it under one identity. A renewal by any of them is one of all: they would only
    run into each other's conflicts, the more so the slower the server is.
    """

    def __init__(
        self,
        client: Client,
        key: Key,
        identity: str,
        *,
        timing: LeaseTiming | None = None,
        clock: Clock | None = None,
        annotations: dict[str, str] | None = None,
        labels: dict[str, str] | None = None,
        together: bool = False,
    ) -> None:
        self.key = key
        self.identity = identity
        self.timing = timing or LeaseTiming()
        self.annotations = annotations or {}
        self.transitions = 0  # the fencing token: grows with every change of hands
        self._labels = labels or {}
        self._client = client
        self._clock = clock or SystemClock()
        self._seen = _Sighting()
        self._together = together
        self._read: _Reading | None = None
        self._record: Unstructured | None = None  # as we last wrote it, if nobody else writes it
        self._renewed: float | None = None  # when our last successful renewal was *sent*
        self._holder = ""  # whom we wait for
        self._one = asyncio.Lock()  # our own attempts must not race each other

    @property
    def left(self) -> float:
        """Seconds for which it is surely ours."""
        if self._renewed is None:
            return 0.0
        return max(0.0, self._renewed + self.timing.renew_deadline - self._clock.monotonic())

    @property
    def held(self) -> bool:
        return self.left > 0

    @property
    def waits(self) -> dict[Key, str]:
        """While another process holds it: by whom, and what to do about that."""
        return {self.key: explain_wait(self.key, self._holder)} if self._holder else {}

    @property
    def stale(self) -> dict[Key, str]:
        """As `waits`, if the holder has stopped to renew it and it does not expire nevertheless: its duration is too
        long."""
        quiet = self._clock.monotonic() - self._seen.since
        return self.waits if self._seen.revision and quiet > _QUIET_PERIODS * self.timing.duration else {}

    def fence(self) -> float:
        """Called before every write: refuses once the lease may have passed to somebody else."""
        left = self.left
        if left <= 0:
            raise LeaseLost(f"lease {self.key} is no longer held by {self.identity}: not writing")
        return left

    async def hold(self) -> None:
        """Waits until this process holds the lease, for the first time or again."""
        self._renewed = self._read = self._record = None
        self._holder = ""
        while not await self._attempt(self.timing.renew_deadline / 2):  # noqa: ASYNC110
            # A poll by nature (the holder may be dead), spread so that candidates do not march in step.
            await asyncio.sleep(self.timing.retry_period * random.uniform(1.0, 1.2))  # noqa: S311
        self._holder = ""
        log.info("leading", lease=str(self.key), identity=self.identity, transitions=self.transitions)

    async def look(self) -> None:
        """For one who does not want it yet: a holder that is dead by then need not be waited for once more."""
        try:
            lease = await self._client.get(LEASE, self.key)
        except ApiError:
            return
        if (lease.get("spec") or {}).get("holderIdentity") != self.identity:
            self._expired(lease, self._clock.monotonic())

    async def keep(self) -> None:
        """Renews until that fails for too long; raises LeaseLost the moment it is no longer surely ours."""
        renewed = True
        while True:
            # Several may renew one lease together: whoever was too late tries again soon, and not in step with others.
            # The same holds for one whose renewal counts from long ago, because the server is slow.
            soon = not renewed or self.left < self.timing.renew_deadline - 2 * self.timing.retry_period
            wait = self.timing.retry_period * (random.uniform(0.05, 0.5) if soon else 1.0)  # noqa: S311
            # Not less than a tick: the loop's clock and ours may differ by less than either can tell.
            await asyncio.sleep(max(_TICK, min(wait, self.left)))
            renewed = await self.renew(write=not self._together)
            if not renewed and not self.held:
                log.error("lease lost", lease=str(self.key), identity=self.identity)
                raise LeaseLost(f"lease {self.key} could not be renewed within {self.timing.renew_deadline} s")

    async def renew(self, *, write: bool = True) -> bool:
        """Renews now, with the annotations as they are. Never after it lapsed.

        `write` False: a renewal by another process under the same identity is enough.
        """
        left = self.left
        return left > 0 and await self._attempt(min(left, self.timing.renew_deadline / 2), write=write)

    async def release(self, unless: Callable[[], Awaitable[bool]] | None = None) -> None:
        """Gives it up at once, so that the next one need not wait. We write nothing from here on.

        `unless` is asked whether somebody else goes on under the same identity: then the record stays as it is. Whoever
        renews it between the question and our write makes that write fail.
        """
        left, self._renewed = self.left, None
        if left <= 0:
            return
        try:
            async with asyncio.timeout(left), self._one:
                lease = await self._client.get(LEASE, self.key)
                if lease["spec"].get("holderIdentity") == self.identity and not (unless and await unless()):
                    lease["spec"].update(holderIdentity="", leaseDurationSeconds=1, renewTime=self._now())
                    await self._client.replace(lease, _WRITE, kind=LEASE)
        except (ApiError, TimeoutError) as error:
            log.info("lease not released; it will expire", lease=str(self.key), error=str(error) or "timed out")

    async def _attempt(self, seconds: float, *, write: bool = True) -> bool:
        """True: it is ours, counted from before it was renewed."""
        renewing = self._renewed is not None
        try:
            # A request that hangs must not outlive what it is to renew.
            async with asyncio.timeout(seconds), self._one:
                since = await self._take(renewing, write)
        except (ApiError, TimeoutError) as error:
            tell = log.debug if isinstance(error, Conflict) else log.warning  # candidates lose races all the time
            tell("lease not renewed", lease=str(self.key), error=str(error) or "timed out")
            return False
        if renewing and not self.held:
            return False  # it lapsed while we asked, or was released: too late, whatever the answer
        self._renewed = since
        return since is not None

    async def _take(self, renewing: bool, write: bool) -> float | None:
        """Since when it is ours; None: it is not."""
        asked = self._clock.monotonic()
        if renewing and await self._rewrite():
            return asked
        try:
            lease = await self._client.get(LEASE, self.key)
        except NotFound:
            # The record was deleted, but its holder may not know that yet.
            if not renewing and self._seen.revision and not self._outlived(asked, LONGEST_SECONDS):
                return None
            return asked if await self._create() else None
        spec = lease.setdefault("spec", {})
        ours = spec.get("holderIdentity") == self.identity
        if not ours and (renewing or not self._expired(lease, asked)):
            self._tell_holder(str(spec.get("holderIdentity")))
            return None
        before, self._read = self._read, _reading(lease, asked)
        if ours and renewing and not write and before is not None and _is_renewed(before, self._read):
            return before.asked  # nobody else takes it for a full duration from then on
        if not ours:
            spec["leaseTransitions"] = int(spec.get("leaseTransitions") or 0) + 1
            spec["acquireTime"] = self._now()
        self._fill(lease)
        try:
            written = await self._client.replace(lease, _WRITE, kind=LEASE)
        except Conflict:  # the record changed meanwhile: the next attempt reads it again
            if self._together and ours and await self._renewed_by_others(self._read):
                return asked
            raise
        self._read = _reading(written, asked)
        self.transitions = self._read.transitions
        self._record = None if self._together else written
        return asked

    def _tell_holder(self, holder: str) -> None:
        if holder != self._holder:
            log.info("waiting for the lease", lease=str(self.key), identity=self.identity, holder=holder)
        self._holder = holder

    async def _rewrite(self) -> bool:
        """One request instead of two: the record that we wrote last, if it is still the same on the server."""
        known, self._record = self._record, None
        if known is None:
            return False
        self._fill(known)
        try:
            self._record = await self._client.replace(known, _WRITE, kind=LEASE)
        except (Conflict, NotFound):
            return False
        return True

    async def _renewed_by_others(self, before: _Reading) -> bool:
        asked = self._clock.monotonic()
        lease = await self._client.get(LEASE, self.key)
        if (lease.get("spec") or {}).get("holderIdentity") != self.identity:
            return False
        self._read = _reading(lease, asked)
        return _is_renewed(before, self._read)

    async def _create(self) -> bool:
        lease: dict[str, Any] = {
            **LEASE.type_meta,
            "metadata": {"name": self.key.name, "namespace": self.key.namespace},
            "spec": {"leaseTransitions": 0, "acquireTime": self._now()},
        }
        self._fill(Unstructured(lease))
        try:
            await self._client.create(lease, _WRITE, kind=LEASE)
        except AlreadyExists:
            return False
        self.transitions = 0
        return True

    def _fill(self, lease: Unstructured) -> None:
        spec = lease["spec"]
        spec["holderIdentity"] = self.identity
        spec["leaseDurationSeconds"] = self.timing.seconds
        spec["renewTime"] = self._now()
        if self.annotations:
            lease.metadata.setdefault("annotations", {}).update(self.annotations)
        if self._labels:
            lease.metadata.setdefault("labels", {}).update(self._labels)

    def _expired(self, lease: Unstructured, asked: float) -> bool:
        if not lease["spec"].get("holderIdentity"):
            return True
        if lease.resource_version != self._seen.revision:
            duration = float(lease["spec"].get("leaseDurationSeconds") or self.timing.duration)
            self._seen = _Sighting(lease.resource_version, self._clock.monotonic(), duration)
            return False
        return self._outlived(asked)

    def _outlived(self, asked: float, longest: float = math.inf) -> bool:
        """`asked`: when the lease was requested. The response shows the state at that time, not the current one."""
        return asked - self._seen.since > min(self._seen.duration, longest)

    def _now(self) -> str:
        return rfc3339_micro(self._clock.now())


def explain_wait(key: Key, holder: str) -> str:
    return (
        f"held by {holder}: these controllers start when it is released or expires. Stop the controllers that hold it; "
        f"if none of them runs, delete it with 'kubectl delete lease -n {key.namespace} {key.name}'"
    )


def _is_renewed(before: _Reading, now: _Reading) -> bool:
    """Of two readings with our identity as the holder: another process under it has written in between."""
    return before.revision != now.revision and before.transitions == now.transitions


def _reading(lease: Unstructured, asked: float) -> _Reading:
    return _Reading(lease.resource_version, int(lease["spec"].get("leaseTransitions") or 0), asked)
