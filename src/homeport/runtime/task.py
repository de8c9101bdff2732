"""Tasks that run beside others, and how they end."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


async def cancel(task: asyncio.Task[Any] | None) -> None:
    """Cancels a task and waits for its end. An error that ended it is raised."""
    if task is not None:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


async def uninterrupted(work: Coroutine[Any, Any, T]) -> T:
    """Finishes the work also if the caller is cancelled: a thread that writes a file can't be stopped, and would
    overwrite what is written later."""
    task = asyncio.create_task(work)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait([task])
        raise


class Tasks:
    """Tasks that run beside their owner. They are held until they end: the event loop alone would lose them."""

    def __init__(self) -> None:
        self._running: set[asyncio.Task[None]] = set()

    def start(self, work: Coroutine[Any, Any, None], name: str) -> asyncio.Task[None]:
        task = asyncio.create_task(work, name=name)
        self._running.add(task)
        task.add_done_callback(self._running.discard)
        return task

    def end(self) -> list[asyncio.Task[None]]:
        """Cancels all. They end soon."""
        tasks = list(self._running)
        for task in tasks:
            task.cancel()
        return tasks

    async def close(self) -> None:
        """Cancels all, and waits for their ends."""
        await asyncio.gather(*self.end(), return_exceptions=True)
