"""Lines of a Pod's log, as they come, filtered by a text."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from typing import Any

from homeport.client.protocol import Key
from homeport.dashboard.person import Person
from homeport.dashboard.topic.base import Send, Topic, TopicError

_TAIL = 1_000
_LONGEST = 4_000  # bytes of one line
# Colours and cursor movements of terminals, and other characters that are not text.
_CONTROL = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_AT_ONCE = 200


class Log(Topic):
    def __init__(self, person: Person, send: Send, options: dict[str, Any]) -> None:
        super().__init__(person, send)
        self._pod = Key(str(options.get("namespace") or ""), str(options.get("pod") or ""))
        self._text = str(options.get("text") or "")
        if not self._pod.namespace or not self._pod.name:
            raise TopicError("a log needs a namespace and a pod")

    async def run(self) -> None:
        lines: list[str] = []
        first = True
        async with self.person.client.log(self._pod, follow=True, tail_lines=_TAIL) as arriving:
            queue: asyncio.Queue[str | None] = asyncio.Queue(10_000)
            reading = asyncio.create_task(_read(arriving, queue))
            try:
                while (line := await queue.get()) is not None:
                    if not self._text or self._text in line:
                        lines.append(line)
                    if lines and (queue.empty() or len(lines) >= _AT_ONCE):
                        sent, lines = lines, []
                        await self.send({"lines": sent, "first": first})
                        first = False
            finally:
                reading.cancel()
        await self.send({"lines": [], "ended": True})


def readable(line: bytes) -> str:
    """A line as text: a log must not be able to hide or move what is in the page."""
    cut = " ..." if len(line) > _LONGEST else ""
    return _CONTROL.sub("", line[:_LONGEST].decode(errors="replace")) + cut


async def _read(arriving: AsyncIterator[bytes], queue: asyncio.Queue[str | None]) -> None:
    rest = b""
    try:
        async for chunk in arriving:
            *lines, rest = (rest + chunk).split(b"\n")
            for line in lines:
                await queue.put(readable(line))
            rest = rest[: _LONGEST + 1]
        if rest:
            await queue.put(readable(rest))
    finally:
        task = asyncio.current_task()
        if task is None or not task.cancelling():  # nobody reads the queue any more, and it may be full
            await queue.put(None)
