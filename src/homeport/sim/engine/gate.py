"""Handles every request: faults before it, the simulator's answer, faults after it, then the journal."""

from __future__ import annotations

import asyncio
import random
from typing import Protocol

from homeport.runtime.clock import Clock
from homeport.sim.engine.call import Answer, Call, Dropped
from homeport.sim.engine.fault import Delay, Drop, RequestEffect, SessionExpiry, Stale, Status, Throttle
from homeport.sim.engine.injector import Injector, Subject
from homeport.sim.engine.journal import Entry, Journal


class Backend(Protocol):
    """A simulator that answers requests, with errors in its vendor's format."""

    def subject(self, call: Call) -> Subject:
        """What the request is about, as far as it is known before the request is answered."""

    def answer(self, call: Call, *, age: float) -> Answer:
        """`age` above 0 asks for a read from the world as it was so many seconds ago."""

    def refuse(self, call: Call, status: int, *, code: str = "", message: str = "", group: str = "") -> Answer:
        """An error in the dialect of the path that was called."""

    def expire_session(self, call: Call) -> None:
        """Ends the session that the request came with."""


class Gate:
    def __init__(self, backend: Backend, faults: Injector, journal: Journal, clock: Clock, *, seed: int = 0) -> None:
        self._backend = backend
        self._faults = faults
        self._journal = journal
        self._clock = clock
        self._rng = random.Random(seed)  # noqa: S311  (length of delays, not secrets)

    async def respond(self, call: Call) -> Answer:
        """Raises Dropped where the connection must end."""
        begun = self._clock.monotonic()
        subject = self._backend.subject(call)
        struck = self._faults.on_request(subject)
        names = tuple(name for name, _ in struck)
        status = 0
        try:
            answer = await self._struck(call, [effect for _, effect in struck])
            status = answer.status
            return answer
        finally:
            self._journal.add(
                Entry(
                    number=0,
                    time=self._clock.now(),
                    method=call.method,
                    path=call.path,
                    query=call.raw_query,
                    route=subject.route,
                    user=call.user,
                    status=status,
                    seconds=self._clock.monotonic() - begun,
                    request_id=call.headers.get("ntnx-request-id", ""),
                    faults=names,
                )
            )

    async def _struck(self, call: Call, effects: list[RequestEffect]) -> Answer:
        age = 0.0
        drop_after = False
        for effect in effects:
            match effect:
                case Delay(seconds=seconds, jitter=jitter):
                    await asyncio.sleep(seconds * (1 + jitter * self._rng.uniform(-1, 1)))
                case Drop(when="before"):
                    raise Dropped
                case Drop():
                    drop_after = True
                case Stale(seconds=seconds):
                    age = max(age, seconds)
                case SessionExpiry():
                    self._backend.expire_session(call)
                case Throttle(retry_after=after):
                    answer = self._backend.refuse(call, 429)
                    answer.headers["Retry-After"] = f"{after:g}"
                    return answer
                case Status(status=status, code=code, message=message, group=group):
                    return self._backend.refuse(call, status, code=code, message=message, group=group)
        answer = self._backend.answer(call, age=age)
        if drop_after:
            raise Dropped
        return answer
