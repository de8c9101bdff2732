"""Uploads to a vendor that take long: each runs beside the reconciler, which looks how far it is."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path

from homeport.capi.platform import Content

_CHUNK = 1 << 20


@dataclass(slots=True)
class Progress:
    """How many bytes were sent."""

    total: int
    sent: int = 0

    @property
    def percent(self) -> int:
        return min(99, 100 * self.sent // self.total) if self.total else 0


Send = Callable[[AsyncIterator[bytes]], Awaitable[None]]


@dataclass(slots=True)
class _Running:
    task: asyncio.Task[None]
    progress: Progress


@dataclass(slots=True)
class Uploads:
    """By the UID of the object that they are for. `close` ends all of them."""

    _running: dict[str, _Running] = field(default_factory=dict)

    def start(self, uid: str, content: Content, send: Send, wake: Callable[[], None]) -> Progress:
        progress = Progress(content.size)
        task = asyncio.get_running_loop().create_task(
            _sent(content.path, progress, send), name=f"upload {content.path}"
        )
        task.add_done_callback(lambda _: wake())
        self._running[uid] = _Running(task, progress)
        return progress

    async def state(self, uid: str) -> Progress | None:
        """None: none was started, or the last one was completed. Raises what it ended with, once."""
        found = self._running.get(uid)
        if found is None:
            return None
        if not found.task.done():
            return found.progress
        del self._running[uid]
        await found.task
        return None

    def __contains__(self, uid: str) -> bool:
        return uid in self._running

    def stop(self, uid: str) -> None:
        found = self._running.pop(uid, None)
        if found is not None:
            _end(found.task)

    async def close(self) -> None:
        running, self._running = [*self._running.values()], {}
        for each in running:
            _end(each.task)
        await asyncio.gather(*(each.task for each in running), return_exceptions=True)


def _end(task: asyncio.Task[None]) -> None:
    """What it ended with is of no interest any more."""
    task.cancel()
    task.add_done_callback(lambda done: done.cancelled() or done.exception())


async def _sent(path: Path, progress: Progress, send: Send) -> None:
    await send(_chunks(path, progress))


async def _chunks(path: Path, progress: Progress) -> AsyncIterator[bytes]:
    with await asyncio.to_thread(path.open, "rb") as file:
        while chunk := await asyncio.to_thread(file.read, _CHUNK):
            yield chunk
            progress.sent += len(chunk)
