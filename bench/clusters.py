"""What clusters cost: from applied manifests to Available, on the embedded server with simulated machines of no delay.

    python bench/clusters.py [--sizes 1x1+0 50x1+0 1000x1+0 50x3+7] [--disk]

Each size runs in a process of its own. Controllers, API server and simulated workload clusters share that process; what
the workload clusters cost is measured by running the same machines without a management plane (bench/sim.py) and told
apart there. Everything goes over the wire where it does in use: controllers talk TLS to each workload cluster.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import re
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))


def resident_mib() -> float:
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20


def cpu_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


async def measure(count: int, control_planes: int, workers: int, database: Path | None) -> dict[str, float]:
    from capikit.yard import yard
    from homeport.api.cluster.v1beta2 import Cluster
    from homeport.client.protocol import Query
    from homeport.machinery import condition

    async with yard(database=database) as y:
        calls_before = y.plane.server.store.revision
        memory_before, cpu_before, started = resident_mib(), cpu_seconds(), time.monotonic()
        names = [f"c{number:04d}" for number in range(count)]

        async def up() -> None:
            ready: set[str] = set()
            async with y.client.watch(Cluster, Query(namespace="default"), initial_events=True) as events:
                async for event in events:
                    if event.type == "BOOKMARK" or event.type == "DELETED":
                        continue
                    cluster = event.object
                    workers_up = cluster.status.workers.available_replicas or 0
                    planes_up = cluster.status.control_plane.available_replicas or 0
                    if (
                        condition.is_true(cluster.status.conditions, "Available")
                        and planes_up == control_planes
                        and workers_up == workers
                    ):
                        ready.add(cluster.metadata.name)
                        if len(ready) == count:
                            return

        waiting = asyncio.create_task(up())
        for name in names:
            await y.create(name, control_planes, workers)
        applied = time.monotonic() - started
        await waiting
        wall = time.monotonic() - started
        writes = y.plane.server.store.revision - calls_before
        machines = count * (control_planes + workers)
        return {
            "wall": wall,
            "applied": applied,
            "cpu": cpu_seconds() - cpu_before,
            "memory": resident_mib() - memory_before,
            "peak": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
            "writes": writes / count,
            "machines": machines,
        }


def run_one(size: str, disk: bool) -> None:
    import structlog
    import uvloop

    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(40))
    count, control_planes, workers = (int(each) for each in re.split("[x+]", size))
    with tempfile.TemporaryDirectory() as folder:
        database = Path(folder) / "bench.db" if disk else None
        found = uvloop.run(measure(count, control_planes, workers, database))
    cluster_cpu = found["cpu"] / count
    print(
        f"{size:>10}  {found['wall']:8.2f} s  {found['cpu']:8.2f} s  {cluster_cpu * 1000:8.0f} ms  {found['peak']:7.0f} MiB  "
        f"{found['memory'] * 1024 / count:8.0f} KiB  {found['writes']:7.1f}",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", nargs="*", default=["1x1+0", "50x1+0", "1000x1+0", "50x3+7"])
    parser.add_argument("--disk", action="store_true", help="the server's database on disk instead of in memory")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.one:
        run_one(args.one, args.disk)
        return
    print(f"{'size':>10}  {'wall':>10}  {'CPU':>10}  {'CPU each':>11}  {'peak':>11}  {'grown each':>12}  {'writes':>7}")
    for size in args.sizes:
        command = [sys.executable, __file__, "--one", size, *(["--disk"] if args.disk else [])]
        subprocess.run(command, check=True)


if __name__ == "__main__":
    main()
