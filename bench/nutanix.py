"""A cluster on Nutanix, brought up by upstream's managers and by Homeport: same simulated site, same manifest.

    python bench/nutanix.py [--size 3+3] [--rest SECONDS] [--only ours|upstream] [--details]

Upstream is what it releases: Cluster API's core, kubeadm bootstrap and control plane managers and Nutanix' provider,
as tools/upstream pins and builds them, with kube-apiserver and etcd. Homeport is `homeport up`: one process, its
database on disk. The site (Prism Central, machines, workload clusters) runs in a process of its own, takes no time
for anything, and is not counted. Objects are created by this process over HTTPS in both cases; the time ends when the
last Machine runs.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import uvloop

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "tests")]

from process import cpu_seconds  # noqa: E402

from capikit import guide, upstream  # noqa: E402
from capikit.foreign import Managers  # noqa: E402
from capikit.world import WorldProcess  # noqa: E402
from homeport.api.meta import Resource  # noqa: E402
from homeport.app.report.description import Description  # noqa: E402
from homeport.app.report.part import Part  # noqa: E402
from homeport.client import kubeconfig  # noqa: E402
from homeport.client.dial import DialOptions  # noqa: E402
from homeport.client.http import HttpClient  # noqa: E402
from realkube import RealKube, find_binaries  # noqa: E402
from scenario.nutanix import manifest  # noqa: E402

TIMEOUT_SECONDS = 900.0
_PLURALS = {
    "Cluster": "clusters",
    "NutanixCluster": "nutanixclusters",
    "KubeadmControlPlane": "kubeadmcontrolplanes",
    "NutanixMachineTemplate": "nutanixmachinetemplates",
    "MachineDeployment": "machinedeployments",
    "KubeadmConfigTemplate": "kubeadmconfigtemplates",
    "Secret": "secrets",
}


@dataclass
class Side:
    """A running stack: where its API is, which processes it is, and what it says when it doesn't work."""

    name: str
    kubeconfig: Path
    pids: Sequence[int]
    world: WorldProcess
    objects: list[dict[str, Any]]
    explain: Callable[[], str]
    start_seconds: float


@dataclass
class Result:
    name: str
    figures: dict[str, float] = field(default_factory=dict)
    calls: dict[str, int] = field(default_factory=dict)


def peak_mib(pids: Sequence[int]) -> float:
    """The most that each process ever held, summed."""
    lines = [line for pid in pids for line in Path(f"/proc/{pid}/status").read_text().splitlines()]
    return sum(int(line.split()[1]) for line in lines if line.startswith("VmHWM:")) / 1024


async def measure(side: Side, machines: int, rest: float) -> Result:
    async with HttpClient(kubeconfig.load(side.kubeconfig)) as client:
        calls_before, cpu_before, began = side.world.state()["calls"], cpu_seconds(side.pids), time.monotonic()
        for obj in side.objects:
            await client.create(obj, kind=_resource(obj))
        await guide.until_machines(client, guide.all_running(machines), TIMEOUT_SECONDS, side.explain)
        wall = time.monotonic() - began
        cpu, peak = cpu_seconds(side.pids) - cpu_before, peak_mib(side.pids)
        calls = _less(side.world.state()["calls"], calls_before)
        result = Result(side.name, calls=calls)
        result.figures = {
            "seconds until the stack is ready": side.start_seconds,
            "CPU seconds until then": cpu_before,
            "seconds to Running": wall,
            "CPU seconds to Running": cpu,
            "CPU seconds altogether": cpu_before + cpu,
            "MiB at the peak": peak,
            "Prism calls per machine": sum(calls.values()) / machines,
        }
        if rest:
            result.figures |= await _at_rest(side, rest)
        return result


async def _at_rest(side: Side, seconds: float) -> dict[str, float]:
    """What a cluster costs that is left alone; the first moments, in which stragglers come to rest, don't count."""
    await asyncio.sleep(15)
    calls, cpu = side.world.state()["calls"], cpu_seconds(side.pids)
    await asyncio.sleep(seconds)
    spent, asked = cpu_seconds(side.pids) - cpu, _less(side.world.state()["calls"], calls)
    return {
        "at rest: CPU ms per second": spent / seconds * 1000,
        "at rest: Prism calls per minute": sum(asked.values()) / seconds * 60,
    }


def _less(after: dict[str, int], before: dict[str, int]) -> dict[str, int]:
    return {name: count - before.get(name, 0) for name, count in after.items() if count > before.get(name, 0)}


def _resource(obj: dict[str, Any]) -> Resource:
    group, _, version = obj["apiVersion"].rpartition("/")
    return Resource(group, version, obj["kind"], _PLURALS[obj["kind"]])


