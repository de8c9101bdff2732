"""What many workload clusters cost: while they are made, at rest, and while they roll.

    python bench/scale.py [--clusters 1000] [--planes embedded:1 embedded:2 kube:1 kube:3] [--budget 480]
    python bench/scale.py --planes kube:3 --under-way 100 --roll 100

Prints a row for each plane to stdout, as docs/reference/performance.md has them. To stderr: progress every 15 seconds,
and what each phase cost as soon as it is over. A plane takes at most `--budget` seconds: a phase that has no time left
ends with what was reached, and the row says so. Ctrl-C ends all processes that were started.

`embedded:N` is `homeport up --workers N`; `kube:N` are N replicas (`homeport up --kubeconfig --shards`) on a real
kube-apiserver with etcd. Each cluster has one control plane machine on a simulated Nutanix without delays. All of them
are applied at once, unless `--under-way` limits that: then no more are applied when their time is over, and those that
are up are measured at rest and rolled. The simulated site and its workload clusters run in a process of their own,
which is not counted; kube-apiserver and etcd are not counted either.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import signal
import sys
import time
import traceback
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "tests")]

from process import cpu_seconds, peak_mib, resident_mib, sockets  # noqa: E402
from scale_object import NAMESPACE, create_cluster, is_rolled, is_up, name_of, roll  # noqa: E402
from scale_plane import Stack, stack  # noqa: E402
from scale_table import Phase, Result, details, estimate, head, parts, row  # noqa: E402
from scale_tally import Tally  # noqa: E402

from homeport.api.cluster.v1beta2 import Cluster  # noqa: E402
from homeport.api.controlplane.v1beta2 import KubeadmControlPlane  # noqa: E402
from homeport.client.errors import Expired  # noqa: E402
from homeport.client.http import HttpClient  # noqa: E402
from homeport.client.protocol import Query  # noqa: E402

AT_ONCE = 16  # requests of the user at a time
EMPTY_SECONDS = 10.0
SETTLE_SECONDS = 30.0  # after the last one is up: stragglers come to rest
ROLL_SECONDS = 60.0  # at least so long is left for the rollout
TELL_SECONDS = 15.0


def say(name: str, text: str) -> None:
    print(f"  {name}: {text}", file=sys.stderr, flush=True)


class Meter:
    """Reads the processes of a stack before and after something."""

    def __init__(self, stack: Stack, client: HttpClient) -> None:
        self._stack = stack
        self._client = client

    async def read(self) -> tuple[float, list[float], float, int]:
        revision = int((await self._client.list(Cluster, Query(namespace=NAMESPACE, limit=1))).resource_version)
        pids = self._stack.pids()
        return time.monotonic(), [cpu_seconds([pid]) for pid in pids], cpu_seconds([self._stack.site.pid]), revision

    async def since(self, before: tuple[float, list[float], float, int], wanted: int = 0, reached: int = 0) -> Phase:
        now = await self.read()
        cpu = [after - earlier for after, earlier in zip(now[1], before[1], strict=True)]
        return Phase(now[0] - before[0], cpu, now[2] - before[2], now[3] - before[3], wanted, reached)


class Arrivals:
    """Notes which of the clusters have got somewhere, and when."""

    def __init__(self, kind: Any, holds: Callable[[Any], bool], names: set[str]) -> None:
        self._kind, self._holds, self._names = kind, holds, names
        self._began = time.monotonic()
        self.times: dict[str, float] = {}
        self.news = asyncio.Event()

    async def follow(self, client: HttpClient) -> None:
        while True:
            with contextlib.suppress(Expired):  # a busy server forgets soon: look at all again
                query = Query(namespace=NAMESPACE)
                async with client.watch(self._kind, query, initial_events=True) as events:
                    async for event in events:
                        name = event.object.metadata.name if event.type in ("ADDED", "MODIFIED") else ""
                        if name in self._names and name not in self.times and self._holds(event.object):
                            self.times[name] = time.monotonic() - self._began
                            self.news.set()

    async def reach(self, count: int) -> None:
        while len(self.times) < count:
            self.news.clear()
            await self.news.wait()


class Measurement:
    """One plane, phase by phase."""

    def __init__(self, found: Stack, client: HttpClient, tally: Tally, given: argparse.Namespace, count: int) -> None:
        self._client, self._meter, self._tally, self._given = client, Meter(found, client), tally, given
        self._count, self._pids = count, found.pids()
        self._deadline = found.began + given.budget
        memory, opened = [resident_mib([pid]) for pid in self._pids], [sockets(pid) for pid in self._pids]
        self.result = Result(found.name, 0, memory, opened)

    def _say(self, text: str) -> None:
        say(self.result.name, text)

    def _say_phase(self, what: str, phase: Phase) -> None:
        each = 1000 / phase.each
        self._say(
            f"{phase.reached} of {phase.wanted} {what} after {phase.wall:.1f} s; each: "
            f"{parts([cpu * each for cpu in phase.cpu])} ms of CPU, {phase.site * each:.0f} of the site, "
            f"{phase.writes / phase.each:.1f} writes"
        )

    @contextlib.asynccontextmanager
    async def _following(self, arrivals: Arrivals, what: str) -> AsyncIterator[None]:
        tasks = [asyncio.create_task(arrivals.follow(self._client)), asyncio.create_task(self._tell(arrivals, what))]
        try:
            yield
        finally:
            for task in tasks:
                task.cancel()
            ended = await asyncio.gather(*tasks, return_exceptions=True)
        for each in ended:
            if isinstance(each, Exception):
                raise each

    async def _tell(self, arrivals: Arrivals, what: str) -> None:
        began = time.monotonic()
        while True:
            await asyncio.sleep(TELL_SECONDS)
            self._say(
                f"{len(arrivals.times)} {what} after {time.monotonic() - began:.0f} s; "
                f"{cpu_seconds(self._pids):.0f} s of CPU, {resident_mib(self._pids):.0f} MiB, "
                f"{self._deadline - time.monotonic():.0f} s left"
            )

    async def empty(self) -> None:
        before = await self._meter.read()
        await asyncio.sleep(EMPTY_SECONDS)
        self.result.empty = await self._meter.since(before)

    async def create(self) -> bool:
        """Whether all that were applied are up."""
        given, result = self._given, self.result
        later = SETTLE_SECONDS + given.rest + (ROLL_SECONDS if given.roll != 0 else 0.0)
        end = self._deadline - later
        before = await self._meter.read()
        arrivals = Arrivals(Cluster, is_up, {name_of(number) for number in range(self._count)})
        applied = 0
        async with self._following(arrivals, "Available"):
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout_at(_loop_time(end)):
                    for number in range(self._count):
                        if given.under_way:
                            await arrivals.reach(number + 1 - given.under_way)
                        elif number % AT_ONCE == 0:
                            await asyncio.gather(*(self._apply(each) for each in self._batch(number)))
                        if given.under_way:
                            await self._apply(number)
                        applied = number + 1
                    await arrivals.reach(self._count)
            if given.under_way and len(arrivals.times) < applied:  # the last ones, at the cost of the rollout's time
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout_at(_loop_time(end + ROLL_SECONDS)):
                        await arrivals.reach(applied)
        up = len(arrivals.times)
        result.made = await self._meter.since(before, self._count, up)
        result.first, result.clusters = min(arrivals.times.values(), default=0.0), up
        self._say_phase("Available", result.made)
        return up > 0 and (up == applied if given.under_way else up == self._count)

    def _batch(self, first: int) -> range:
        return range(first, min(first + AT_ONCE, self._count))

    async def _apply(self, number: int) -> None:
        await create_cluster(self._client, number)

    async def rest(self) -> None:
        await asyncio.sleep(SETTLE_SECONDS)
        result = self.result
        result.tally["made"] = self._tally.take()
        before = await self._meter.read()
        await asyncio.sleep(self._given.rest)
        result.rest = await self._meter.since(before)
        result.sockets = [sockets(pid) for pid in self._pids]
        result.rest_mib = [resident_mib([pid]) for pid in self._pids]
        result.tally["at rest"] = self._tally.take()
        idle = sum(result.resting()) / result.clusters * 1000
        self._say(f"at rest: {sum(result.rest_mib):.0f} MiB, {sum(result.sockets)} sockets, {idle:.3f} ms/s each")

    async def roll(self) -> None:
        result = self.result
        wanted = result.clusters if self._given.roll is None else min(self._given.roll, result.clusters)
        before = await self._meter.read()
        arrivals = Arrivals(KubeadmControlPlane, is_rolled, {f"{name_of(number)}-kcp" for number in range(wanted)})
        async with self._following(arrivals, "replaced"):
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout_at(_loop_time(self._deadline)):
                    for first in range(0, wanted, AT_ONCE):
                        numbers = range(first, min(first + AT_ONCE, wanted))
                        await asyncio.gather(*(roll(self._client, number) for number in numbers))
                    await arrivals.reach(wanted)
        result.rolled = await self._meter.since(before, wanted, len(arrivals.times))
        self._say_phase("replaced", result.rolled)
        result.tally["rolled"] = self._tally.take()

    async def end(self, found: Stack) -> None:
        self.result.peak_mib = [peak_mib(pid) for pid in self._pids]
        self._say(f"peak: {parts(self.result.peak_mib)} MiB")
        self.result.conflicts = await found.conflicts(self._client)


def _loop_time(moment: float) -> float:
    """Of time.monotonic, which need not be the loop's clock."""
    return asyncio.get_running_loop().time() + moment - time.monotonic()


