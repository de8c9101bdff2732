"""Files that a simulated vendor downloads for an image: asked for when the vendor needs them, fetched beside it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Fetched:
    """What the network had at a URL. `error`: why there is nothing, as a vendor words it."""

    status: int = 0
    size: int = 0
    sha256: str = ""
    sha512: str = ""
    error: str = ""


Fetch = Callable[[str], Awaitable[Fetched]]


class Downloads:
    """One for each simulator. `close` ends what is under way."""

    def __init__(self, fetch: Fetch) -> None:
        self._fetch = fetch
        self._tasks: dict[str, asyncio.Task[Fetched]] = {}

    def ask(self, key: str, url: str, ready: Callable[[], None]) -> Fetched | None:
        """None while the file is being fetched: `ready` is called as soon as the answer is known.

        `key` tells one download of a URL from the next: a file may change.
        """
        task = self._tasks.get(key)
        if task is None:
            task = self._tasks[key] = asyncio.get_running_loop().create_task(self._bring(url), name=f"download {url}")
            task.add_done_callback(lambda _: ready())
        return task.result() if task.done() and not task.cancelled() else None

    def forget(self, key: str) -> None:
        task = self._tasks.pop(key, None)
        if task is not None:
            task.cancel()

    async def _bring(self, url: str) -> Fetched:
        return await self._fetch(url)

    async def close(self) -> None:
        tasks, self._tasks = [*self._tasks.values()], {}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
