"""Homeport's controller runtime and kopf, side by side, doing the same job on the same server in one run.

    python bench/runtime.py [--objects N] [--write]     --write puts the table into docs/reference/performance.md

The job: a cache of N Machines (1.5 KB each, a schema with rules), then one status write for each. In process means
inside `homeport up`, over HTTP means `homeport up --kubeconfig` as a process of its own. Every write is durable.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import uvloop

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

from apiserver import prepare, spread  # noqa: E402
from process import cpu_seconds  # noqa: E402
from sample import MACHINE, machine  # noqa: E402

from homeport.client import kubeconfig  # noqa: E402
from homeport.client.http import HttpClient  # noqa: E402
from homeport.client.protocol import Key  # noqa: E402

Child = subprocess.Popen[bytes]
KOPF = HERE.parent / ".venv" / "bench" / "bin" / "kopf"
KOPF_SECONDS = 40.0  # it is stopped then; a rate needs no more
PROBE_SECONDS = 0.05


@dataclass
class Run:
    """One way to do the job."""

    name: str
    results: dict[str, float] = field(default_factory=dict)


class Report:
    """What the measured process tells about itself, phase by phase."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def lines(self) -> list[dict[str, Any]]:
        if not self.path.exists():
            return []
        return [json.loads(line) for line in self.path.read_text().splitlines(keepends=True) if line.endswith("\n")]

    async def until(self, phase: str, alive: Child, seconds: float) -> dict[str, Any] | None:
        """None: not within that time."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            for line in self.lines():
                if line["phase"] == phase:
                    return line
            if alive.poll() is not None:
                raise RuntimeError(f"the process ended before {phase!r}")
            await asyncio.sleep(0.02)
        return None


WORKERS = 8  # as a controller has by default


def environment(report: Report, round_: int, objects: int, **more: str) -> dict[str, str]:
    paths = [str(HERE), *filter(None, [os.environ.get("PYTHONPATH")])]
    told = {"BENCH_REPORT": str(report.path), "BENCH_ROUND": str(round_), "BENCH_TOTAL": str(objects)}
    told["BENCH_WORKERS"] = str(WORKERS)
    return {**os.environ, "PYTHONPATH": os.pathsep.join(paths), **told, **more}


@asynccontextmanager
async def process(command: list[str], env: dict[str, str], ready: bytes = b"") -> AsyncIterator[Child]:
    """Runs until the end of the block; enters when it has said `ready`."""
    with tempfile.TemporaryFile() as log:
        out = subprocess.PIPE if ready else log
        child = subprocess.Popen(command, stdout=out, stderr=log, env=env)  # noqa: ASYNC220
        try:
            while ready and ready not in (line := child.stdout.readline()):  # type: ignore[union-attr]
                if not line:
                    log.seek(0)
                    raise RuntimeError(f"{command[1:5]} did not start: {log.read()[-2000:].decode()}")
            yield child
        finally:
            child.terminate()
            try:
                child.wait(20)
            except subprocess.TimeoutExpired:
                child.kill()
                child.wait()
            if child.stdout is not None:
                child.stdout.close()


def plane(data: Path, *more: str) -> list[str]:
    return [
        sys.executable, "-m", "homeport", "up", "--data", str(data), "--listen", "127.0.0.1:0",
        "--log-level", "warning", *more,
    ]  # fmt: skip


class Probe:
    """Somebody else's requests meanwhile: how long does a get take?"""

    def __init__(self, config: Path) -> None:
        self._client = HttpClient(kubeconfig.load(config))
        self.delays: list[float] = []
        self._task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Probe:
        await self._client.get(MACHINE, Key("default", "machine-00000"))
        self._task = asyncio.create_task(self._ask())
        return self

    async def _ask(self) -> None:
        while True:
            began = time.perf_counter()
            await self._client.get(MACHINE, Key("default", "machine-00000"))
            self.delays.append((time.perf_counter() - began) * 1000)
            await asyncio.sleep(PROBE_SECONDS)

    async def __aexit__(self, *_: object) -> None:
        assert self._task is not None
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)
        await self._client.close()

    def percentile(self, percent: int) -> float:
        if len(self.delays) < 2:
            return self.delays[0] if self.delays else 0.0
        return statistics.quantiles(self.delays, n=100, method="inclusive")[percent - 1]


async def measured(
    run: Run,
    report: Report,
    child: Child,
    server: Child,
    config: Path,
    objects: int,
) -> None:
    """From the phases that the process tells, and the processors' time of the server if that is another."""
    start = await report.until("start", child, 60)
    go = await report.until("go", child, 120)
    assert start is not None
    assert go is not None
    synced = next(line for line in report.lines() if line["phase"] == "synced")
    apart = server is not child
    before = cpu_seconds([server.pid])
    async with Probe(config) as probe:
        written = await report.until("written", child, 300)
    if written is None:
        raise RuntimeError(f"{run.name}: not done after 300 s: {report.lines()[-1]}")
    wall, own = written["wall"] - go["wall"], written["cpu"] - go["cpu"]
    theirs = cpu_seconds([server.pid]) - before if apart else 0.0
    run.results |= {
        "cold start to synced, s": synced["wall"] - start["wall"],
        "cold start to synced, CPU s": synced["cpu"] - start["cpu"],
        "memory per cached object, KiB": go["grown"] / objects / 1024,
        "reconciles with a status write, per second": objects / wall,
        "per CPU-second of the controllers' process": objects / own,
        "CPU ms per reconcile, all processes": (own + theirs) * 1000 / objects,
        "a get of others meanwhile, ms p50": probe.percentile(50),
        "a get of others meanwhile, ms p99": probe.percentile(99),
    }
    print(f"  {run.name}: {objects / wall:,.0f}/s, {objects / own:,.0f} per CPU-second", flush=True)


