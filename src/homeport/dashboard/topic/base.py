"""A subscription: listens to feeds, and sends what changed, at most a few times a second and never faster than the
browser reads."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Awaitable, Callable, Iterable
from typing import Any

from homeport.api.cluster.v1beta2 import Cluster
from homeport.api.meta import Resource, Unstructured
from homeport.client.protocol import Key
from homeport.dashboard.feed import Feed
from homeport.dashboard.person import Person
from homeport.dashboard.right import Held
from homeport.runtime.permission import Need

Send = Callable[[dict[str, Any]], Awaitable[None]]
MOMENT_SECONDS = 0.01  # one deed often changes several objects
GATHER_SECONDS = 0.1
REST_SHARE = 3.0  # what took a second is not done again within three: the plane has other work
MOST_REST_SECONDS = 5.0


def pause(quiet: float, gather: float, rest: float) -> float:
    """Seconds until a change is sent: at once after a `quiet` time, gathered with others soon after the last message,
    and not before the `rest` is over."""
    return max(MOMENT_SECONDS, gather - quiet, rest)


class TopicError(Exception):
    """The subscription is not possible; the text says why."""


class Topic:
    """`run` sends until it is cancelled."""

    gather_seconds = GATHER_SECONDS
    took = 0.0  # seconds of processor time for the last message, where a topic knows better than the clock

    def __init__(self, person: Person, send: Send) -> None:
        self.person = person
        self.send = send
        self._dirty = asyncio.Event()
        self._sent = -math.inf  # when, by the monotonic clock
        self._rests_until = 0.0
        self._held: list[tuple[Feed, Callable[[Key, Unstructured | None], None]]] = []
        self._rights: list[Held] = []
        self._outdated = False  # it follows what it would not follow now

    def follow(self, resource: Resource, namespace: str) -> Feed:
        """Raises TooMany."""

        def changed(key: Key, obj: Unstructured | None) -> None:
            self.changed(resource, key, obj)
            self._dirty.set()

        feed = self.person.listen(resource, namespace, changed)
        self._held.append((feed, changed))
        return feed

    async def widest(self, namespace: str) -> str:
        """'' if the user may watch Clusters everywhere, otherwise `namespace`. When that changes, everything is
        followed again from the start. Raises ApiError."""
        if not namespace:
            return ""
        everywhere = await self.person.may("watch", Cluster.__resource__)

        def told(allowed: bool) -> None:
            if allowed is not everywhere:
                self._outdated = True
                self._dirty.set()

        self._rights.append(self.person.rights.hold(Need(("watch",), Cluster.__resource__), told))
        return "" if everywhere else namespace

    def changed(self, resource: Resource, key: Key, obj: Unstructured | None) -> None:
        """For topics that send changes rather than the whole."""

    def wake(self) -> None:
        self._dirty.set()

    async def prepare(self) -> None:
        """Follows what it needs, and waits for it. Raises TopicError, TooMany or ApiError."""

    async def message(self) -> Iterable[dict[str, Any]]:
        """What to send now."""
        raise NotImplementedError

    async def run(self) -> None:
        try:
            await self.prepare()
            self._dirty.set()
            while True:
                await self._dirty.wait()
                now = time.monotonic()
                await asyncio.sleep(pause(now - self._sent, self.gather_seconds, self._rests_until - now))
                self._dirty.clear()
                if self._outdated:
                    self.close()
                    await self.prepare()
                begun = time.monotonic()
                messages = await self.message()
                now = self._sent = time.monotonic()
                self._rests_until = now + min(MOST_REST_SECONDS, REST_SHARE * (self.took or now - begun))
                for each in messages:
                    await self.send(each)
                    await asyncio.sleep(0)  # a message may be made only when it is asked for: others have their turn
        finally:
            self.close()

    def close(self) -> None:
        """Leaves what it follows."""
        for right in self._rights:
            self.person.rights.drop(right)
        for feed, changed in self._held:
            self.person.leave(feed, changed)
        self._rights, self._held, self._outdated = [], [], False

    @property
    def problems(self) -> list[str]:
        return sorted({feed.problem for feed, _ in self._held if feed.problem})

    async def find(self, group: str, plural: str) -> Resource:
        """Raises TopicError."""
        for fresh in (False, True):
            for each in await self.person.kinds(fresh=fresh):
                if (each.group, each.plural) == (group, plural):
                    return each
        raise TopicError(f"the API server has no {plural}{'.' + group if group else ''}")