async def measure(found: Stack, count: int, given: argparse.Namespace) -> Result:
    async with found.client() as client, Tally(client, given.details) as tally:
        measurement = Measurement(found, client, tally, given, count)
        await measurement.empty()
        if await measurement.create():
            await measurement.rest()
            if given.roll != 0:
                await measurement.roll()
        await measurement.end(found)
        return measurement.result


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--clusters", type=int, nargs="+", default=[1000])
    parser.add_argument("--planes", nargs="+", default=["embedded:1", "embedded:2", "kube:1", "kube:3"])
    help_budget = "how long each plane may take, from its start to its row (default: 480)"
    parser.add_argument("--budget", type=float, default=480.0, metavar="SECONDS", help=help_budget)
    help_rest = "how long clusters at rest are measured; 600 contain all periodic work (default: 30)"
    parser.add_argument("--rest", type=float, default=30.0, metavar="SECONDS", help=help_rest)
    help_way = "apply the next cluster only while fewer than this many are not Available (default: all at once)"
    parser.add_argument("--under-way", type=int, default=0, metavar="N", help=help_way)
    parser.add_argument("--roll", type=int, metavar="N", help="how many clusters roll (default: all; 0: none)")
    parser.add_argument("--details", action="store_true", help="writes by kind (its watches cost CPU of the plane)")
    parser.add_argument("--estimate", type=int, default=10_000, help="say what so many would cost, by these figures")
    return parser.parse_args()


def main() -> None:
    given = _arguments()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("terminated"))  # so that everything that was started ends, too
    results: list[Result] = []
    print(head(), flush=True)
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
                print(details(result))
    print()
    for result in (each for each in results if each.rest is not None):
        print(estimate(result, given.estimate), flush=True)
    if len(results) < len(given.planes) * len(given.clusters):
        sys.exit("not all planes could be measured: see above")


if __name__ == "__main__":
    main()
