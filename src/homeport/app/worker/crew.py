"""The workers of a plane: started, followed, and started again when one ends."""

from __future__ import annotations

import asyncio
import contextlib
import sys
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field

import msgspec
import structlog
from msgspec.structs import replace

from homeport.app.report.part import Gate, Part, State
from homeport.app.worker.message import LEASE, NAMESPACE, Order, Report
from homeport.client.absence import drop_object
from homeport.client.protocol import Client, Key, Query
from homeport.machinery.address import AddressSet
from homeport.runtime.lease import LEASE as LEASE_KIND
from homeport.runtime.shard import GROUP_LABEL
from homeport.runtime.telemetry.stream import PROCESS, LogStreams
from homeport.runtime.workload.ranges import ServiceRanges

log = structlog.get_logger(__name__)

_STOP_SECONDS = 15.0
_LONGEST_LINE = 64 * 1024 * 1024  # a report names every unfinished object


class WorkerEnded(Exception):
    """A worker ended by itself; the text says how."""


@dataclass(slots=True)
class Worker:
    """One of them. `run` is called again after each end."""

    number: int
    order: Callable[[str], Order]  # for the identity of a new process
    client: Client
    streams: LogStreams
    ranges: ServiceRanges
    gate: Gate
    part: Part | None = None
    pid: int = 0
    report: Report = field(default_factory=Report)

    async def run(self) -> None:
        while True:
            await self.gate.opened()
            self._become("starting")
            working, closing = asyncio.create_task(self._work()), asyncio.create_task(self.gate.closed())
            try:
                await asyncio.wait({working, closing}, return_when=asyncio.FIRST_COMPLETED)
                if working.done():
                    working.result()
            finally:
                for task in (working, closing):
                    task.cancel()
                await asyncio.gather(working, closing, return_exceptions=True)
            self._become("following")  # the plane has stepped back for another one

    async def _work(self) -> None:
        identity = f"worker-{self.number}-{uuid.uuid4().hex[:6]}"
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "homeport.app.worker.run",
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            limit=_LONGEST_LINE,
        )
        self.pid = process.pid
        try:
            assert process.stdin is not None
            process.stdin.write(msgspec.json.encode(self.order(identity)) + b"\n")
            async with asyncio.TaskGroup() as group:
                reading = group.create_task(self._follow(process))
                logging = group.create_task(self._pass_on(process))
                code = await process.wait()
                del reading, logging  # they end with its output
            raise WorkerEnded(f"process {process.pid} {_ended(code)}")
        finally:
            await _stop(process)
            # Until another worker has taken them over, its clusters are known from here alone.
            self.report, self.pid = Report(clusters=self.report.clusters), 0
            await self._release(identity)

    async def _release(self, identity: str) -> None:
        """The process has ended for certain: the others need not wait until its lease expires."""
        await drop_object(self.client, LEASE_KIND, Key(NAMESPACE, f"{LEASE}-{identity}"))

    async def _follow(self, process: asyncio.subprocess.Process) -> None:
        assert process.stdout is not None
        while line := await process.stdout.readline():
            try:
                report = msgspec.json.decode(line, type=Report)
            except msgspec.MsgspecError as error:
                log.warning("a worker's report can't be read", worker=self.number, error=str(error))
                continue
            self.report = report if report.working else replace(report, clusters=self.report.clusters)
            for owner, text in self.report.ranges.items():
                self.ranges.set(owner, AddressSet.parse(part.strip() for part in text.split(",")))
            self._become("running" if self.report.working else "starting")

    async def _pass_on(self, process: asyncio.subprocess.Process) -> None:
        """Its log is part of ours."""
        assert process.stderr is not None
        while line := await process.stderr.readline():
            text = line.decode(errors="replace").rstrip("\n")
            controller, key = _subject(text)
            self.streams.source(controller).push(time.time(), text, key)
            with contextlib.suppress(OSError, ValueError):
                sys.stderr.write(text + "\n")
                sys.stderr.flush()

    def _become(self, state: State) -> None:
        if self.part is not None:
            self.part.become(state)


async def forget_workers(client: Client) -> None:
    """At the start of a plane: those of the one before ended with it."""
    found = await client.list(LEASE_KIND, Query(namespace=NAMESPACE, labels=f"{GROUP_LABEL}={LEASE}"))
    for each in found.items:
        await drop_object(client, LEASE_KIND, Key(each.namespace, each.name))


async def _stop(process: asyncio.subprocess.Process) -> None:
    """Asks it to end, and ends it if it does not."""
    if process.returncode is not None:
        return
    with contextlib.suppress(ProcessLookupError):
        process.terminate()
    try:
        async with asyncio.timeout(_STOP_SECONDS):
            await process.wait()
    except TimeoutError:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.wait()


def _ended(code: int) -> str:
    return f"was killed by signal {-code}" if code < 0 else f"exited with status {code}"


def _subject(line: str) -> tuple[str, str]:
    """Controller and object of a line of its log."""
    try:
        found = msgspec.json.decode(line)
        return str(found.get("controller", PROCESS)), str(found.get("object", ""))
    except (msgspec.DecodeError, AttributeError):
        return PROCESS, ""
