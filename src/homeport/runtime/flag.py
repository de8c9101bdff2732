"""An asyncio.Event for those that exist by the thousand."""

from __future__ import annotations

import asyncio


class Flag:
    """As asyncio.Event, which has a queue of 700 bytes for waiters; most flags have none for most of their life."""

    __slots__ = ("_set", "_waiters")

    def __init__(self) -> None:
        self._set = False
        self._waiters: tuple[asyncio.Future[None], ...] = ()

    def is_set(self) -> bool:
        return self._set

    def set(self) -> None:
        self._set = True
        for waiter in self._waiters:
            if not waiter.done():
                waiter.set_result(None)

    def clear(self) -> None:
        self._set = False

    async def wait(self) -> None:
        """Returns when it was set, also if it is cleared again in the same moment."""
        if self._set:
            return
        waiter = asyncio.get_running_loop().create_future()
        self._waiters = (*self._waiters, waiter)
        try:
            await waiter
        finally:
            self._waiters = tuple(each for each in self._waiters if each is not waiter)
