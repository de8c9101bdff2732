"""Starts the process of an errand, and ends it when it takes too long or nobody waits any more."""

from __future__ import annotations

import asyncio
import sys
from typing import Any

import msgspec
import structlog

from homeport.client.config import Config
from homeport.client.dial import DIRECT, DialOptions
from homeport.dashboard.errand.order import Outcome, write_order
from homeport.dashboard.person import Person

log = structlog.get_logger(__name__)

SECONDS = 120.0
MOST_BYTES = 8 * 1024 * 1024
MOST_WAITING = 8
_AT_ONCE = 1  # it is a guest on the machine of the plane


class ErrandError(Exception):
    """The errand was not done; the text says why and what to do."""


class Errands:
    """Of all users of one dashboard. A user has one errand of a kind at a time: a newer one replaces it."""

    def __init__(self, dial: DialOptions = DIRECT, seconds: float = SECONDS) -> None:
        self._dial = dial
        self._seconds = seconds
        self._slots = asyncio.Semaphore(_AT_ONCE)
        self._running: dict[tuple[Person, str], asyncio.Task[Outcome]] = {}

    async def run(self, errand: str, options: dict[str, Any], person: Person, config: Config) -> Any:
        """The result of the errand. Raises ErrandError and ApiError."""
        order = await write_order(errand, options, config, self._dial)
        key = (person, errand)
        if (earlier := self._running.pop(key, None)) is not None:
            earlier.cancel()
        if len(self._running) >= MOST_WAITING:
            raise ErrandError("the dashboard is busy with the requests of others: try again in a minute")
        task = self._running[key] = asyncio.create_task(self._wait(msgspec.msgpack.encode(order), errand))
        try:
            await asyncio.wait([task])
        finally:
            task.cancel()  # this request was cancelled
            if self._running.get(key) is task:
                del self._running[key]
        if task.cancelled():
            raise ErrandError("a newer request took the place of this one")
        if task.result().problem:
            raise ErrandError(task.result().problem)
        return task.result().result

    def forget(self, person: Person) -> None:
        """Ends what runs for somebody who has logged out."""
        for (owner, _), task in list(self._running.items()):
            if owner is person:
                task.cancel()

    async def _wait(self, order: bytes, errand: str) -> Outcome:
        async with self._slots:
            return await self._call(order, errand)

    async def _call(self, order: bytes, errand: str) -> Outcome:
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "homeport.dashboard.errand.child",
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        try:
            async with asyncio.timeout(self._seconds):
                output, said = await process.communicate(order)
        except TimeoutError:
            raise ErrandError(
                f"it was not finished after {self._seconds:g} s: use 'homeport {errand}', which has no limit"
            ) from None
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
        if process.returncode != 0 or len(output) > MOST_BYTES:
            log.error("an errand of the dashboard failed", errand=errand, said=said[-2000:].decode(errors="replace"))
            raise ErrandError("it failed, or needs more memory than it may use: see the log of the plane")
        return msgspec.msgpack.decode(output, type=Outcome)
