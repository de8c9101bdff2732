"""What clusters cost: from applied manifests to Available, on the embedded server with simulated machines of no delay.

    python bench/clusters.py [--sizes 1x1+0 50x1+0 1000x1+0 50x3+7] [--disk] [--no-apart] [--details]

Each size runs in a process of its own. Controllers, API server and simulated workload clusters share that process, and
everything goes over the wire where it does in use: controllers talk TLS to each workload cluster. What the workload
clusters cost alone is measured by a second process that boots the same machines without a management plane
(bench/sim.py).
"""

from __future__ import annotations

import argparse
import asyncio
import collections
import json
import os
import re
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

WAVE = 64  # clusters that come up at once: as a user's `for` loop, not a thousand dials in one tick


def resident_mib() -> float:
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20


def cpu_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


class Calls:
    """Counts what is asked of the management API, by verb and kind."""

    def __init__(self, registry: Any) -> None:
        self.made: collections.Counter[str] = collections.Counter()
        for verb in ("get", "list", "watch", "create", "update", "patch", "delete"):
            setattr(registry, verb, self._counted(verb, getattr(registry, verb)))

    def _counted(self, verb: str, call: Callable[..., Any]) -> Callable[..., Any]:
        def counted(*args: Any, **kwargs: Any) -> Any:
            served = args[0] if hasattr(args[0], "plural") else args[1]
            part = kwargs.get("subresource")
            self.made[f"{verb} {served.plural}/{part}" if part else f"{verb} {served.plural}"] += 1
            return call(*args, **kwargs)

        return counted


async def measure(count: int, control_planes: int, workers: int, database: Path | None) -> dict[str, Any]:
    from capikit.harness import harness
    from homeport.api.cluster.v1beta2 import Cluster
    from homeport.app.memory import tune_garbage_collection
    from homeport.client.protocol import Query
    from homeport.machinery import condition

    def is_up(cluster: Cluster) -> bool:
        planes_up = cluster.status.control_plane.available_replicas or 0
        workers_up = cluster.status.workers.available_replicas or 0
        return condition.is_true(cluster.status.conditions, "Available") and (planes_up, workers_up) == (
            control_planes,
            workers,
        )

    async with harness(database=database) as h:
        tune_garbage_collection()
        calls = Calls(h.plane.server.registry)
        revision = h.plane.server.store.revision
        memory_before, cpu_before, started = resident_mib(), cpu_seconds(), time.monotonic()
        room = asyncio.Semaphore(WAVE)

        async def await_all() -> None:
            ready: set[str] = set()
            async with h.client.watch(Cluster, Query(namespace="default"), initial_events=True) as events:
                async for event in events:
                    if event.type in ("ADDED", "MODIFIED") and is_up(event.object):
                        if event.object.metadata.name not in ready:
                            ready.add(event.object.metadata.name)
                            room.release()
                            if len(ready) % 100 == 0:  # a thousand take minutes: show that it goes on, and how fast
                                spent = f"{time.monotonic() - started:.0f} s, {cpu_seconds() - cpu_before:.0f} s CPU"
                                print(f"  {len(ready)} up after {spent}, {resident_mib():.0f} MiB", file=sys.stderr)
                        if len(ready) == count:
                            return

        waiting = asyncio.create_task(await_all())
        for number in range(count):
            await room.acquire()
            await h.create(f"c{number:04d}", control_planes, workers)
        await waiting
        machines = count * (control_planes + workers)
        remote: collections.Counter[str] = collections.Counter()
        for cluster in h.fleet.clusters():
            if cluster.server.http is not None:
                remote.update(cluster.server.http.metrics.requests())
        return {
            "wall": time.monotonic() - started,
            "cpu": cpu_seconds() - cpu_before,
            "memory": resident_mib() - memory_before,
            "peak": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
            "writes": (h.plane.server.store.revision - revision) / count,
            "calls": calls.made.total() / machines,
            "remote": remote.total() / machines,
            "reconciles": {each.name: each.metrics.counts for each in h.plane.manager.controllers},
            "by call": calls.made,
            "by remote call": remote,
        }


