"""Clusters of a worker that was killed stay in the report of the plane until another worker reports them."""

from __future__ import annotations

import asyncio
import sys
from typing import Any, cast

import msgspec
import pytest

from homeport.app.report.describe import describe
from homeport.app.report.description import ClusterState
from homeport.app.report.part import Gate
from homeport.app.worker.crew import Worker, WorkerEnded
from homeport.app.worker.message import Order, Report
from homeport.client.protocol import Client
from homeport.runtime.telemetry.stream import LogStreams
from homeport.runtime.workload.ranges import ServiceRanges


class Nothing:
    """A client whose objects are gone."""

    async def delete(self, *_: Any, **__: Any) -> None:
        return None


def cluster(name: str, health: str = "Available") -> ClusterState:
    return ClusterState("default", name, health)


def says(*reports: Report) -> str:
    """A program that reads its order, reports and is killed."""
    lines = b"".join(msgspec.json.encode(each) + b"\n" for each in reports)
    return (
        f"import sys, os; sys.stdin.readline(); os.write(1, {lines!r}); "
        "import time; time.sleep(0.2); os.kill(os.getpid(), 9)"
    )


async def ended(worker: Worker, monkeypatch: pytest.MonkeyPatch, program: str) -> None:
    """After a process that runs this program."""
    start = asyncio.create_subprocess_exec

    async def stand_in(*_: str, **more: Any) -> asyncio.subprocess.Process:
        return await start(sys.executable, "-c", program, **more)

    monkeypatch.setattr("homeport.app.worker.crew.asyncio.create_subprocess_exec", stand_in)
    with pytest.raises(WorkerEnded, match="killed by signal 9"):
        await worker._work()
    monkeypatch.undo()


def shown(*reports: Report) -> list[tuple[str, str]]:
    return [(each.name, each.health) for each in describe([], [], objects={}, elsewhere=reports).clusters]


async def test_clusters_of_a_worker_that_was_killed_stay_known(monkeypatch: pytest.MonkeyPatch) -> None:
    client = cast(Client, Nothing())
    gate = cast(Gate, None)  # of no use to a single process

    def order(identity: str) -> Order:
        return Order(identity, "", "", 0, "info", False)

    worker = Worker(1, order, client, LogStreams(), ServiceRanges(), gate)
    working = Report(working=True, clusters=[cluster("a"), cluster("b")], blind={"pods": "why"})
    await ended(worker, monkeypatch, says(working))
    assert worker.report == Report(clusters=[cluster("a"), cluster("b")])
    await ended(worker, monkeypatch, says(Report()))  # its successor, which did not come to work
    assert shown(worker.report) == [("a", "Available"), ("b", "Available")]
    await ended(worker, monkeypatch, says(Report(working=True, clusters=[cluster("b")])))
    assert shown(worker.report) == [("b", "Available")]


def test_what_a_worker_that_works_reports_counts_more() -> None:
    dead = Report(clusters=[cluster("a"), cluster("b")])
    alive = Report(working=True, clusters=[cluster("b", "Deleting"), cluster("c")])
    expected = [("a", "Available"), ("b", "Deleting"), ("c", "Available")]
    assert shown(dead, alive) == expected
    assert shown(alive, dead) == expected
