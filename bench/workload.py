"""The controller that is measured: it writes the status of each Machine once per round, and does nothing else.

Loaded as `--plugin workload:install` into the process to be measured. What it sees it appends to $BENCH_REPORT, a JSON
object per line, so that the one who measures knows when each phase began and ended.
"""

from __future__ import annotations

import asyncio
import gc
import json
import os
import resource as rusage
import time
from pathlib import Path
from typing import Any

import msgspec
from sample import GROUP, status

from homeport.api.meta import Model, Object, Resource, resource
from homeport.client.protocol import Key, MergePatch, Write
from homeport.runtime.controller import Controller
from homeport.runtime.manager import Manager
from homeport.runtime.outcome import Wait

ROUND = int(os.environ.get("BENCH_ROUND", "1"))
TOTAL = int(os.environ.get("BENCH_TOTAL", "10000"))
REPORT = Path(os.environ.get("BENCH_REPORT", os.devnull))
WRITE = Write(field_manager="bench-controller")


class Reference(Model):
    api_group: str = ""
    kind: str = ""
    name: str = ""


class Bootstrap(Model):
    config_ref: Reference | None = None
    data_secret_name: str = ""


class Gate(Model):
    condition_type: str = ""


class MachineSpec(Model):
    cluster_name: str = ""
    version: str = ""
    provider_id: str = ""
    failure_domain: str = ""
    min_ready_seconds: int = 0
    bootstrap: Bootstrap = msgspec.field(default_factory=Bootstrap)
    infrastructure_ref: Reference = msgspec.field(default_factory=Reference)
    readiness_gates: list[Gate] = []


class Address(Model):
    type: str = ""
    address: str = ""


class Condition(Model):
    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""
    last_transition_time: str = ""


class MachineStatus(Model):
    phase: str = ""
    observed_generation: int = 0
    addresses: list[Address] = []
    conditions: list[Condition] = []


@resource(GROUP, "v1", "Machine", "machines")
class Machine(Object):
    spec: MachineSpec = msgspec.field(default_factory=MachineSpec)
    status: MachineStatus = msgspec.field(default_factory=MachineStatus)


def tell(phase: str, **more: Any) -> None:
    now = {"phase": phase, "wall": time.monotonic(), "cpu": time.process_time(), **more}
    with REPORT.open("a") as file:
        file.write(json.dumps(now) + "\n")


def resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * rusage.getpagesize()


class Stamp:
    def __init__(self, manager: Manager) -> None:
        self._client = manager.client
        self._informer = manager.informers.get(Machine)
        self._go = asyncio.Event()
        self.written = 0
        self.looked = 0

    async def reconcile(self, key: Key) -> Wait | None:
        if not self._go.is_set():
            await self._go.wait()
        self.looked += 1
        machine = self._informer.cache.get(key)
        if machine is None or machine.status.observed_generation == ROUND:
            return None
        patch = MergePatch({"status": status(int(key.name[-5:]), ROUND)})
        await self._client.patch(Machine, key, patch, WRITE, subresource="status")
        self.written += 1
        if self.written == TOTAL:
            tell("written", looked=self.looked)
        return None

    async def mark(self) -> None:
        """Synced; work begins when that is noted."""
        before = resident_bytes()
        tell("start")
        await self._informer.synced.wait()
        tell("synced")
        gc.collect()
        tell("go", objects=len(self._informer.cache), grown=resident_bytes() - before)
        self._go.set()


_tasks: list[asyncio.Task[None]] = []


def install(manager: Manager) -> None:
    stamp = Stamp(manager)
    manager.add(Controller("bench", Machine, stamp, workers=int(os.environ.get("BENCH_WORKERS", "8"))))
    _tasks.append(asyncio.get_running_loop().create_task(stamp.mark()))


assert Machine.__resource__ == Resource(GROUP, "v1", "Machine", "machines")
