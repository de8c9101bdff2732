"""What tenant clusters cost: from applied TenantClusters to Ready, on a plane that `homeport up --sim` starts.

    python bench/tenants.py [--counts 1 200] [--idle 30]

Each has a hosted control plane, one worker on the simulated Harvester and the default add-on (Cilium). Everything runs
in the plane's process, the simulated hypervisor and the tenants' own API servers among it. CPU and memory of each are
the difference to the plane before the first, divided by their number; idle is CPU per second after all are Ready.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))

from hosted import Plane
from process import cpu_seconds, resident_mib

from homeport.api.meta import Resource
from homeport.client.http import HttpClient
from homeport.client.protocol import Key, Query
from homeport.machinery import condition

GROUP = "butler.butlerlabs.dev"
TENANT = Resource(GROUP, "v1alpha1", "TenantCluster", "tenantclusters")
CONFIG = Resource(GROUP, "v1alpha1", "ProviderConfig", "providerconfigs")
SECRET = Resource("", "v1", "Secret", "secrets")
NAMESPACE = "default"
SYSTEM = "butler-system"
_POLL_SECONDS = 0.5
_LONGEST_SECONDS = 3600.0


async def add_provider(client: HttpClient, kubeconfig: str) -> None:
    meta = {"name": "harvester-kubeconfig", "namespace": SYSTEM}
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": meta, "stringData": {"kubeconfig": kubeconfig}}
    await client.create(secret, kind=SECRET)
    harvester = {
        "credentialsRef": {"name": "harvester-kubeconfig"},
        "namespace": "default",
        "networkName": "default/workloads",
        "imageName": "default/talos-1.9",
    }
    body = {
        "apiVersion": CONFIG.api_version,
        "kind": CONFIG.kind,
        "metadata": {"name": "harvester-prod", "namespace": SYSTEM},
        "spec": {"type": "harvester", "harvester": harvester},
    }
    await client.create(body, kind=CONFIG)


def tenant(number: int) -> dict[str, Any]:
    size = {"cpu": 2, "memory": "4Gi", "diskSize": "40Gi"}
    return {
        "apiVersion": TENANT.api_version,
        "kind": TENANT.kind,
        "metadata": {"name": f"tenant-{number:03d}", "namespace": NAMESPACE},
        "spec": {
            "providerConfigRef": {"name": "harvester-prod"},
            "workers": {"replicas": 1, "machineTemplate": size},
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
            raise SystemExit(f"only {found} of {count} tenant clusters are Ready after {_LONGEST_SECONDS:.0f} s")
        await asyncio.sleep(_POLL_SECONDS)
    return times


async def remove(client: HttpClient) -> float:
    """Deletes all of them; the seconds until they are gone."""
    started = time.monotonic()
    for each in (await client.list(TENANT, Query(namespace=NAMESPACE))).items:
        await client.delete(TENANT, Key(NAMESPACE, each["metadata"]["name"]))
    while (await client.list(TENANT, Query(namespace=NAMESPACE))).items:  # noqa: ASYNC110
        await asyncio.sleep(_POLL_SECONDS)
    return time.monotonic() - started


async def measure(plane: Plane, kubeconfig: str, count: int, idle: float) -> None:
    client = plane.client()
    try:
        await add_provider(client, kubeconfig)
        # One that is not counted: the datastore and everything else that the first one brings.
        await client.create(tenant(999), kind=TENANT)
        await reach(client, 1, time.monotonic())
        await remove(client)
        cpu, memory = cpu_seconds(plane.pids()), resident_mib(plane.pids())
        started = time.monotonic()
        for number in range(count):
            await client.create(tenant(number), kind=TENANT)
        times = await reach(client, count, started)
        spent, grown = cpu_seconds(plane.pids()) - cpu, resident_mib(plane.pids()) - memory
        before = cpu_seconds(plane.pids())
        await asyncio.sleep(idle)
        resting = (cpu_seconds(plane.pids()) - before) / idle
        gone = await remove(client)
        print(
            f"{count} tenant clusters: first {times[0]:.1f} s, last {times[-1]:.1f} s; each {spent / count:.2f} s CPU, "
            f"{grown / count:.1f} MiB; idle {100 * resting:.1f} % of a core in all; all deleted in {gone:.1f} s",
            flush=True,
        )
    finally:
        await client.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--counts", type=int, nargs="+", default=[1, 200])
    parser.add_argument("--idle", type=float, default=30.0, metavar="SECONDS")
    given = parser.parse_args()
    for count in given.counts:
        with tempfile.TemporaryDirectory(prefix="homeport-bench-") as folder, Plane(Path(folder), ["--sim"]) as plane:
            kubeconfig = (Path(folder) / "data" / "harvester-kubeconfig.yaml").read_text()
            asyncio.run(measure(plane, kubeconfig, count, given.idle))


if __name__ == "__main__":
    main()
