"""A plane for hours in minutes: clusters are made and deleted, round after round, and what stays is counted.

    python bench/soak.py [--minutes 15] [--rounds N] [--clusters 2] [--every 5] [--census]

Each round makes the clusters of examples/02-cluster under names that were never used before, waits until all are
Available, deletes them and waits until they are gone. `--census` also prints which types of Python objects grew.
"""

from __future__ import annotations

import argparse
import asyncio
import collections
import copy
import gc
import os
import sys
import tempfile
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

from process import cpu_seconds, resident_mib  # noqa: E402

from homeport.app.log import import_structlog  # noqa: E402

import_structlog()

import uvloop  # noqa: E402

from homeport.api.cluster.v1beta2 import Cluster  # noqa: E402
from homeport.api.meta import Resource, Unstructured  # noqa: E402
from homeport.app import log  # noqa: E402
from homeport.app.plane import standalone  # noqa: E402
from homeport.app.platform import chosen  # noqa: E402
from homeport.app.settings import Settings, Simulators  # noqa: E402
from homeport.client import kubeconfig  # noqa: E402
from homeport.client.errors import NotFound  # noqa: E402
from homeport.client.http import HttpClient  # noqa: E402
from homeport.client.protocol import Key, Write  # noqa: E402
from homeport.machinery import condition, yaml  # noqa: E402

EXAMPLE = HERE.parent / "examples" / "02-cluster" / "cluster.yaml"
BY_KIND = {
    each.kind: each
    for each in (
        Resource("", "v1", "Secret", "secrets"),
        Resource("cluster.x-k8s.io", "v1beta2", "Cluster", "clusters"),
        Resource("cluster.x-k8s.io", "v1beta2", "MachineDeployment", "machinedeployments"),
        Resource("controlplane.cluster.x-k8s.io", "v1beta2", "KubeadmControlPlane", "kubeadmcontrolplanes"),
        Resource("bootstrap.cluster.x-k8s.io", "v1beta2", "KubeadmConfigTemplate", "kubeadmconfigtemplates"),
        Resource("infrastructure.cluster.x-k8s.io", "v1beta1", "NutanixCluster", "nutanixclusters"),
        Resource("infrastructure.cluster.x-k8s.io", "v1beta1", "NutanixMachineTemplate", "nutanixmachinetemplates"),
    )
}


class Quiet:
    """Who is told by the plane: nobody."""

    def __init__(self) -> None:
        self.up = asyncio.Event()

    def say(self, text: str) -> None: ...

    def ready(self, url: str) -> None:
        self.up.set()

    def changed(self, part: Any) -> None: ...

    async def follow(self, describe: Callable[[], Any]) -> None:
        await asyncio.Event().wait()


def manifest(name: str, address: str) -> list[dict[str, Any]]:
    text = EXAMPLE.read_text().replace("harbour", name).replace("10.0.0.101", address)
    return [copy.deepcopy(document) for document in yaml.load_all(text.encode())]


async def make(client: HttpClient, name: str, address: str) -> None:
    for document in manifest(name, address):
        document["metadata"]["namespace"] = "default"
        await client.create(Unstructured(document), Write(field_manager="soak"), kind=BY_KIND[document["kind"]])
    while True:
        found = await client.get(Cluster, Key("default", name))
        status = found.status
        ready = (status.control_plane.available_replicas, status.workers.available_replicas) == (3, 2)
        if ready and condition.is_true(status.conditions, "Available"):
            return
        await asyncio.sleep(0.2)


async def remove(client: HttpClient, name: str, address: str) -> None:
    await client.delete(BY_KIND["Cluster"], Key("default", name))
    while True:
        try:
            await client.get(Cluster, Key("default", name))
        except NotFound:
            break
        await asyncio.sleep(0.2)
    for document in manifest(name, address):
        try:
            await client.delete(BY_KIND[document["kind"]], Key("default", document["metadata"]["name"]))
        except NotFound:
            continue


