"""What hosted control planes cost: from applied TenantControlPlanes to Ready, on a plane that `homeport up` starts.

    python bench/hosted.py [--counts 1 200] [--binaries DIR] [--replicas 1] [--idle 30]

Without --binaries the control planes are simulated (`--sim`), in the plane's own process. With it they are real
programs of DIR, which are counted with the plane. CPU and memory of each control plane are the difference to the plane
before the first, divided by their number; idle is CPU per second after all are Ready.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))

from process import cpu_seconds, resident_mib

from homeport.api.meta import Resource
from homeport.client import kubeconfig
from homeport.client.http import HttpClient
from homeport.client.protocol import Key, Query
from homeport.machinery import condition

TENANT = Resource("steward.butlerlabs.dev", "v1alpha1", "TenantControlPlane", "tenantcontrolplanes")
NAMESPACE = "default"
_POLL_SECONDS = 0.25
_LONGEST_SECONDS = 3600.0


class Plane:
    """`homeport up` on a folder of its own."""

    def __init__(self, folder: Path, options: Sequence[str]) -> None:
        self._data = folder / "data"
        self._options = options

    def __enter__(self) -> Plane:
        self._homeport("up", "--listen", "127.0.0.1:0", "--detach", *self._options)
        self.pid: int = json.loads((self._data / "run.json").read_text())["pid"]
        return self

    def __exit__(self, *error: object) -> None:
        self._homeport("down")

    def _homeport(self, *arguments: str) -> None:
        command = [sys.executable, "-m", "homeport", *arguments, "--data", str(self._data)]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, timeout=300)

    def client(self) -> HttpClient:
        return HttpClient(kubeconfig.load(self._data / "kubeconfig"))

    def pids(self) -> list[int]:
        found = [int(file.read_text().split()[0]) for file in self._data.glob("workload/pods/*/*/pid")]
        return [self.pid, *(pid for pid in found if Path(f"/proc/{pid}").exists())]


def tenant(number: int, replicas: int) -> dict[str, Any]:
    return {
        "apiVersion": TENANT.api_version,
        "kind": TENANT.kind,
        "metadata": {"name": f"tenant-{number:03d}", "namespace": NAMESPACE},
        "spec": {
            "controlPlane": {
                "deployment": {"replicas": replicas},
                "service": {"serviceType": "LoadBalancer"},
            },
            "kubernetes": {"version": "v1.33.1", "kubelet": {"cgroupfs": "systemd"}},
            "networkProfile": {"port": 6443},
            "addons": {"coreDNS": {}, "kubeProxy": {}},
        },
    }


async def ready(client: HttpClient) -> int:
    page = await client.list(TENANT, Query(namespace=NAMESPACE))
    return sum(condition.is_true((each.get("status") or {}).get("conditions"), "Ready") for each in page.items)


async def reach(client: HttpClient, count: int, started: float) -> list[float]:
    """When each became Ready, in seconds."""
    times: list[float] = []
    while len(times) < count:
        found = await ready(client)
        times += [time.monotonic() - started] * (found - len(times))
        if time.monotonic() - started > _LONGEST_SECONDS:
            raise SystemExit(f"only {found} of {count} control planes are Ready after {_LONGEST_SECONDS:.0f} s")
        await asyncio.sleep(_POLL_SECONDS)
    return times


async def measure(plane: Plane, count: int, replicas: int, idle: float) -> None:
    client = plane.client()
    try:
        await _warm_up(client)
        cpu, memory = cpu_seconds(plane.pids()), resident_mib(plane.pids())
        started = time.monotonic()
        for number in range(count):
            await client.create(tenant(number, replicas), kind=TENANT)
        times = await reach(client, count, started)
        spent, grown = cpu_seconds(plane.pids()) - cpu, resident_mib(plane.pids()) - memory
        before = cpu_seconds(plane.pids())
        await asyncio.sleep(idle)
        resting = (cpu_seconds(plane.pids()) - before) / idle
        print(
            f"{count} control planes: first {times[0]:.1f} s, last {times[-1]:.1f} s; each {spent / count:.2f} s CPU, "
            f"{grown / count:.1f} MiB; idle {100 * resting:.1f} % of a core in all; {len(plane.pids())} processes",
            flush=True,
        )
    finally:
        await client.close()


async def _warm_up(client: HttpClient) -> None:
    """One control plane that is not counted: the datastore and everything else that the first one brings."""
    body = tenant(999, 1)
    await client.create(body, kind=TENANT)
    await reach(client, 1, time.monotonic())
    key = Key(NAMESPACE, body["metadata"]["name"])
    await client.delete(TENANT, key)
    while (await client.list(TENANT, Query(namespace=NAMESPACE))).items:  # noqa: ASYNC110
        await asyncio.sleep(_POLL_SECONDS)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--counts", type=int, nargs="+", default=[1, 200])
    parser.add_argument("--binaries", type=Path, help="run the programs of this directory")
    parser.add_argument("--replicas", type=int, default=1)
    parser.add_argument("--idle", type=float, default=30.0, metavar="SECONDS")
    given = parser.parse_args()
    options = ["--sim"] if given.binaries is None else [f"--hosted-binaries={given.binaries}"]
    for count in given.counts:
        with tempfile.TemporaryDirectory(prefix="homeport-bench-") as folder, Plane(Path(folder), options) as plane:
            asyncio.run(measure(plane, count, given.replicas, given.idle))


if __name__ == "__main__":
    main()