async def in_process(data: Path, folder: Path, objects: int, round_: int) -> Run:
    run, report = Run("in process"), Report(folder / f"report-{round_}")
    env = environment(report, round_, objects)
    async with process(plane(data, "--plugin", "workload:install"), env, b"ready") as child:
        await measured(run, report, child, child, data / "kubeconfig", objects)
    return run


async def over_http(data: Path, folder: Path, objects: int, round_: int, server: Child) -> Run:
    run, report = Run("over HTTP"), Report(folder / f"report-{round_}")
    command = [
        sys.executable,
        "-m",
        "homeport",
        "up",
        "--kubeconfig",
        str(data / "kubeconfig"),
        "--log-level",
        "warning",
    ]
    env = environment(report, round_, objects)
    async with process([*command, "--plugin", "workload:install"], env) as child:
        await measured(run, report, child, server, data / "kubeconfig", objects)
    return run


async def kopf(data: Path, folder: Path, objects: int, round_: int, server: Child, handler: str) -> Run:
    run, report = Run(f"kopf, {handler} handler"), Report(folder / f"report-{round_}")
    operator = str(HERE / "operator_kopf.py")
    command = [str(KOPF), "run", "--standalone", "--namespace", "default", "--quiet", operator]
    env = environment(
        report, round_, objects, BENCH_HANDLER=handler, KUBECONFIG=str(data / "kubeconfig"), PYTHONPATH=""
    )
    async with process(command, env) as child:
        go = await report.until("go", child, 120)
        before = cpu_seconds([server.pid])
        if go is None:
            raise RuntimeError(f"{run.name}: no object seen after 120 s")
        async with Probe(data / "kubeconfig") as probe:
            await report.until("written", child, KOPF_SECONDS)
        last = [line for line in report.lines() if "count" in line][-1]
        theirs = cpu_seconds([server.pid]) - before
    done, wall, own = last["count"], last["wall"] - go["wall"], last["cpu"] - go["cpu"]
    run.results = {
        "reconciles with a status write, per second": done / wall,
        "per CPU-second of the controllers' process": done / own,
        "CPU ms per reconcile, all processes": (own + theirs) * 1000 / done,
        "a get of others meanwhile, ms p50": probe.percentile(50),
        "a get of others meanwhile, ms p99": probe.percentile(99),
    }
    print(f"  {run.name}: {done / wall:,.0f}/s, {done / own:,.0f} per CPU-second ({done} objects)", flush=True)
    return run


async def fill(data: Path, objects: int) -> None:
    async with HttpClient(kubeconfig.load(data / "kubeconfig")) as client:
        await prepare(client)
        await spread(objects, lambda n: client.create(machine(n), kind=MACHINE))


async def bench(objects: int) -> list[Run]:
    with tempfile.TemporaryDirectory(prefix="homeport-bench-") as name:
        folder = Path(name)
        data = folder / "data"
        env = environment(Report(folder / "none"), 0, objects)
        async with process(plane(data), env, b"ready"):
            await fill(data, objects)
        print(f"  {objects} objects made", flush=True)
        # The first round makes the statuses, the others change them: it is not counted.
        await in_process(data, folder, objects, 1)
        runs = [await in_process(data, folder, objects, 2)]
        async with process(plane(data), env, b"ready") as server:
            runs.append(await over_http(data, folder, objects, 3, server))
            if KOPF.exists():
                runs.append(await kopf(data, folder, objects, 4, server, "event"))
                runs.append(await kopf(data, folder, objects, 5, server, "change"))
            else:
                print(f"  no kopf in {KOPF.parent}: left out ('make bench' installs it)")
    return runs


def table(runs: list[Run]) -> str:
    lines = [f"| | {' | '.join(run.name for run in runs)} |", f"|---{'|---' * len(runs)}|"]
    for name in runs[0].results:
        values = (run.results.get(name) for run in runs)
        lines.append(f"| {name} | {' | '.join('-' if v is None else f'{v:,.2f}' for v in values)} |")
    return "\n".join(lines)


def write(text: str, objects: int) -> None:
    page = HERE.parent / "docs" / "reference" / "performance.md"
    head, marker, rest = page.read_text().partition("<!-- runtime -->")
    if not marker:
        sys.exit(f"{page} has no <!-- runtime --> marker")
    _, end, tail = rest.partition("<!-- runtime end -->")
    where = f"{os.cpu_count()} cores, Python {platform.python_version()}, {objects} objects, {WORKERS} workers"
    page.write_text(f"{head}{marker}\n\nMeasured on {where}.\n\n{text}\n\n{end}{tail}")
    print(f"written to {page}")


def main() -> None:
    global WORKERS
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--objects", type=int, default=10_000)
    parser.add_argument("--workers", type=int, default=WORKERS, help="of our controller")
    parser.add_argument("--write", action="store_true", help="write docs/reference/performance.md")
    options = parser.parse_args()
    WORKERS = options.workers
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runs = runner.run(bench(options.objects))
    text = table(runs)
    print(text)
    if options.write:
        write(text, options.objects)


if __name__ == "__main__":
    main()
