"""Clients that controllers have in place of their own: one that dies after some writes, and one whose watches are late."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from homeport.apiserver.local import LocalClient
from homeport.client.errors import Unavailable
from homeport.client.protocol import ALL, Client, Event, Query
from homeport.runtime.event import EVENT, NEW

WRITES = ("create", "replace", "patch", "apply", "delete", "delete_all")


class Mortal:
    """The process behind it is killed right after its `life`th write: nothing that it does later reaches anybody."""

    def __init__(self, inner: Client, life: int, killer: Killer) -> None:
        self._inner = inner
        self._left = life
        self._killer = killer
        for name in WRITES:
            setattr(self, name, self._counted(getattr(inner, name)))

    def _counted(self, send: Callable[..., Any]) -> Callable[..., Any]:
        async def write(*args: Any, **kwargs: Any) -> Any:
            self._check()
            before = self._killer.revision()
            made = await send(*args, **kwargs)
            self._check()
            # Neither what changed nothing nor what is only told to people.
            if self._killer.revision() != before and kwargs.get("kind") not in (EVENT, NEW):
                self._left -= 1
                if self._left == 0:
                    self._killer.kill()
                    self._check()
            return made

        return write

    def _check(self) -> None:
        if self._left == 0:
            raise Unavailable("this process was killed")

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)


class Killer:
    """Makes the clients, and says when one has died. `lives` gives the number of writes of the next life; 0: no end."""

    def __init__(self, lives: Callable[[], int]) -> None:
        self.kills = 0
        self.revision: Callable[[], int] = lambda: 0  # of the store
        self._lives = lives
        self._death = asyncio.Event()

    def wrap(self, client: Client) -> Any:
        assert isinstance(client, LocalClient)
        self.revision = lambda: client._registry.store.revision
        self._death.clear()
        life = self._lives()
        return Mortal(client, life, self) if life else client

    def kill(self) -> None:
        self.kills += 1
        self._death.set()

    async def death(self, within: float) -> bool:
        """Whether it came in time."""
        try:
            async with asyncio.timeout(within):
                await self._death.wait()
        except TimeoutError:
            return False
        return True


class Line:
    """May be cut: then nothing is answered any more, neither reads nor writes."""

    def __init__(self, inner: Client) -> None:
        self._inner = inner
        self.cut = False

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._inner, name)
        if name not in (*WRITES, "get", "list"):
            return found

        async def call(*args: Any, **kwargs: Any) -> Any:
            if self.cut:
                raise Unavailable("the line is cut")
            return await found(*args, **kwargs)

        return call


class Late:
    """Watches tell of everything, in order, but late: by another time for each kind and event."""

    def __init__(self, inner: Client, rng: random.Random, most: float) -> None:
        self._inner = inner
        self._rng = rng
        self._most = most
        self._usual: dict[Any, float] = {}

    def _delay(self, kind: Any) -> float:
        usual = self._usual.setdefault(kind, self._rng.uniform(0, self._most))
        return self._rng.choice((0.0, self._rng.uniform(0, usual), usual))

    @asynccontextmanager
    async def watch(
        self, kind: Any, query: Query = ALL, *, initial_events: bool = False, timeout: float | None = None
    ) -> AsyncIterator[AsyncIterator[Event[Any]]]:
        waiting: asyncio.Queue[tuple[float, Event[Any] | BaseException | None]] = asyncio.Queue()
        loop = asyncio.get_running_loop()

        async def read(events: AsyncIterator[Event[Any]]) -> None:
            told = not initial_events
            try:
                async for event in events:
                    waiting.put_nowait((loop.time() + (self._delay(kind) if told else 0.0), event))
                    told = told or event.initial_events_end
                waiting.put_nowait((0.0, None))
            except Exception as error:
                waiting.put_nowait((0.0, error))

        async def late() -> AsyncIterator[Event[Any]]:
            while True:
                due, event = await waiting.get()
                await asyncio.sleep(max(0.0, due - loop.time()))
                if event is None:
                    return
                if isinstance(event, BaseException):
                    raise event
                yield event

        async with self._inner.watch(kind, query, initial_events=initial_events, timeout=timeout) as events:
            reader = asyncio.create_task(read(events), name="a late watch")
            try:
                yield late()
            finally:
                reader.cancel()
                await asyncio.wait({reader})

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)