def census() -> collections.Counter[str]:
    gc.collect()
    return collections.Counter(f"{type(each).__module__}.{type(each).__qualname__}" for each in gc.get_objects())


def size_mib(*paths: Path) -> float:
    return sum(path.stat().st_size for path in paths if path.exists()) / 2**20


def report(rounds: int, began: float, settings: Settings) -> None:
    pid = [os.getpid()]
    base = settings.database
    folder = sum(each.stat().st_size for each in settings.data.rglob("*") if each.is_file()) / 2**20
    cells = [
        f"{rounds:4d} rounds",
        f"{time.monotonic() - began:5.0f} s",
        f"{cpu_seconds(pid):5.0f} CPU s",
        f"{resident_mib(pid):6.0f} MiB resident",
        f"{size_mib(base, base.with_name(base.name + '-wal')):6.1f} MiB database",
        f"{folder:6.1f} MiB data directory",
        f"{len(os.listdir('/proc/self/fd')):4d} descriptors",
        f"{len(asyncio.all_tasks()):4d} tasks",
    ]
    print(", ".join(cells), flush=True)


async def soak(args: argparse.Namespace, folder: Path) -> None:
    settings = Settings.make(folder, "127.0.0.1:0", simulators=Simulators())
    show = Quiet()
    streams = log.configure(level="info", json=True)
    plane = asyncio.create_task(standalone.run(settings, show, chosen(()), streams))
    await asyncio.wait([plane, asyncio.create_task(show.up.wait())], return_when=asyncio.FIRST_COMPLETED)
    client = HttpClient(kubeconfig.load(settings.kubeconfig))
    began, rounds = time.monotonic(), 0
    before: collections.Counter[str] | None = None
    snapshot: Any = None
    gc.unfreeze()
    report(0, began, settings)
    while rounds < args.rounds and time.monotonic() - began < args.minutes * 60:
        named = [(f"c{rounds}-{number}", f"10.0.0.{101 + number}") for number in range(args.clusters)]
        await asyncio.gather(*(make(client, *each) for each in named))
        await asyncio.gather(*(remove(client, *each) for each in named))
        rounds += 1
        if rounds % args.every == 0:
            report(rounds, began, settings)
            if args.census:
                now = census()
                if before is not None:
                    show_growth(now, before)
                before = before or now
                if args.trace and rounds >= 2 * args.every:
                    show_lines(snapshot)
            if args.trace and snapshot is None:
                snapshot = tracemalloc.take_snapshot()
    if args.rest:
        await asyncio.sleep(args.rest)
        report(rounds, began, settings)
    await client.close()
    os.kill(os.getpid(), 15)
    await plane


def show_lines(before: Any) -> None:
    """Where the memory that is held now, and was not before, was allocated."""
    ours = (tracemalloc.Filter(False, tracemalloc.__file__),)
    now = tracemalloc.take_snapshot().filter_traces(ours)
    for each in now.compare_to(before.filter_traces(ours), "lineno")[:30]:
        print(f"    {each}", flush=True)


def show_growth(now: collections.Counter[str], before: collections.Counter[str]) -> None:
    grown = {name: (number - before[name], number) for name, number in now.items() if number > before[name]}
    for name, (more, number) in sorted(grown.items(), key=lambda each: -each[1][0])[:40]:
        print(f"    {more:+8d} {number:8d} {name}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=15.0)
    parser.add_argument("--rounds", type=int, default=1_000_000)
    parser.add_argument("--clusters", type=int, default=2)
    parser.add_argument("--every", type=int, default=5, help="rounds between two lines")
    parser.add_argument("--rest", type=float, default=0.0, help="seconds to wait after the last round")
    parser.add_argument("--census", action="store_true")
    parser.add_argument("--trace", action="store_true", help="also the lines that allocated what grew (slow)")
    args = parser.parse_args()
    if args.trace:
        tracemalloc.start(1)
    with tempfile.TemporaryDirectory(prefix="homeport-soak-") as folder:
        uvloop.run(soak(args, Path(folder)))


if __name__ == "__main__":
    main()
