"""Several replicas share the work: each shard (for example a cluster with everything of it) belongs to one of them.

Every member keeps a Lease of its own. A member whose Lease has not changed for its duration is dead. The first of the
live members publishes a table of who works on what (an annotation of the Lease that all renew). Members learn of a new
table at different moments, so a shard moves in two steps: the loser lets go at once, finishes what it has in work and
then publishes which table it acts on (an annotation of its own Lease); a winner takes shards only when every live
member, itself included, has published the same table. No member works on a shard that another may still be working
on: what was let go comes back only by such an agreement. A member is dead somewhat before its lease's full duration
but well after it has stopped itself, and while something is amiss every member looks more often: its shards are with
others within one lease duration. A member whose Lease was deleted may not know that yet: it counts as alive until it
would be dead with the Lease as it was, and mostly creates it again before that.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable, Iterable

import structlog

from homeport.api.meta import Unstructured
from homeport.client.errors import ApiError, NotFound
from homeport.client.protocol import Client, Key, Query, Write
from homeport.runtime.clock import Clock, SystemClock
from homeport.runtime.lease import LEASE, LONGEST_SECONDS, Lease, LeaseLost, LeaseTiming
from homeport.runtime.sharetable import Table, bucket_of, heaviest, is_even, parse_table, plan_table, weights_of

log = structlog.get_logger(__name__)

GROUP_LABEL = "runtime.homeport.dev/shard-group"
VIEW_ANNOTATION = "runtime.homeport.dev/shard-view"
TABLE_ANNOTATION = "runtime.homeport.dev/shard-table"

Members = tuple[str, ...]
Gained = Callable[[str], bool]  # whether a shard has become ours

_WRITE = Write(field_manager="homeport-lease")
_CALM_SECONDS = 20.0  # between two tables that only make shares even

# The holder of the Lease that replicas without shards compete for, while replicas with shards work: all of these renew
# it together, under this one name. So there is never one that works on everything beside some that share.
TOGETHER = "shards"


class Shards:
    """Membership of one replica. `mine(shard)` decides; `lost` and `won` are called as shards go and come.

    `loads` returns the shards that have work, for even shares.
    """

    def __init__(
        self,
        client: Client,
        namespace: str,
        group: str,
        identity: str,
        *,
        lost: Callable[[], Awaitable[None]],
        won: Callable[[Gained], None],
        loads: Callable[[], Iterable[str]] = tuple,
        timing: LeaseTiming | None = None,
        clock: Clock | None = None,
    ) -> None:
        self._client = client
        self._namespace = namespace
        self._group = group
        self._identity = identity
        self._lost = lost
        self._won = won
        self._loads = loads
        self._clock = clock or SystemClock()
        self._seen: dict[str, tuple[str, float]] = {}  # lease name > resourceVersion, since when
        self._known: dict[str, Unstructured] = {}  # the same leases, those included that were deleted a moment ago
        self._met: set[str] = set()  # names of all leases that we ever saw
        self._unmet: dict[str, float] = {}  # members of a table whose leases we never saw, since when
        self._gone: frozenset[str] = frozenset()  # members whose leases were deleted a moment ago
        self._next: Table | None = None  # the newest table we know of
        self._active: Table | None = None  # the one that all members act on
        self._held: frozenset[int] = frozenset()  # buckets that no other member works on
        self._checked: float | None = None  # when we last looked whether the shares are even
        self._weighed = 0.0  # how much work there was then
        self._live_members: Members = ()
        self._late = False  # a member has missed renewals
        self.lease = Lease(
            client,
            Key(namespace, f"{group}-{identity}"),
            identity,
            timing=timing,
            clock=clock,
            labels={GROUP_LABEL: group},
        )
        self._mode = Lease(client, Key(namespace, group), TOGETHER, timing=timing, clock=clock, together=True)
        timing = self.lease.timing
        self._death = timing.renew_deadline + (timing.duration - timing.renew_deadline) / 4

    @property
    def members(self) -> Members:
        return self._active.members if self._active is not None else ()

    @property
    def table(self) -> Table | None:
        """The table that all members act on."""
        return self._active

    @property
    def agreed(self) -> bool:
        """All members act on the same table."""
        return self._next is not None and self._active == self._next

    @property
    def stale(self) -> dict[Key, str]:
        """The Lease of all members, while another process holds it that has stopped to renew it."""
        return self._mode.stale

    def mine(self, shard: str) -> bool:
        return bucket_of(shard) in self._held and self.lease.held and self._mode.held

    def fence(self) -> float:
        """As that of a Lease: seconds for which this replica may surely write. Raises LeaseLost."""
        return min(self._mode.fence(), self.lease.fence())

    async def look(self) -> None:
        """For one who does not want to be a member yet."""
        await self._mode.look()

    async def join(self) -> None:
        """Becomes a member; keys come once all have agreed. Waits while a replica without shards works."""
        self._forget()
        for known in (self._seen, self._known, self._met, self._unmet):
            known.clear()
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
        self._forget()
        await self.lease.release()
        await self._mode.release(unless=self._others)

    def _forget(self) -> None:
        self._next = self._active = None
        self._held = frozenset()

    async def _others(self) -> bool:
        return any(lease["spec"]["holderIdentity"] != self._identity for lease in await self._live())

    async def _follow(self) -> None:
        period = self.lease.timing.retry_period
        while True:
            try:
                await self._look()
            except ApiError as error:
                log.warning("membership unknown", group=self._group, error=str(error))
            await asyncio.sleep(period / self._looks_per_period())

    def _looks_per_period(self) -> int:
        """Shards that move belong to no member: then each step of the agreement counts."""
        if not self.agreed or self._live_members != self.members:
            return 20
        return 8 if self._late else 2

    async def _look(self) -> None:
        live = await self._live()
        self._live_members = _members(live)
        table = await self._current_table(self._live_members)
        if table is not None and table != self._next and self._gone <= set(table.members):
            await self._adopt(table)
            live = await self._live()
        if self._next is None or self._active == self._next:
            return
        # One that has no Lease at the moment has not let go of anything that we know of.
        present = set(self._next.members) <= set(_members(live))
        if present and all(_view(lease) == self._next.digest for lease in live):
            self._active = self._next
            kept, self._held = self._held, self._next.buckets(self._identity)
            gained = self._held - kept
            log.info("shards agreed", group=self._group, members=list(self._next.members), buckets=len(self._held))
            self._won(lambda shard: bucket_of(shard) in gained)

    async def _current_table(self, members: Members) -> Table | None:
        """The published one. The first member publishes a new one when members or their work have changed."""
        if self._identity not in members:
            raise LeaseLost(f"lease {self.lease.key} no longer exists")
        try:
            lease = await self._client.get(LEASE, self._mode.key)
        except NotFound:
            return None  # whoever renews it creates it
        known = parse_table(_annotation(lease, TABLE_ANNOTATION))
        first = members[0] == self._identity and not self._awaits_unmet(known)
        made = self._better_table(known, members) if first else None
        if made is None:
            return known
        lease.metadata.setdefault("annotations", {})[TABLE_ANNOTATION] = made.encode()
        await self._client.replace(lease, _WRITE, kind=LEASE)  # a Conflict means: at the next look
        log.info("shards assigned", group=self._group, members=list(made.members), epoch=made.epoch)
        return made

    def _awaits_unmet(self, known: Table | None) -> bool:
        """Whether a member that works by this table may still work, though it has no Lease."""
        now = self._clock.monotonic()
        for member in known.members if known is not None else ():
            if f"{self._group}-{member}" not in self._met and now - self._unmet.setdefault(member, now) <= self._death:
                return True
        return False

    def _better_table(self, known: Table | None, members: Members) -> Table | None:
        """For other members, or for shares that are not even. None: the known one stays."""
        if known is None or known.members != members:
            return plan_table(known or self._next, members, weights_of(self._loads()))
        now = self._clock.monotonic()
        if not self.agreed or (self._checked is not None and now - self._checked < _CALM_SECONDS):
            return None
        self._checked = now
        weights = weights_of(self._loads())
        settled, self._weighed = sum(weights) == self._weighed, sum(weights)
        if is_even(known, weights, settled=settled):
            return None
        made = plan_table(known, members, weights)
        return made if heaviest(known, weights) - heaviest(made, weights) >= 1.0 else None

    async def _live(self) -> list[Unstructured]:
        query = Query(namespace=self._namespace, labels=f"{GROUP_LABEL}={self._group}")
        asked = self._clock.monotonic()
        leases = (await self._client.list(LEASE, query)).items
        there = {lease.name: lease for lease in leases}
        deleted = {name: lease for name, lease in self._known.items() if name not in there}
        self._seen = {name: self._sighting(lease) for name, lease in (there | deleted).items()}
        self._late = False
        gone = {name: lease for name, lease in deleted.items() if self._alive(lease, asked, LONGEST_SECONDS)}
        self._known = there | gone
        self._met |= there.keys()
        self._gone = frozenset(_members(gone.values()))
        return [*(lease for lease in leases if self._alive(lease, asked)), *gone.values()]

    def _sighting(self, lease: Unstructured) -> tuple[str, float]:
        known = self._seen.get(lease.name)
        if known is not None and known[0] == lease.resource_version:
            return known
        return lease.resource_version, self._clock.monotonic()

    def _alive(self, lease: Unstructured, asked: float, longest: float = math.inf) -> bool:
        """`asked`: when the list was requested. It shows the state at that time, not the current one."""
        spec = lease.get("spec") or {}
        if not spec.get("holderIdentity"):
            return False
        quiet = asked - self._seen[lease.name][1]
        told = int(spec.get("leaseDurationSeconds") or self.lease.timing.seconds)
        # A member with other timings than ours stops itself at a moment we don't know: it gets all of its lease.
        alive = quiet <= (self._death if told == self.lease.timing.seconds else min(told, longest))
        if alive and quiet > 2 * self.lease.timing.retry_period:
            self._late = True
        return alive

    async def _adopt(self, table: Table) -> None:
        self._next = table
        self._held &= table.buckets(self._identity)
        log.info("shards move", group=self._group, members=list(table.members), kept=len(self._held))
        await self._lost()
        self.lease.annotations[VIEW_ANNOTATION] = table.digest
        await self.lease.renew()


def _members(live: Iterable[Unstructured]) -> Members:
    return tuple(sorted(str(lease["spec"]["holderIdentity"]) for lease in live))


def _annotation(lease: Unstructured, name: str) -> str:
    return str((lease.metadata.get("annotations") or {}).get(name, ""))


def _view(lease: Unstructured) -> str:
    return _annotation(lease, VIEW_ANNOTATION)
