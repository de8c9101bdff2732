"""Several replicas share the keys of their controllers: each key belongs to one of them, by rendezvous hashing.

Every member keeps a Lease of its own. Whose lease has not changed for its duration is dead. Members may learn of a
change at different moments, so a key changes hands in two steps: the loser lets go at once, finishes what it has in
work and then publishes the membership it acts on (an annotation of its Lease); a winner takes keys only when every
live member, itself included, has published the same membership. Nobody works on a key that another may still be
working on. A member is dead somewhat before its lease's full duration but well after it has stopped itself, and while
something is amiss everybody looks more often: its keys are in other hands within one lease duration.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Awaitable, Callable, Sequence

import structlog

from homeport.api.meta import Unstructured
from homeport.client.errors import ApiError
from homeport.client.protocol import Client, Key, Query
from homeport.runtime.clock import Clock, SystemClock
from homeport.runtime.lease import LEASE, Lease, LeaseLost, LeaseTiming

log = structlog.get_logger(__name__)

GROUP_LABEL = "runtime.homeport.dev/shard-group"
VIEW_ANNOTATION = "runtime.homeport.dev/shard-view"

Members = tuple[str, ...]

# The holder of the Lease that replicas without shards compete for, while replicas with shards work: all of these renew
# it together, under this one name. So there is never one that works on everything beside some that share.
TOGETHER = "shards"


def owner(key: str, members: Sequence[str]) -> str:
    """The member a key belongs to: adding or removing one moves only its own share."""
    return max(members, key=lambda member: hashlib.blake2b(f"{member}\0{key}".encode(), digest_size=8).digest())


class Shards:
    """Membership of one replica. `mine(key)` decides; `lost` and `won` are called as keys go and come."""

    def __init__(
        self,
        client: Client,
        namespace: str,
        group: str,
        identity: str,
        *,
        lost: Callable[[], Awaitable[None]],
        won: Callable[[], None],
        timing: LeaseTiming | None = None,
        clock: Clock | None = None,
    ) -> None:
        self._client = client
        self._namespace = namespace
        self._group = group
        self._identity = identity
        self._lost = lost
        self._won = won
        self._clock = clock or SystemClock()
        self._seen: dict[str, tuple[str, float]] = {}  # lease name > resourceVersion, since when
        self._next: Members = ()  # the membership we know of
        self._active: Members = ()  # the one that everybody acts on
        self._late = False  # a member has missed renewals
        self.lease = Lease(
            client,
            Key(namespace, f"{group}-{identity}"),
            identity,
            timing=timing,
            clock=clock,
            labels={GROUP_LABEL: group},
        )
        self._mode = Lease(client, Key(namespace, group), TOGETHER, timing=timing, clock=clock)
        timing = self.lease.timing
        self._death = timing.renew_deadline + (timing.duration - timing.renew_deadline) / 4

    @property
    def members(self) -> Members:
        return self._active

    @property
    def agreed(self) -> bool:
        """Everybody acts on the same membership."""
        return bool(self._next) and self._active == self._next

    def mine(self, key: str) -> bool:
        if not self._next or not self.lease.held or not self._mode.held or owner(key, self._next) != self._identity:
            return False
        return self._active == self._next or (bool(self._active) and owner(key, self._active) == self._identity)

    def fence(self) -> float:
        """As that of a Lease: seconds for which this replica may surely write. Raises LeaseLost."""
        return min(self._mode.fence(), self.lease.fence())

    async def join(self) -> None:
        """Becomes a member; keys come once all have agreed. Waits while a replica without shards works."""
        self._next = self._active = ()
        self._seen.clear()
        while True:
            await self._mode.hold()
            await self.lease.hold()
            # Once more, now that others can see us: a member that leaves releases it only if it is the last one.
            if await self._mode.renew():
                return

    async def run(self) -> None:
        """Takes part until cancelled; raises LeaseLost when our own lease could not be kept."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self.lease.keep(), name="shard lease")
            group.create_task(self._mode.keep(), name="mode lease")
            group.create_task(self._follow(), name="shard membership")

    async def leave(self) -> None:
        """The others need not wait for our lease to run out. To be called when nothing is in work any more."""
        self._next = self._active = ()
        await self.lease.release()
        await self._mode.release(unless=self._others)

    async def _others(self) -> bool:
        return any(lease["spec"]["holderIdentity"] != self._identity for lease in await self._live())

    async def _follow(self) -> None:
        period = self.lease.timing.retry_period
        while True:
            try:
                await self._look()
            except ApiError as error:
                log.warning("membership unknown", group=self._group, error=str(error))
            calm = self.agreed and not self._late
            await asyncio.sleep(period / 2 if calm else period / 8)

    async def _look(self) -> None:
        live = await self._live()
        members = tuple(sorted(str(lease["spec"]["holderIdentity"]) for lease in live))
        if self._identity not in members:
            raise LeaseLost(f"lease {self.lease.key} no longer exists")
        if members != self._next:
            await self._adopt(members)
            if members == self._active:
                # Somebody came and went before all had agreed on that: what was let go for them is ours again. Whoever
                # it had belonged to meanwhile is no member any more, so that nobody works on it.
                self._won()
            live = await self._live()
            if tuple(sorted(str(lease["spec"]["holderIdentity"]) for lease in live)) != members:
                return  # it goes on changing: the next look adopts that
        if self._active != self._next and all(_view(lease) == _digest(self._next) for lease in live):
            self._active = self._next
            log.info("shards agreed", group=self._group, members=list(self._active))
            self._won()

    async def _live(self) -> list[Unstructured]:
        query = Query(namespace=self._namespace, labels=f"{GROUP_LABEL}={self._group}")
        asked = self._clock.monotonic()
        leases = (await self._client.list(LEASE, query)).items
        self._seen = {lease.name: self._sighting(lease) for lease in leases}
        self._late = False
        return [lease for lease in leases if self._alive(lease, asked)]

    def _sighting(self, lease: Unstructured) -> tuple[str, float]:
        known = self._seen.get(lease.name)
        if known is not None and known[0] == lease.resource_version:
            return known
        return lease.resource_version, self._clock.monotonic()

    def _alive(self, lease: Unstructured, asked: float) -> bool:
        """`asked`: when the list was requested. It shows the state at that time, not the current one."""
        spec = lease.get("spec") or {}
        if not spec.get("holderIdentity"):
            return False
        quiet = asked - self._seen[lease.name][1]
        told = int(spec.get("leaseDurationSeconds") or self.lease.timing.seconds)
        # A member with other timings than ours stops itself at a moment we don't know: it gets all of its lease.
        alive = quiet <= (self._death if told == self.lease.timing.seconds else told)
        if alive and quiet > 2 * self.lease.timing.retry_period:
            self._late = True
        return alive

    async def _adopt(self, members: Members) -> None:
        log.info("membership changed", group=self._group, before=list(self._next), now=list(members))
        self._next = members
        await self._lost()
        self.lease.annotations[VIEW_ANNOTATION] = _digest(members)
        await self.lease.renew()


def _digest(members: Members) -> str:
    return hashlib.blake2b("\0".join(members).encode(), digest_size=8).hexdigest()


def _view(lease: Unstructured) -> str:
    return str((lease.metadata.get("annotations") or {}).get(VIEW_ANNOTATION, ""))
