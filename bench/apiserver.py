"""Homeport's API server and kube-apiserver with etcd, side by side, doing the same work in one run.

    python bench/apiserver.py [--objects N] [--write]     --write puts the table into docs/reference/performance.md

CPU time of the servers' processes is the number to trust; wall-clock rates include the load generator, which shares the
cores. Both servers speak TLS, check RBAC and a schema with rules, track field managers and make every write durable.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import uvloop

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "tests")]

from process import cpu_seconds, resident_mib  # noqa: E402
from sample import CRD, machine, resource_of, status  # noqa: E402

from homeport.api.meta import Resource  # noqa: E402
from homeport.client import kubeconfig  # noqa: E402
from homeport.client.errors import AlreadyExists, ApiError  # noqa: E402
from homeport.client.http import HttpClient  # noqa: E402
from homeport.client.protocol import Key, MergePatch, Query, Write  # noqa: E402
from homeport.machinery import yaml  # noqa: E402
from realkube import RealKube, find_binaries  # noqa: E402

CONFIG_MAP = Resource("", "v1", "ConfigMap", "configmaps")
CRDS = Resource("apiextensions.k8s.io", "v1", "CustomResourceDefinition", "customresourcedefinitions", False)
WRITERS = 8
STATUS_WRITE = Write(field_manager="bench-status")


@dataclass
class Server:
    name: str
    kubeconfig: Path
    pids: list[int]
    ready_seconds: float
    results: dict[str, float] = field(default_factory=dict)

    def client(self) -> HttpClient:
        return HttpClient(kubeconfig.load(self.kubeconfig))


@asynccontextmanager
async def homeport() -> AsyncIterator[Server]:
    with tempfile.TemporaryDirectory(prefix="homeport-bench-") as folder:
        command = [sys.executable, "-m", "homeport", "up", "--data", folder, "--listen", "127.0.0.1:0"]
        began = time.monotonic()
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)  # noqa: ASYNC220
        assert process.stdout is not None
        while b"ready" not in (line := process.stdout.readline()):
            if not line:
                raise RuntimeError("homeport up did not start")
        ready = time.monotonic() - began
        try:
            yield Server("Homeport", Path(folder) / "kubeconfig", [process.pid], ready)
        finally:
            process.terminate()
            process.wait(20)


@asynccontextmanager
async def kube() -> AsyncIterator[Server]:
    with RealKube() as real:
        pids = [process.pid for process in real.processes.values()]
        ready = real.ready_seconds + real.etcd_ready_seconds
        yield Server("kube-apiserver + etcd", real.kubeconfig, pids, ready)


async def spread(count: int, work: Callable[[int], Awaitable[Any]], workers: int = WRITERS) -> None:
    numbers = iter(range(count))

    async def worker() -> None:
        for number in numbers:
            await work(number)

    async with asyncio.TaskGroup() as group:
        for _ in range(workers):
            group.create_task(worker())


async def rate(server: Server, name: str, count: int, work: Callable[[int], Awaitable[Any]]) -> None:
    """CPU milliseconds of the server per operation, and operations a second."""
    cpu, wall = cpu_seconds(server.pids), time.monotonic()
    await spread(count, work)
    server.results[f"{name}, CPU ms"] = (cpu_seconds(server.pids) - cpu) * 1000 / count
    server.results[f"{name}, per second"] = count / (time.monotonic() - wall)
    print(f"  {server.name}: {name} done", flush=True)


async def prepare(client: HttpClient, crd: dict[str, Any] = CRD) -> None:
    for body, kind in (
        ({"metadata": {"name": "default"}}, Resource("", "v1", "Namespace", "namespaces", False)),
        (crd, CRDS),
    ):
        try:
            await client.create(body, kind=kind)
        except AlreadyExists:
            continue
    deadline = time.monotonic() + 30
    while True:  # a real server needs a moment until it serves a new kind
        try:
            await client.list(resource_of(crd))
            return
        except ApiError:
            if time.monotonic() > deadline:
                raise
            await asyncio.sleep(0.05)


async def measure(server: Server, objects: int, crd: dict[str, Any]) -> None:
    kind = resource_of(crd)
    server.results["ready after, s"] = server.ready_seconds
    async with AsyncExitStack() as stack:
        client = server.client()
        stack.push_async_callback(client.close)
        await prepare(client, crd)
        server.results["memory idle, MiB"] = resident_mib(server.pids)
        await rate(server, "create", objects, lambda n: client.create(machine(n, kind), kind=kind))
        server.results["memory with the objects, MiB"] = resident_mib(server.pids)
        some = min(objects, 2000)

        def key(n: int) -> Key:
            return Key("default", f"machine-{n % objects:05d}")

        for round_ in (1, 2):

            async def patch(n: int, round_: int = round_) -> None:
                body = MergePatch({"status": status(n, round_)})
                await client.patch(kind, key(n), body, STATUS_WRITE, subresource="status")

            await rate(server, "first status patch" if round_ == 1 else "status patch", some, patch)

        async def apply(n: int) -> None:
            body = machine(n % objects, kind)
            body["metadata"].pop("annotations")
            body["metadata"]["labels"]["applied"] = str(n)
            await client.apply(body, Write(field_manager="bench-apply"), kind=kind, force=True)

        await rate(server, "server-side apply", some, apply)
        await rate(server, "get", some * 2, lambda n: client.get(kind, key(n)))
        await lists(server, client, objects, kind)
        await rate(
            server,
            "create ConfigMap",
            some,
            lambda n: client.create(
                {"metadata": {"name": f"cm-{n}", "namespace": "default"}, "data": {"k": "v" * 200}}, kind=CONFIG_MAP
            ),
        )
        for watchers in (1, 50):
            await delivery(server, client, watchers)
        await idle_watches(server, 2000, kind)
        server.results["memory at the end, MiB"] = resident_mib(server.pids)


async def lists(server: Server, client: HttpClient, objects: int, kind: Resource) -> None:
    cpu, walls = cpu_seconds(server.pids), []
    for _ in range(5):
        began = time.monotonic()
        page = await client.list(kind)
        walls.append(time.monotonic() - began)
        assert len(page.items) == objects
    server.results[f"list of {objects}, CPU ms"] = (cpu_seconds(server.pids) - cpu) * 1000 / 5
    server.results[f"list of {objects}, ms"] = statistics.median(walls) * 1000


async def delivery(server: Server, client: HttpClient, watchers: int) -> None:
    """From just before a write is sent until each watcher has the event."""
    sent: dict[str, float] = {}
    delays: list[float] = []
    start = (await client.list(CONFIG_MAP, Query(limit=1))).resource_version
    writes = 100
    query = Query(namespace="default", labels=f"watched=w{watchers}", resource_version=start)

    async def watcher(ready: asyncio.Event) -> None:
        seen = 0
        async with client.watch(CONFIG_MAP, query) as events:
            ready.set()
            async for event in events:
                if event.type == "ADDED":
                    delays.append(time.monotonic() - sent[event.object.name])
                    seen += 1
                    if seen == writes:
                        return

    async with asyncio.TaskGroup() as group:
        flags = [asyncio.Event() for _ in range(watchers)]
        for flag in flags:
            group.create_task(watcher(flag))
        for flag in flags:
            await flag.wait()
        for n in range(writes):
            name = f"watched-{watchers}-{n}"
            meta = {"name": name, "namespace": "default", "labels": {"watched": f"w{watchers}"}}
            sent[name] = time.monotonic()
            await client.create({"metadata": meta}, kind=CONFIG_MAP)
    server.results[f"watch delivery to {watchers}, ms p50"] = statistics.median(delays) * 1000
    print(f"  {server.name}: delivery to {watchers} done", flush=True)


async def idle_watches(server: Server, count: int, kind: Resource) -> None:
    """Memory that idle TLS watches take, each on a connection of its own."""
    before = resident_mib(server.pids)
    clients = []

    async def hold(ready: asyncio.Event, stop: asyncio.Event) -> None:
        client = server.client()
        clients.append(client)
        async with client.watch(kind, Query(labels="never=matched", resource_version="0")):
            ready.set()
            await stop.wait()

    stop = asyncio.Event()
    async with asyncio.TaskGroup() as group:
        for base in range(0, count, 50):
            flags = [asyncio.Event() for _ in range(50)]
            for flag in flags:
                group.create_task(hold(flag, stop))
            for flag in flags:
                await flag.wait()
            del base
        server.results[f"{count} idle watches, MiB"] = resident_mib(server.pids) - before
        stop.set()
    for client in clients:
        await client.close()
    print(f"  {server.name}: idle watches done", flush=True)


def better(name: str, ours: float, theirs: float) -> str:
    if ours <= 0 or theirs <= 0:
        return ""
    ratio = ours / theirs if "per second" in name else theirs / ours
    return f"{ratio:.1f}x"


def table(ours: Server, theirs: Server | None) -> str:
    lines = ["| | Homeport | kube-apiserver + etcd | better by |", "|---|---|---|---|"]
    for name, value in ours.results.items():
        other = theirs.results.get(name) if theirs else None
        shown = f"{other:,.2f}" if other is not None else "-"
        lines.append(f"| {name} | {value:,.2f} | {shown} | {better(name, value, other) if other else ''} |")
    return "\n".join(lines)


async def run(objects: int, only_ours: bool, crd: dict[str, Any]) -> tuple[Server, Server | None]:
    theirs = None
    if not only_ours:
        async with kube() as server:
            await measure(server, objects, crd)
            theirs = server
    async with homeport() as server:
        await measure(server, objects, crd)
    return server, theirs


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--objects", type=int, default=5000)
    parser.add_argument("--crd", type=Path, help="measure with this definition of a Machine instead of the sample's")
    parser.add_argument("--ours", action="store_true", help="leave the real server out")
    parser.add_argument("--write", action="store_true", help="write docs/reference/performance.md")
    options = parser.parse_args()
    missing = find_binaries()
    if isinstance(missing, str) and not options.ours:
        sys.exit(f"nothing to compare with: {missing}")
    crd = CRD if options.crd is None else yaml.load(options.crd.read_text(), str(options.crd))
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        ours, theirs = runner.run(run(options.objects, options.ours, crd))
    text = table(ours, theirs)
    print(text)
    if options.write:
        write(text, options.objects)


def write(text: str, objects: int) -> None:
    page = HERE.parent / "docs" / "reference" / "performance.md"
    head, marker, _ = page.read_text().partition("<!-- measured -->")
    machine_ = (
        f"{os.cpu_count()} cores, Python {platform.python_version()}, {objects} objects, {WRITERS} concurrent clients"
    )
    page.write_text(f"{head}{marker}\n\nMeasured on {machine_}.\n\n{text}\n")
    print(f"written to {page}")


if __name__ == "__main__":
    main()