@contextmanager
def foreign(control_planes: int, workers: int) -> Iterator[Side]:
    binaries = find_binaries()
    if isinstance(binaries, str):
        raise SystemExit(binaries)
    if reason := upstream.lacking("manifests", *upstream.MANAGERS):
        raise SystemExit(reason)
    with WorldProcess() as world:
        began = time.monotonic()
        with RealKube(binaries) as kube, Managers(kube, proxy=world.proxy, authority=world.authority) as managers:
            pids = [process.pid for process in (*kube.processes.values(), *managers.processes.values())]
            objects = guide.for_upstream(control_planes, workers, world.port)
            ready = time.monotonic() - began
            yield Side("upstream", kube.kubeconfig, pids, world, objects, managers.logs, ready)


@contextmanager
def ours(control_planes: int, workers: int) -> Iterator[Side]:
    with WorldProcess() as world, tempfile.TemporaryDirectory(prefix="homeport-bench-") as folder:
        log = Path(folder) / "log"
        began = time.monotonic()
        command = [sys.executable, __file__, "--plane", folder, world.proxy, str(world.authority)]
        with open(log, "wb") as errors:
            process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors)
        try:
            assert process.stdout is not None
            if not process.stdout.readline():
                raise SystemExit(f"homeport ended:\n{log.read_text()[-3000:]}")
            objects = manifest.cluster_objects(guide.NAME, control_planes, workers)
            ready = time.monotonic() - began
            config = Path(folder) / "data" / "kubeconfig"
            yield Side("homeport", config, [process.pid], world, objects, lambda: log.read_text()[-5000:], ready)
        finally:
            process.kill()
            process.communicate()


class _Parent:
    """Tells whoever started this process that the API is served."""

    def say(self, text: str) -> None:
        print(text, file=sys.stderr)

    def ready(self, url: str) -> None:
        print(url, flush=True)

    def changed(self, part: Part) -> None:
        print(part, file=sys.stderr)

    async def follow(self, describe: Callable[[], Description]) -> None:
        await asyncio.Event().wait()


async def run_plane(folder: Path, dial: DialOptions) -> None:
    """What `homeport up` runs."""
    from homeport.apiserver.auth.file import make_private_dir
    from homeport.app import log
    from homeport.app.plane.show import stop_event
    from homeport.app.plane.standalone import Plane
    from homeport.app.platform import chosen
    from homeport.app.settings import Settings

    streams = log.configure(level="warning")
    settings = Settings.make(folder / "data", "127.0.0.1:0", dial=dial)
    make_private_dir(settings.data)
    await Plane(settings, chosen(), None, streams).run(_Parent(), stop_event())


def show(results: list[Result], details: bool) -> None:
    names = [result.name for result in results]
    heads = [*names, *(["ratio"] if len(results) == 2 else [])]
    print(f"| {'':34} | " + " | ".join(f"{head:>10}" for head in heads) + " |")
    print("|---|" + "---:|" * len(heads))
    for figure in results[0].figures:
        values = [result.figures[figure] for result in results]
        cells = [f"{value:10.2f}" for value in values]
        if len(values) == 2:
            cells.append(f"{values[0] / values[1]:10.1f}" if values[1] else f"{'-':>10}")
        print(f"| {figure:34} | " + " | ".join(cells) + " |")
    if details:
        for result in results:
            print(f"\nPrism calls of {result.name}:")
            for call, count in sorted(result.calls.items(), key=lambda each: -each[1]):
                print(f"  {count:5} {call}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", default="3+3", help="control planes + workers")
    parser.add_argument("--rest", type=float, default=0.0, metavar="SECONDS", help="measure at rest for so long, too")
    parser.add_argument("--only", choices=("upstream", "ours"), help="one side alone")
    parser.add_argument("--details", action="store_true", help="what was asked of Prism Central, and how often")
    parser.add_argument("--plane", nargs=3, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.plane:
        folder, proxy, authority = args.plane
        uvloop.run(run_plane(Path(folder), DialOptions(proxy, Path(authority).read_bytes())))
        return
    control_planes, workers = (int(part) for part in args.size.split("+"))
    sides = {"upstream": foreign, "ours": ours}
    results = []
    for name in [args.only] if args.only else list(sides):
        with sides[name](control_planes, workers) as side:
            results.append(uvloop.run(measure(side, control_planes + workers, args.rest)))
            print(json.dumps({"name": name, **results[-1].figures}), file=sys.stderr)
    show(results, args.details)


if __name__ == "__main__":
    main()
