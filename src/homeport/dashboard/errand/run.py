"""Does an errand, in a process of its own where it computes, and ends it when it takes too long or nobody waits any
more."""

from __future__ import annotations

import asyncio
import importlib
import sys
from typing import Any

import msgspec
import structlog

from homeport.client.config import Config
from homeport.client.dial import DIRECT, DialOptions
from homeport.client.errors import ApiError
from homeport.client.http import HttpClient
from homeport.dashboard.errand.order import Order, Outcome, write_order
from homeport.dashboard.person import Person
from homeport.infra.error import ProviderError

log = structlog.get_logger(__name__)

SECONDS = 120.0
MOST_BYTES = 8 * 1024 * 1024
MOST_WAITING = 8
_AT_ONCE = 1  # it is a guest on the machine of the plane
_QUESTIONS_AT_ONCE = 4  # to hypervisors
_COMMANDS = {"choices": "discover"}


class ErrandError(Exception):
    """The errand was not done; the text says why and what to do."""


class Errands:
    """Of all users of one dashboard. A user has one errand of a kind at a time: a newer one replaces it."""

    def __init__(self, dial: DialOptions = DIRECT, seconds: float = SECONDS) -> None:
        self._dial = dial
        self._seconds = seconds
        self._slots = asyncio.Semaphore(_AT_ONCE)
        self._questions = asyncio.Semaphore(_QUESTIONS_AT_ONCE)
        self._running: dict[tuple[Person, str], asyncio.Task[Outcome]] = {}

    async def run(self, errand: str, options: dict[str, Any], person: Person, config: Config) -> Any:
        """The result of the errand. Raises ErrandError and ApiError."""
        order = await write_order(errand, options, config, self._dial)
        key = (person, errand)
        if (earlier := self._running.pop(key, None)) is not None:
            earlier.cancel()
        if len(self._running) >= MOST_WAITING:
            raise ErrandError("the dashboard is busy with the requests of others: try again in a minute")
        task = self._running[key] = asyncio.create_task(self._do(order))
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

    async def _do(self, order: Order) -> Outcome:
        try:
            if order.errand == "choices":
                async with self._questions, asyncio.timeout(self._seconds):
                    return await _ask(order)
            async with self._slots, asyncio.timeout(self._seconds):
                return await self._call(msgspec.msgpack.encode(order), order.errand)
        except TimeoutError:
            command = _COMMANDS.get(order.errand, order.errand)
            raise ErrandError(
                f"it was not finished after {self._seconds:g} s: use 'homeport {command}', which has no limit"
            ) from None

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
            output, said = await process.communicate(order)
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
        if process.returncode != 0 or len(output) > MOST_BYTES:
            log.error("an errand of the dashboard failed", errand=errand, said=said[-2000:].decode(errors="replace"))
            raise ErrandError("it failed, or needs more memory than it may use: see the log of the plane")
        return msgspec.msgpack.decode(output, type=Outcome)


async def _ask(order: Order) -> Outcome:
    """In this process: it waits for the hypervisor and computes nothing. A process takes seconds to start on a busy
    machine, and the user looks at an empty list meanwhile."""
    choice = await asyncio.to_thread(importlib.import_module, "homeport.dashboard.errand.choice")  # large, for a loop
    try:
        async with HttpClient(order.config) as client:
            return Outcome(result=await choice.choices(client, order))
    except (ApiError, ProviderError, choice.NoSource) as error:
        return Outcome(problem=str(error))
