"""The parts of a running plane: what state each is in, and why."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Literal, Protocol

from homeport.runtime.manager import Manager

# waiting: it crashed and is started again after a pause. following: another replica works, this one stands by.
State = Literal["starting", "following", "running", "waiting", "stopped"]


@dataclass(slots=True)
class Part:
    name: str
    run: Callable[[], Awaitable[None]]
    state: State = "starting"
    crashes: int = 0
    error: str = ""  # of the last crash
    retry_in: float = 0.0
    changed: Callable[[Part], None] = field(default=lambda part: None, repr=False)

    def become(self, state: State) -> None:
        if state != self.state:
            self.state = state
            self.changed(self)


class Gate(Protocol):
    """What a manager may have to wait for, again and again."""

    async def opened(self) -> None: ...

    async def closed(self) -> None: ...


class ManagerPart:
    """Runs a manager as a part: a new one at each start. The part's state follows the manager's progress.

    With a gate it runs only while that is open.
    """

    def __init__(self, make: Callable[[], Manager], gate: Gate | None = None) -> None:
        self._make = make
        self._gate = gate
        self.manager: Manager | None = None
        self.part: Part | None = None

    async def run(self) -> None:
        if self._gate is None:
            await self._work()
        else:
            while await self._work_behind(self._gate):
                continue

    async def _work_behind(self, gate: Gate) -> bool:
        """Whether the gate was closed, so that there is more to come. Raises what the manager died of."""
        assert self.part is not None
        self.part.become("following")
        await gate.opened()
        working, closing = asyncio.create_task(self._work()), asyncio.create_task(gate.closed())
        try:
            await asyncio.wait({working, closing}, return_when=asyncio.FIRST_COMPLETED)
            if working.done():
                working.result()
                return False
        finally:
            for task in (working, closing):
                task.cancel()
            await asyncio.gather(working, closing, return_exceptions=True)
        self.manager = None  # what it said last is not so any more
        return True

    async def _work(self) -> None:
        manager = self.manager = self._make()
        following = asyncio.create_task(self._follow(manager), name="state of the manager")
        try:
            await manager.run()
        finally:
            following.cancel()

    async def _follow(self, manager: Manager) -> None:
        assert self.part is not None
        self.part.become("starting")
        for informer in manager.informers:
            await informer.settled.wait()
        if manager.lease is not None and not manager.ready.is_set():
            self.part.become("following")
        await manager.ready.wait()
        self.part.become("running")
