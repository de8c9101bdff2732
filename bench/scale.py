"""What many workload clusters cost: while they are made, at rest, and while all of them roll.

    python bench/scale.py [--clusters 1000] [--planes embedded:1 embedded:2 kube:1 kube:3] [--rest 30] [--details]
    python bench/scale.py --planes kube:3 --longest 1800

Prints a row for each plane to stdout. To stderr: each tenth of the clusters, and what each phase cost as soon as it is
over. A phase that takes longer than `--longest` ends with what was reached, and the next plane follows.

`embedded:N` is `homeport up --workers N`; `kube:N` are N replicas (`homeport up --kubeconfig --shards`) on a real
kube-apiserver with etcd. Each cluster has one control plane machine on a simulated Nutanix without delays. All of them
are applied at once. The simulated site and its workload clusters run in a process of their own, which is not counted;
kube-apiserver and etcd are not counted either.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import sys
import time
import traceback
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "tests")]

from process import cpu_seconds, peak_mib, resident_mib, sockets  # noqa: E402
from scale_object import NAMESPACE, create_cluster, is_rolled, is_up, roll  # noqa: E402
from scale_plane import Stack, stack  # noqa: E402
from scale_tally import Tally  # noqa: E402

from homeport.api.cluster.v1beta2 import Cluster  # noqa: E402
from homeport.api.controlplane.v1beta2 import KubeadmControlPlane  # noqa: E402
from homeport.client.errors import Expired  # noqa: E402
from homeport.client.http import HttpClient  # noqa: E402
from homeport.client.protocol import Query  # noqa: E402

AT_ONCE = 16  # requests of the user at a time
_EMPTY_SECONDS = 10.0
_SETTLE_SECONDS = 30.0  # after the last one is up: stragglers come to rest


@dataclass
class Phase:
    """What happened between two moments."""

    wall: float
    cpu: list[float]  # by process of the plane
    site: float  # CPU seconds of the simulated site
    writes: int


@dataclass
class Result:
    name: str
    clusters: int
    start_mib: list[float]
    start_sockets: list[int]
    empty: Phase | None = None  # at rest, before the first cluster
    made: Phase | None = None
    rest: Phase | None = None
    rolled: Phase | None = None
    first: float = 0.0
    up: int = 0  # of all clusters
    replaced: int = 0
    rest_mib: list[float] = field(default_factory=list)
    peak_mib: list[float] = field(default_factory=list)
    sockets: list[int] = field(default_factory=list)
    tally: dict[str, Counter[str]] = field(default_factory=dict)
    conflicts: dict[str, float] = field(default_factory=dict)


class Meter:
    """Reads the processes of a stack before and after something."""

    def __init__(self, stack: Stack, client: HttpClient) -> None:
        self._stack = stack
        self._client = client

    async def read(self) -> tuple[float, list[float], float, int]:
        revision = int((await self._client.list(Cluster, Query(namespace=NAMESPACE, limit=1))).resource_version)
        pids = self._stack.pids()
        return time.monotonic(), [cpu_seconds([pid]) for pid in pids], cpu_seconds([self._stack.site.pid]), revision

    async def since(self, before: tuple[float, list[float], float, int]) -> Phase:
        now = await self.read()
        cpu = [after - earlier for after, earlier in zip(now[1], before[1], strict=True)]
        return Phase(now[0] - before[0], cpu, now[2] - before[2], now[3] - before[3])


@dataclass
class Arrivals:
    """Notes which clusters have got somewhere, and when."""

    count: int
    say: Callable[[int], None]
    times: dict[str, float] = field(default_factory=dict)
    began: float = field(default_factory=time.monotonic)

    async def await_all(self, client: HttpClient, kind: Any, holds: Callable[[Any], bool], longest: float) -> None:
        """Until all have, or the time is over."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(longest):
                while len(self.times) < self.count:
                    with contextlib.suppress(Expired):  # a busy server forgets soon: look at all again
                        await self._follow(client, kind, holds)

    async def _follow(self, client: HttpClient, kind: Any, holds: Callable[[Any], bool]) -> None:
        async with client.watch(kind, Query(namespace=NAMESPACE), initial_events=True) as events:
            async for event in events:
                if event.type in ("ADDED", "MODIFIED") and holds(event.object):
                    self._note(event.object.metadata.name)
                if len(self.times) == self.count:
                    return

    def _note(self, name: str) -> None:
        if name not in self.times:
            self.times[name] = time.monotonic() - self.began
            if len(self.times) % max(1, self.count // 10) == 0:
                self.say(len(self.times))


async def for_all(count: int, work: Callable[[int], Any]) -> None:
    room = asyncio.Semaphore(AT_ONCE)

    async def one(number: int) -> None:
        async with room:
            await work(number)

    async with asyncio.TaskGroup() as group:
        for number in range(count):
            group.create_task(one(number))


class Measurement:
    """One plane, phase by phase."""

    def __init__(self, found: Stack, client: HttpClient, tally: Tally, count: int, longest: float) -> None:
        self._client, self._meter, self._tally = client, Meter(found, client), tally
        self._count, self._longest, self._pids = count, longest, found.pids()
        memory, opened = [resident_mib([pid]) for pid in self._pids], [sockets(pid) for pid in self._pids]
        self.result = Result(found.name, count, memory, opened)

    def _say(self, text: str) -> None:
        print(f"  {self.result.name}: {text}", file=sys.stderr, flush=True)

    def _say_number(self, number: int) -> None:
        used = sum(cpu_seconds([pid]) for pid in self._pids)
        self._say(f"{number} after {used:.0f} s CPU, {resident_mib(self._pids):.0f} MiB")

    def _say_phase(self, what: str, phase: Phase) -> None:
        each = 1000 / self._count
        self._say(
            f"{what} after {phase.wall:.1f} s; each: {_parts([cpu * each for cpu in phase.cpu])} ms of CPU, "
            f"{phase.site * each:.0f} of the site, {phase.writes / self._count:.1f} writes"
        )

    async def empty(self) -> None:
        before = await self._meter.read()
        await asyncio.sleep(_EMPTY_SECONDS)
        self.result.empty = await self._meter.since(before)

    async def create(self) -> bool:
        before, arrivals = await self._meter.read(), Arrivals(self._count, self._say_number)
        waiting = asyncio.create_task(arrivals.await_all(self._client, Cluster, is_up, self._longest))
        await for_all(self._count, lambda number: create_cluster(self._client, number))
        await waiting
        result = self.result
        result.made = await self._meter.since(before)
        result.first, result.up = min(arrivals.times.values(), default=0.0), len(arrivals.times)
        self._say_phase(f"{result.up} Available", result.made)
        await asyncio.sleep(_SETTLE_SECONDS)
        result.tally["made"] = self._tally.take()
        return result.up == self._count

    async def rest(self, seconds: float) -> None:
        result, before = self.result, await self._meter.read()
        await asyncio.sleep(seconds)
        result.rest = await self._meter.since(before)
        result.sockets = [sockets(pid) for pid in self._pids]
        result.rest_mib = [resident_mib([pid]) for pid in self._pids]
        result.tally["at rest"] = self._tally.take()
        idle = sum(resting(result)) / self._count * 1000
        self._say(f"at rest: {sum(result.rest_mib):.0f} MiB, {sum(result.sockets)} sockets, {idle:.3f} ms/s each")

    async def roll(self) -> None:
        result, before = self.result, await self._meter.read()
        arrivals = Arrivals(self._count, self._say_number)
        await for_all(self._count, lambda number: roll(self._client, number))
        await arrivals.await_all(self._client, KubeadmControlPlane, is_rolled, self._longest)
        result.rolled, result.replaced = await self._meter.since(before), len(arrivals.times)
        self._say_phase(f"{result.replaced} replaced", result.rolled)
        await asyncio.sleep(_SETTLE_SECONDS)
        result.tally["rolled"] = self._tally.take()

    def end(self) -> None:
        self.result.peak_mib = [peak_mib(pid) for pid in self._pids]


async def measure(found: Stack, count: int, given: argparse.Namespace) -> Result:
    async with found.client() as client, Tally(client, given.details) as tally:
        measurement = Measurement(found, client, tally, count, given.longest)
        await measurement.empty()
        if await measurement.create():
            await measurement.rest(given.rest)
            if not given.no_rollout:
                await measurement.roll()
        measurement.end()
        measurement.result.conflicts = await found.conflicts(client)
        return measurement.result


HEAD = (
    "plane", "clusters", "first s", "all s", "CPU ms each", "site CPU ms each", "writes each", "MiB at rest (at start)",
    "KiB each", "sockets each", "idle ms/s each", "peak MiB", "rollout s", "CPU ms each", "writes each",
)  # fmt: skip


def _parts(values: list[float], form: str = "{:.0f}") -> str:
    """One number, and that of each process."""
    total = form.format(sum(values))
    return total if len(values) == 1 else f"{total} ({' + '.join(form.format(each) for each in values)})"


def resting(result: Result) -> list[float]:
    """CPU seconds per second that all clusters at rest take, by process."""
    rest, empty = result.rest, result.empty
    assert rest is not None
    assert empty is not None
    return [now / rest.wall - before / empty.wall for now, before in zip(rest.cpu, empty.cpu, strict=True)]


def row(result: Result) -> str:
    count, made, rolled = result.clusters, result.made, result.rolled
    assert made is not None
    cells = [
        result.name,
        str(count),
        f"{result.first:.1f}",
        _wall(made, result.up, count),
        _parts([each / count * 1000 for each in made.cpu]),
        f"{made.site / count * 1000:.0f}",
        f"{made.writes / count:.1f}",
        *(_resting_cells(result) if result.rest is not None else ["-"] * 4),
        _parts(result.peak_mib),
        "-" if rolled is None else _wall(rolled, result.replaced, count),
        "-" if rolled is None else _parts([each / count * 1000 for each in rolled.cpu]),
        "-" if rolled is None else f"{rolled.writes / count:.1f}",
    ]
    return "| " + " | ".join(cells) + " |"


def _wall(phase: Phase, reached: int, count: int) -> str:
    return f"{phase.wall:.1f}" if reached == count else f"{reached} after {phase.wall:.1f}"


def _resting_cells(result: Result) -> list[str]:
    count = result.clusters
    grown = [after - before for after, before in zip(result.rest_mib, result.start_mib, strict=True)]
    opened = [after - before for after, before in zip(result.sockets, result.start_sockets, strict=True)]
    return [
        f"{_parts(result.rest_mib)} ({sum(result.start_mib):.0f})",
        _parts([each * 1024 / count for each in grown]),
        _parts([each / count for each in opened], "{:.2f}"),
        _parts([each / count * 1000 for each in resting(result)], "{:.3f}"),
    ]


def show_details(result: Result) -> None:
    for phase, counts in result.tally.items():
        statuses = sum(number for what, number in counts.items() if what.endswith("status"))
        print(f"  {phase}: {statuses / result.clusters:.1f} statuses")
        for what, number in sorted(counts.items(), key=lambda each: -each[1]):
            print(f"    {number / result.clusters:7.2f} {what}")
    print(f"  conflicts: {json.dumps({name: number for name, number in result.conflicts.items() if number})}")


def estimate(result: Result, clusters: int) -> str:
    """What so many would need on a machine with cores enough, if each costs as much as here."""
    count, made = result.clusters, result.made
    assert made is not None
    factor = clusters / count
    opened = sum(result.sockets) - sum(result.start_sockets)
    grown = sum(result.rest_mib) - sum(result.start_mib)
    cpu = sum(made.cpu) * factor
    largest = max(range(len(result.rest_mib)), key=lambda each: result.rest_mib[each])
    alone = result.start_mib[largest] + (result.rest_mib[largest] - result.start_mib[largest]) * factor
    return (
        f"{result.name}, from {count} to {clusters:,}: {cpu / 60:.0f} minutes of CPU to create them, "
        f"{(sum(result.start_mib) + grown * factor) / 1024:.1f} GiB ({alone / 1024:.1f} in the largest process), "
        f"{opened * factor:,.0f} connections to them, {sum(resting(result)) * factor:.1f} cores at rest"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--clusters", type=int, nargs="+", default=[1000])
    parser.add_argument("--planes", nargs="+", default=["embedded:1", "embedded:2", "kube:1", "kube:3"])
    help_rest = "how long clusters at rest are measured; 600 contain all periodic work (default: 30)"
    parser.add_argument("--rest", type=float, default=30.0, metavar="SECONDS", help=help_rest)
    parser.add_argument("--no-rollout", action="store_true")
    parser.add_argument("--details", action="store_true", help="writes by kind (its watches cost CPU of the plane)")
    parser.add_argument("--estimate", type=int, default=10_000, help="say what so many would cost, by these figures")
    help_longest = "how long all clusters together may take to be created, and again to be replaced (default: 3600)"
    parser.add_argument("--longest", type=float, default=3600.0, metavar="SECONDS", help=help_longest)
    given = parser.parse_args()
    results: list[Result] = []
    print("| " + " | ".join(HEAD) + " |", "|" + "---|" * len(HEAD), sep="\n", flush=True)
    for name in given.planes:
        for count in given.clusters:
            try:
                with stack(name) as found:
                    result = asyncio.run(measure(found, count, given))
            except Exception:  # the others are measured all the same
                traceback.print_exc()
                continue
            print(row(result), flush=True)
            results.append(result)
            if given.details:
                show_details(result)
    print()
    for result in (each for each in results if each.rest is not None):
        print(estimate(result, given.estimate), flush=True)
    if len(results) < len(given.planes) * len(given.clusters):
        sys.exit("not all planes could be measured: see above")


if __name__ == "__main__":
    main()