def run_one(size: str, disk: bool) -> None:
    import structlog
    import uvloop

    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(40))
    allow_descriptors()
    with tempfile.TemporaryDirectory() as folder:
        database = Path(folder) / "bench.db" if disk else None
        print(json.dumps(uvloop.run(measure(*numbers(size), database))))


def run_apart(size: str) -> None:
    """The same machines, nobody managing them."""
    import structlog
    import uvloop
    from sim import boot_clusters

    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(40))
    allow_descriptors()
    print(json.dumps(uvloop.run(boot_clusters(*numbers(size)))))


def numbers(size: str) -> tuple[int, int, int]:
    """`50x3+7`: 50 clusters of 3 control planes and 7 workers."""
    found = re.fullmatch(r"(\d+)x(\d+)\+(\d+)", size)
    if found is None:
        raise SystemExit(f"{size!r} is no size: write clusters x control planes + workers, as in 50x3+7")
    return int(found[1]), int(found[2]), int(found[3])


def allow_descriptors() -> None:
    """A workload cluster takes about ten: its listener, and both ends of each connection to it."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def row(size: str, found: dict[str, Any], apart: dict[str, float] | None) -> str:
    count = numbers(size)[0]
    cells = [
        size,
        f"{found['wall']:.2f}",
        f"{found['cpu']:.2f}",
        f"{found['cpu'] / count * 1000:.0f}",
        f"{apart['cpu'] / count * 1000:.0f}" if apart else "-",
        f"{found['peak']:.0f}",
        f"{found['memory'] * 1024 / count:.0f}",
        f"{apart['memory'] * 1024 / count:.0f}" if apart else "-",
        f"{found['writes']:.1f}",
        f"{found['calls']:.1f}",
        f"{found['remote']:.1f}",
        f"{sum(sum(each.values()) for each in found['reconciles'].values()) / count:.1f}",
    ]
    return "| " + " | ".join(cells) + " |"


HEAD = (
    "clusters", "wall s", "CPU s", "CPU ms each", "machines alone", "peak MiB", "KiB each", "machines alone",
    "writes each", "API calls per machine", "calls to it per machine", "reconciles each",
)  # fmt: skip


def details(found: dict[str, Any], count: int) -> None:
    """Who works how often, and what is asked for: per cluster."""
    for name, counts in sorted(found["reconciles"].items(), key=lambda each: -sum(each[1].values())):
        shown = ", ".join(f"{number / count:.1f} {outcome}" for outcome, number in counts.items() if number)
        print(f"    {sum(counts.values()) / count:6.1f} {name}: {shown}")
    for title in ("by call", "by remote call"):
        print(f"  {title}")
        for call, number in sorted(found[title].items(), key=lambda each: -each[1]):
            print(f"    {number / count:6.1f} {call}")


def in_process(flag: str, size: str, disk: bool) -> dict[str, Any]:
    command = [sys.executable, __file__, flag, size, *(["--disk"] if disk else [])]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE)
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", nargs="*", default=["1x1+0", "50x1+0", "1000x1+0", "50x3+7"])
    parser.add_argument("--disk", action="store_true", help="the server's database on disk instead of in memory")
    parser.add_argument("--no-apart", action="store_true", help="don't measure the machines alone")
    parser.add_argument("--details", action="store_true", help="reconciles by controller, calls by verb and kind")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    parser.add_argument("--apart", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.one:
        run_one(args.one, args.disk)
        return
    if args.apart:
        run_apart(args.apart)
        return
    print("| " + " | ".join(HEAD) + " |", "|" + "---|" * len(HEAD), sep="\n")
    for size in args.sizes:
        found = in_process("--one", size, args.disk)
        apart = None if args.no_apart else in_process("--apart", size, False)
        print(row(size, found, apart), flush=True)
        if args.details:
            details(found, numbers(size)[0])


if __name__ == "__main__":
    main()
