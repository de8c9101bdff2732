"""Lines of a Pod's log, as they come, filtered by a text; and the console of a Machine's VM, which is such a log."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Callable
from typing import Any

from homeport.api.meta import Resource
from homeport.app.machine.console import elsewhere
from homeport.app.machine.find import NoMachine, find_machine
from homeport.client.errors import BadRequest, Forbidden, NotFound
from homeport.client.protocol import Key
from homeport.dashboard.person import Person
from homeport.dashboard.topic.base import Send, Topic, TopicError
from homeport.runtime.permission import Need

_LOG = Resource("", "v1", "Pod", "pods/log")
_TAIL = 1_000
_LONGEST = 4_000  # bytes of one line
# Colours and cursor movements of terminals, and other characters that are not text.
_CONTROL = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_AT_ONCE = 200
_CONSOLES = Key("homeport-system", "homeport")
_CONTAINER = "sim-machine"  # lines of all simulated machines, with the name of the VM before each


class Log(Topic):
    """`container` chooses one of several; `text` keeps the lines that contain it, of all that the server has."""

    def __init__(self, person: Person, send: Send, options: dict[str, Any]) -> None:
        super().__init__(person, send)
        self._pod = Key(str(options.get("namespace") or ""), str(options.get("pod") or ""))
        self._container = str(options.get("container") or "")
        self._text = str(options.get("text") or "")
        if not self._pod.namespace or not self._pod.name:
            raise TopicError("a log needs a namespace and a pod")

    async def run(self) -> None:
        tail = None if self._text else _TAIL
        await self.follow_lines(self._pod, self._container, tail, lambda line: line if self._text in line else None)

    async def follow_lines(self, pod: Key, container: str, tail: int | None, keep: Callable[[str], str | None]) -> None:
        """Sends what `keep` makes of each line, until the log ends. Raises ApiError, and TopicError when the right to
        read it was taken away meanwhile."""
        try:
            async with asyncio.timeout(None) as right:
                loop = asyncio.get_running_loop()
                need = Need(("get",), _LOG, pod.namespace, pod.name)
                held = self.person.rights.hold(need, lambda yes: None if yes else right.reschedule(loop.time()))
                try:
                    await self._send_lines(pod, container, tail, keep)
                finally:
                    self.person.rights.drop(held)
        except TimeoutError:
            raise TopicError(f"you may no longer read the log of Pod {pod}") from None

    async def _send_lines(self, pod: Key, container: str, tail: int | None, keep: Callable[[str], str | None]) -> None:
        lines: list[str] = []
        first = True
        async with self.person.client.log(pod, container=container, follow=True, tail_lines=tail) as arriving:
            queue: asyncio.Queue[str | None] = asyncio.Queue(10_000)
            reading = asyncio.create_task(_read(arriving, queue))
            try:
                while (line := await queue.get()) is not None:
                    if (kept := keep(line)) is not None:
                        lines.append(kept)
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


class Console(Log):
    """Of a simulated VM; of others, `elsewhere` says where the provider has it."""

    def __init__(self, person: Person, send: Send, options: dict[str, Any]) -> None:
        self._machine = Key(str(options.get("namespace") or ""), str(options.get("machine") or ""))
        super().__init__(person, send, {"namespace": _CONSOLES.namespace, "pod": _CONSOLES.name})

    async def run(self) -> None:
        try:
            found = await find_machine(self.person.client, self._machine)
        except NoMachine as error:
            raise TopicError(str(error)) from error
        before = f"{found.vm}: "
        await self.send({"lines": [], "vm": found.vm})
        try:
            await self.follow_lines(
                _CONSOLES,
                _CONTAINER,
                None,
                lambda line: line.removeprefix(before) if line.startswith(before) else None,
            )
        except Forbidden:
            raise TopicError(f"you may not read the logs of Pods in namespace {_CONSOLES.namespace}") from None
        except (NotFound, BadRequest):  # nothing is simulated
            await self.send({"lines": [], "elsewhere": elsewhere(found, simulated=False)})


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
