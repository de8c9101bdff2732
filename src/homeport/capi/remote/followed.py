"""One kind of a workload cluster, followed by a watch or, while nobody needs to know at once, by a list now and then.

A watch needs a connection of its own. At rest it ends, and the kind is listed on the connection of the watch of Nodes,
which is free for a moment whenever that watch is renewed.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Coroutine
from contextvars import Context
from typing import Any

import structlog

from homeport.api.meta import Unstructured
from homeport.client.protocol import Client, Key
from homeport.runtime.informer import Informer

Spawn = Callable[[Coroutine[Any, Any, None], str], "asyncio.Task[None]"]

SETTLED_SECONDS = 20.0  # nobody needed to know at once for so long: the watch ends
LOOK_TIMEOUT = 5.0
LOOK_SECONDS = 35.0  # the least between two lists: with every second renewal of the watch of Nodes
_LEAST_SECONDS = 0.001
FORGOTTEN_SECONDS = 120.0  # nobody called `rest` for so long: the watch of Nodes is not renewed as it should be


class Followed:
    def __init__(self, cluster: Key, informer: Informer[Unstructured], spawn: Spawn) -> None:
        self.informer = informer
        self._cluster = cluster
        self._spawn = spawn
        self._watching: asyncio.Task[None] | None = None
        self.resting = False  # neither this nor watching: there is no connection
        self._idle_since: float | None = None  # by the loop's clock; None: changes must be known at once
        self._looked = 0.0
        self._every = LOOK_SECONDS
        self._rested = 0.0
        self._forgotten: asyncio.TimerHandle | None = None
        # A list that is under way would put the cache back behind a watch that begins meanwhile.
        self._turn = asyncio.Lock()

    def use(self, client: Client) -> None:
        self.informer.use(client)
        self.start()

    def start(self, *, anew: bool = False) -> None:
        self._end()
        name = f"{self._cluster}: informer {self.informer.resource.qualified}"
        self._watching = self._spawn(self._watch(anew), name)

    def stop(self) -> None:
        self._end()
        self.informer.reset()

    def attend(self, closely: bool, every: float) -> None:
        """Whether changes must be known at once. If not, and for a while, lists `every` seconds apart are enough."""
        self._every = every
        if closely:
            self._idle_since = None
            self.wake()
        elif self._idle_since is None:
            self._idle_since = _now()

    def wake(self) -> None:
        """Watches again, if it was at rest. It begins with a list: a watch that goes on does not tell when it has got
        from what was known at rest to what there is."""
        if self.resting:
            self.informer.relist()
            self.start(anew=True)

    @property
    def is_behind(self) -> bool:
        """At rest, or not at rest for so short a time that nothing is known of what happened meanwhile."""
        return self.resting or not self.informer.listed.is_set()

    async def freshen(self, max_age: float) -> None:
        """Lists if it is at rest and the last list is older. If it has just begun to watch, waits for what there is.
        Raises ApiError."""
        await self._look(max_age)
        if not self.resting and max_age < math.inf:
            await self.informer.listed.wait()

    async def rest(self) -> None:
        """Called regularly, while a connection is free."""
        if self.resting:
            self._expect_rest()
            try:
                async with asyncio.timeout(LOOK_TIMEOUT):
                    await self._look(self._every)
            except Exception:
                self.wake()  # the watch reports what is wrong, and tries again
        elif self._is_settled():
            self._end()
            self.resting, self._looked = True, _now()
            self._expect_rest()

    async def _look(self, max_age: float) -> None:
        if not self._is_older(max_age):
            return
        async with self._turn:
            if self._is_older(max_age):  # not listed by somebody else meanwhile
                began = _now()
                await self.informer.look()
                self._looked = began

    def _expect_rest(self) -> None:
        self._rested = _now()
        if self._forgotten is None:
            self._expect_later(FORGOTTEN_SECONDS)

    def _expect_later(self, seconds: float) -> None:
        self._forgotten = asyncio.get_running_loop().call_later(seconds, self._check_rest, context=Context())

    def _check_rest(self) -> None:
        """The timer is not set anew each time: only once in a while it is looked at how long ago that was."""
        left = self._rested + FORGOTTEN_SECONDS - _now()
        if left > _LEAST_SECONDS:
            self._expect_later(left)
        else:
            self._forgotten = None
            self.wake()

    def _is_settled(self) -> bool:
        current = self._watching is not None and self.informer.synced.is_set() and not self.informer.error
        return current and self._idle_since is not None and _now() - self._idle_since >= SETTLED_SECONDS

    def _is_older(self, max_age: float) -> bool:
        return self.resting and _now() - self._looked >= max_age

    def _end(self) -> None:
        self.resting = False
        if self._forgotten is not None:
            self._forgotten.cancel()
            self._forgotten = None
        if self._watching is not None:
            self._watching.cancel()
            self._watching = None

    async def _watch(self, anew: bool) -> None:
        with structlog.contextvars.bound_contextvars(cluster=str(self._cluster)):
            async with self._turn:
                if anew:  # a list that was under way, perhaps for longer than somebody waits for news, does not count
                    self.informer.relist()
                await self.informer.run()


def _now() -> float:
    return asyncio.get_running_loop().time()
