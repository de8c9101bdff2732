"""Leader election by Lease, as Kubernetes' own components do it, with a fence.

Other machines' clocks are never trusted: a lease is expired when its record has not changed for its duration by our own
monotonic clock. We stop believing in our own lease earlier (`renew_deadline`) than others may take it (`duration`), and
the fence refuses writes from then on: there is a moment without a leader, never one with two.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any

import structlog

from homeport.api.meta import Resource, Unstructured
from homeport.client.errors import AlreadyExists, ApiError, Conflict, NotFound
from homeport.client.protocol import Client, Key, Write
from homeport.runtime.clock import Clock, SystemClock, rfc3339_micro

log = structlog.get_logger(__name__)

LEASE = Resource("coordination.k8s.io", "v1", "Lease", "leases")


class LeaseLost(Exception):
    """We may no longer write: somebody else may be leading."""


@dataclass(frozen=True, slots=True)
class LeaseTiming:
    duration: float = 15.0
    renew_deadline: float = 10.0
    retry_period: float = 2.0

    def __post_init__(self) -> None:
        if not self.retry_period < self.renew_deadline < self.duration:
            raise ValueError(
                "lease timing: retry_period < renew_deadline < duration must hold, got "
                f"{self.retry_period}, {self.renew_deadline}, {self.duration}"
            )


class Lease:
    """One Lease object and our part in it: `hold` until it is ours, `keep` until it no longer is (LeaseLost)."""

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
    ) -> None:
        self.key = key
        self.identity = identity
        self.timing = timing or LeaseTiming()
        self.annotations = annotations or {}
        self.transitions = 0  # the fencing token: grows with every change of hands
        self._labels = labels or {}
        self._client = client
        self._clock = clock or SystemClock()
        self._seen: tuple[str, float] = ("", 0.0)  # the record's resourceVersion, and when we first saw it
        self._renewed: float | None = None  # when our last successful renewal was *sent*

    @property
    def held(self) -> bool:
        return self._renewed is not None and self._clock.monotonic() - self._renewed < self.timing.renew_deadline

    def fence(self) -> None:
        """Called before every write: refuses once the lease may have passed to somebody else."""
        if not self.held:
            raise LeaseLost(f"lease {self.key} is no longer held by {self.identity}: not writing")

    async def hold(self) -> None:
        """Waits until the lease is ours."""
        while not await self._attempt():  # noqa: ASYNC110  (a poll by nature: the holder may be dead)
            await asyncio.sleep(self.timing.retry_period)
        log.info("leading", lease=str(self.key), identity=self.identity, transitions=self.transitions)

    async def keep(self) -> None:
        """Renews until that fails for too long."""
        while True:
            await asyncio.sleep(self.timing.retry_period)
            await self._attempt()
            if not self.held:
                log.error("lease lost", lease=str(self.key), identity=self.identity)
                raise LeaseLost(f"lease {self.key} could not be renewed within {self.timing.renew_deadline} s")

    async def renew(self) -> bool:
        """Renews now, with the annotations as they are."""
        return await self._attempt()

    async def release(self) -> None:
        """Gives it up at once, so that the next one need not wait."""
        if not self.held:
            return
        try:
            lease = await self._client.get(LEASE, self.key)
            if lease["spec"].get("holderIdentity") == self.identity:
                lease["spec"].update(holderIdentity="", leaseDurationSeconds=1, renewTime=self._now())
                await self._client.replace(lease, Write(field_manager="homeport-lease"), kind=LEASE)
        except ApiError as error:
            log.info("lease not released; it will expire", lease=str(self.key), error=str(error))
        finally:
            self._renewed = None

    async def _attempt(self) -> bool:
        sent = self._clock.monotonic()
        try:
            # A request that hangs must not outlive what it is to renew.
            async with asyncio.timeout(self.timing.renew_deadline / 2):
                won = await self._take()
        except (ApiError, TimeoutError) as error:
            log.info("lease not renewed", lease=str(self.key), error=str(error) or "timed out")
            return False
        if won:
            self._renewed = sent
        else:
            self._renewed = None
        return won

    async def _take(self) -> bool:
        try:
            lease = await self._client.get(LEASE, self.key)
        except NotFound:
            return await self._create()
        spec = lease.setdefault("spec", {})
        ours = spec.get("holderIdentity") == self.identity
        if not ours and not self._expired(lease):
            return False
        if not ours:
            spec["leaseTransitions"] = int(spec.get("leaseTransitions") or 0) + 1
            spec["acquireTime"] = self._now()
        self._fill(lease)
        try:
            written = await self._client.replace(lease, Write(field_manager="homeport-lease"), kind=LEASE)
        except Conflict:
            return False  # somebody was faster; the next look tells who
        self.transitions = int(written["spec"].get("leaseTransitions") or 0)
        return True

    async def _create(self) -> bool:
        lease: dict[str, Any] = {
            "apiVersion": LEASE.api_version,
            "kind": LEASE.kind,
            "metadata": {"name": self.key.name, "namespace": self.key.namespace},
            "spec": {"leaseTransitions": 0, "acquireTime": self._now()},
        }
        self._fill(Unstructured(lease))
        try:
            await self._client.create(lease, Write(field_manager="homeport-lease"), kind=LEASE)
        except AlreadyExists:
            return False
        self.transitions = 0
        return True

    def _fill(self, lease: Unstructured) -> None:
        spec = lease["spec"]
        spec["holderIdentity"] = self.identity
        spec["leaseDurationSeconds"] = max(1, int(self.timing.duration))
        spec["renewTime"] = self._now()
        if self.annotations:
            lease.metadata.setdefault("annotations", {}).update(self.annotations)
        if self._labels:
            lease.metadata.setdefault("labels", {}).update(self._labels)

    def _expired(self, lease: Unstructured) -> bool:
        if not lease["spec"].get("holderIdentity"):
            return True
        now = self._clock.monotonic()
        if lease.resource_version != self._seen[0]:
            self._seen = (lease.resource_version, now)
            return False
        duration = float(lease["spec"].get("leaseDurationSeconds") or self.timing.duration)
        return now - self._seen[1] > duration

    def _now(self) -> str:
        return rfc3339_micro(self._clock.now())
