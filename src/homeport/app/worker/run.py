"""A worker: the controllers of a plane in a process of their own, on the share of clusters that is theirs.

It ends with the plane that started it, whatever that one ended of: the kernel kills it, and its input ends.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

import msgspec

from homeport.app.worker.message import LEASE, NAMESPACE, Order, Report

_PR_SET_PDEATHSIG = 1
_REPORT_SECONDS = 1.0
_REPORT_SHARE = 0.01  # of a core: with thousands of clusters a report takes longer and comes less often


def main() -> None:
    order = msgspec.json.decode(sys.stdin.buffer.readline(), type=Order)
    _end_with(order.parent)
    from homeport.app.log import import_structlog
    from homeport.client.wire.quick import import_aiohttp

    import_structlog()
    import_aiohttp()
    import uvloop

    from homeport.runtime.telemetry import log

    log.configure(levels=log.parse_levels(order.log_level), json=order.json, out=sys.stderr)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(_run(order))


def _end_with(parent: int) -> None:
    """Before anything is written: a worker that outlives its plane would work beside those of the next one."""
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        raise SystemExit("the plane has ended")


async def _run(order: Order) -> None:
    from homeport.app.backup.folder import FolderBackups
    from homeport.app.memory import frugal
    from homeport.app.plane.instance import BACKUP_PATH
    from homeport.app.platform import chosen
    from homeport.app.settings import Settings
    from homeport.capi.environment import Environment
    from homeport.capi.shard import shard_of
    from homeport.client import kubeconfig
    from homeport.client.http import HttpClient
    from homeport.runtime.manager import Manager, Sharded

    config = kubeconfig.load(Path(order.kubeconfig))
    async with HttpClient(config) as client, HttpClient(config) as leases:

        async def copy() -> dict[str, str]:
            answer = await client.raw("POST", BACKUP_PATH)
            return msgspec.json.decode(answer.check(BACKUP_PATH), type=dict[str, str])

        environment = Environment(
            client,
            order.dial,
            worker=True,
            charts=order.charts,
            images=Path(order.images) if order.images else None,
            ccm_image=order.ccm_image,
            backups=FolderBackups(Settings(Path(order.data)), copy),
        )
        mode = Sharded(NAMESPACE, LEASE, None, shard_of)
        manager = Manager(client, mode=mode, name="homeport", who=order.identity, leases=leases)
        chosen(order.plugins, order.without).install(manager, environment)
        working = asyncio.create_task(manager.run())
        for number in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(number, working.cancel)
        reporting = asyncio.create_task(_report(manager, environment))
        following = asyncio.create_task(asyncio.to_thread(_await_end))
        following.add_done_callback(lambda task: None if task.cancelled() else os._exit(1))
        try:
            with contextlib.suppress(asyncio.CancelledError):
                async with frugal():
                    await working
        finally:
            reporting.cancel()
    os._exit(0)  # a thread still reads the input


def _await_end() -> None:
    while sys.stdin.buffer.readline():
        continue


async def _report(manager: Any, environment: Any) -> None:
    before = b""
    while True:
        began = time.process_time()
        text = msgspec.json.encode(describe_worker(manager, environment.ranges))
        if text != before:
            sys.stdout.buffer.write(text + b"\n")
            sys.stdout.buffer.flush()
            before = text
        await asyncio.sleep(max(_REPORT_SECONDS, (time.process_time() - began) / _REPORT_SHARE))


def describe_worker(manager: Any, ranges: Any) -> Report:
    from homeport.app.report.clusterstate import clusters_of
    from homeport.app.report.describe import describe_controller
    from homeport.capi.shard import cluster_shard
    from homeport.client.protocol import Key
    from homeport.runtime.clock import SystemClock

    return Report(
        working=manager.ready.is_set(),
        controllers=[describe_controller(each) for each in manager.controllers],
        clusters=[
            each
            for each in clusters_of([manager], SystemClock().now())
            if manager.holds(cluster_shard(Key(each.namespace, each.name)))
        ],
        blind=manager.health() | manager.unreadable(),
        ranges=ranges.texts(),
    )


if __name__ == "__main__":
    main()
