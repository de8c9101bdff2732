"""A cluster among many writes its statuses as often as one that is alone, and writes rarely conflict."""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import msgspec
import pytest

from capikit.harness import Harness, harness
from homeport.client.errors import Conflict
from homeport.client.protocol import Client
from homeport.runtime.testing import virtual
from homeport.store import Change
from scenario.capi.fault import WRITES

MANY = 20


class Line:
    """The way to a server that answers one request after the other: with many clusters, each of them waits."""

    def __init__(self, inner: Client, seconds: float) -> None:
        self._inner = inner
        self._seconds = seconds
        self._turn = asyncio.Lock()
        self.conflicts = 0

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._inner, name)
        if name not in (*WRITES, "get", "list"):
            return found

        async def call(*args: Any, **kwargs: Any) -> Any:
            async with self._turn:
                await asyncio.sleep(self._seconds)
                try:
                    return await found(*args, **kwargs)
                except Conflict:
                    self.conflicts += 1
                    raise

        return call


@dataclass
class Writes:
    """Every change of the store that gave an object another status, by kind."""

    counts: Counter[str] = field(default_factory=Counter)
    _known: dict[tuple[str, str], Any] = field(default_factory=dict)

    def take(self, changes: list[Change]) -> None:
        for change in changes:
            place = (change.bucket, change.name)
            found = {} if change.record is None else msgspec.json.decode(change.record.value)
            status = found.get("status")
            if status is not None and status != self._known.get(place):
                self.counts[found["kind"]] += 1
            self._known[place] = status


async def come_up(h: Harness, number: int) -> Counter[str]:
    """How often each cluster wrote a status of each kind, from created at the same moment to at rest."""
    writes = Writes()
    end = h.plane.server.store.subscribe(None, writes.take)
    names = [f"c{each:02d}" for each in range(number)]
    for name in names:
        await h.create(name, 1, 1)
    for name in names:
        await h.available(name)
        await h.steady(name, 1, 1, "v1.30.0")
    await h.plane.settle(quiet=60)
    end()
    return Counter({kind: round(count / number, 1) for kind, count in writes.counts.items()})


MORE = {"Cluster": 3.5, "Machine": 2.5}  # a cluster has two Machines


# Of a server that takes 20 ms for each request, the requests of all clusters keep every one of them waiting for a minute.
@pytest.mark.parametrize("seconds", [0.0, 0.02])
def test_a_cluster_among_many_writes_its_statuses_as_often_as_one_alone(seconds: float) -> None:
    lines: list[Line] = []

    def wrap(client: Client) -> Line:
        lines.append(Line(client, seconds))
        return lines[-1]

    @virtual
    async def run() -> None:
        async with harness(wrap=wrap) as h:
            alone = await come_up(h, 1)
        async with harness(wrap=wrap) as h:
            among = await come_up(h, MANY)
        told = f"alone {dict(alone)}, among {MANY} {dict(among)}"
        assert set(alone) == set(among), told
        assert alone["Cluster"] <= 6, told
        # A status that is still waited for is written a few times more: never for each step of each machine.
        assert all(among[kind] <= alone[kind] + MORE.get(kind, 1.5) for kind in alone), told
        assert among.total() <= alone.total() * 1.2, told
        assert lines[-1].conflicts <= 0.25 * MANY

    run()
