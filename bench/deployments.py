"""What ClusterDeployments cost beside plain Clusters: from applied to Ready, on planes that `homeport up --sim` starts.

    python bench/deployments.py [--counts 1 100] [--idle 20]

Both have a hosted control plane of k0s and one worker on the simulated Nutanix, without add-ons. The ClusterDeployments
use the built-in template; the plain ones are Cluster, NutanixCluster, K0smotronControlPlane, MachineDeployment and two
templates, as a user of Cluster API writes them. Each number of each kind runs on a plane of its own, one plane after
the other. Everything is in the plane's process, simulated hypervisor and clusters among it. CPU and memory of each are
the difference to the plane before the first, divided by their number.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))

from hosted import Plane
from process import cpu_seconds, resident_mib

from homeport.api.meta import Resource
from homeport.client.errors import NotFound, Timeout, Unavailable
from homeport.client.http import HttpClient
from homeport.client.protocol import Key, Query
from homeport.machinery import condition

SPACE = "kcm-system"
KCM = "k0rdent.mirantis.com"
CAPI = "cluster.x-k8s.io"
SECRET = Resource("", "v1", "Secret", "secrets")
CREDENTIAL = Resource(KCM, "v1beta1", "Credential", "credentials")
DEPLOYMENT = Resource(KCM, "v1beta1", "ClusterDeployment", "clusterdeployments")
CLUSTER = Resource(CAPI, "v1beta2", "Cluster", "clusters")
INFRA_CLUSTER = Resource(f"infrastructure.{CAPI}", "v1beta1", "NutanixCluster", "nutanixclusters")
INFRA_TEMPLATE = Resource(f"infrastructure.{CAPI}", "v1beta1", "NutanixMachineTemplate", "nutanixmachinetemplates")
CONTROL_PLANE = Resource(f"controlplane.{CAPI}", "v1beta2", "K0smotronControlPlane", "k0smotroncontrolplanes")
WORKER_CONFIG = Resource(f"bootstrap.{CAPI}", "v1beta2", "K0sWorkerConfigTemplate", "k0sworkerconfigtemplates")
WORKERS = Resource(CAPI, "v1beta2", "MachineDeployment", "machinedeployments")
VERSION = "v1.29.2+k0s.0"
NETWORK = {"pods": {"cidrBlocks": ["10.243.0.0/16"]}, "services": {"cidrBlocks": ["10.95.0.0/16"]}}
PRISM = {"address": "10.1.1.100", "port": 9440, "insecure": False}
MACHINE = {
    "image": {"type": "name", "name": "ubuntu-22.04-k0s"},
    "cluster": {"type": "name", "name": "PE-Cluster-01"},
    "bootType": "legacy",
    "vcpusPerSocket": 1,
    "vcpuSockets": 2,
    "memorySize": "4Gi",
    "systemDiskSize": "40Gi",
}
SUBNETS = [{"type": "name", "name": "VM-Network"}]
_POLL_SECONDS = 0.5
_LONGEST_SECONDS = 3600.0

Json = dict[str, Any]
Objects = list[tuple[Resource, Json]]


def _object(kind: Resource, name: str, spec: Json) -> tuple[Resource, Json]:
    meta = {"name": name, "namespace": SPACE}
    return kind, {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": meta, "spec": spec}


def shared() -> Objects:
    """Credentials of Prism Central, which all of them use."""
    data = {"prismCentral": {"username": "admin", "password": "password"}, "prismElements": None}
    secret = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "prism", "namespace": SPACE},
        "stringData": {"credentials": json.dumps([{"type": "basic_auth", "data": data}])},
    }
    ref = {"apiVersion": "v1", "kind": "Secret", "name": "prism", "namespace": SPACE}
    return [(SECRET, secret), _object(CREDENTIAL, "prism", {"identityRef": ref})]


def deployment(number: int) -> Objects:
    endpoint = {"host": f"10.1.1.{101 + number}", "port": 6443}
    config = {
        "nutanix": {"prismCentral": PRISM, "controlPlaneEndpoint": endpoint},
        "machineDefaults": {**MACHINE, "subnets": SUBNETS},
        "k0s": {"version": VERSION},
        "clusterNetwork": NETWORK,
        "workersNumber": 1,
        "csi": {"enabled": False},
    }
    spec = {"template": "nutanix-k0s-hcp", "credential": "prism", "config": config}
    return [_object(DEPLOYMENT, f"deployment-{number:03d}", spec)]


def _ref(kind: Resource, name: str) -> dict[str, str]:
    return {"apiGroup": kind.group, "kind": kind.kind, "name": name}


def plain(number: int) -> Objects:
    name = f"plain-{number:03d}"
    cluster = {
        "clusterNetwork": NETWORK,
        "infrastructureRef": _ref(INFRA_CLUSTER, name),
        "controlPlaneRef": _ref(CONTROL_PLANE, name),
    }
    machine = {
        "clusterName": name,
        "version": VERSION,
        "bootstrap": {"configRef": _ref(WORKER_CONFIG, name)},
        "infrastructureRef": _ref(INFRA_TEMPLATE, name),
    }
    workers = {
        "clusterName": name,
        "replicas": 1,
        "selector": {"matchLabels": {}},
        "template": {"spec": machine},
    }
    service = {"type": "LoadBalancer", "apiPort": 6443, "konnectivityPort": 8132}
    secret = {"kind": "Secret", "name": "prism"}
    return [
        _object(INFRA_CLUSTER, name, {"prismCentral": {**PRISM, "credentialRef": secret}}),
        _object(CONTROL_PLANE, name, {"version": VERSION, "service": service}),
        _object(INFRA_TEMPLATE, name, {"template": {"spec": {**MACHINE, "subnet": SUBNETS}}}),
        _object(WORKER_CONFIG, name, {"template": {"spec": {}}}),
        _object(WORKERS, name, workers),
        _object(CLUSTER, name, cluster),
    ]


@dataclass(frozen=True)
class Subject:
    name: str
    kind: Resource  # the object that is Ready, and whose deletion deletes all
    condition: str
    objects: Callable[[int], Objects]


SUBJECTS = (
    Subject("plain Clusters", CLUSTER, "Available", plain),
    Subject("ClusterDeployments", DEPLOYMENT, "Ready", deployment),
)


@dataclass(frozen=True)
class Figures:
    first: float  # seconds to Ready
    last: float
    cpu: float  # seconds, of each
    memory: float  # MiB, of each
    idle: float  # share of a core, in all

    def __str__(self) -> str:
        return (
            f"first {self.first:.1f} s, last {self.last:.1f} s; each {self.cpu:.2f} s CPU, {self.memory:.1f} MiB; "
            f"idle {100 * self.idle:.1f} % of a core in all"
        )


async def create(client: HttpClient, objects: Objects) -> None:
    for kind, body in objects:
        await client.create(body, kind=kind)


async def reach(client: HttpClient, subject: Subject, count: int, started: float) -> list[float]:
    """When each became Ready, in seconds."""
    times: list[float] = []
    while len(times) < count:
        page = await client.list(subject.kind, Query(namespace=SPACE))
        states = [(each.get("status") or {}).get("conditions") for each in page.items]
        found = sum(condition.is_true(each, subject.condition) for each in states)
        times += [time.monotonic() - started] * (found - len(times))
        if time.monotonic() - started > _LONGEST_SECONDS:
            raise SystemExit(f"only {found} of {count} {subject.name} are Ready after {_LONGEST_SECONDS:.0f} s")
        await asyncio.sleep(_POLL_SECONDS)
    return times


async def remove(client: HttpClient, subject: Subject) -> float:
    """Deletes all of them; the seconds until they are gone.

    A delete that gets no answer is asked for again: a plane on a busy machine may be late.
    """
    started = time.monotonic()
    while items := (await client.list(subject.kind, Query(namespace=SPACE))).items:
        if time.monotonic() - started > _LONGEST_SECONDS:
            raise SystemExit(f"{len(items)} {subject.name} are left after {_LONGEST_SECONDS:.0f} s")
        await asyncio.gather(*(_delete(client, subject, each["metadata"]) for each in items))
        await asyncio.sleep(_POLL_SECONDS)
    return time.monotonic() - started


async def _delete(client: HttpClient, subject: Subject, meta: Json) -> None:
    if meta.get("deletionTimestamp"):
        return
    with contextlib.suppress(NotFound, Unavailable, Timeout):
        await client.delete(subject.kind, Key(SPACE, meta["name"]))


async def measure(plane: Plane, subject: Subject, count: int, idle: float) -> Figures:
    client = plane.client()
    try:
        await create(client, shared())
        # One that is not counted: the datastore and everything else that the first one brings.
        await create(client, subject.objects(120))
        await reach(client, subject, 1, time.monotonic())
        await remove(client, subject)
        cpu, memory = cpu_seconds(plane.pids()), resident_mib(plane.pids())
        started = time.monotonic()
        for number in range(count):
            await create(client, subject.objects(number))
        times = await reach(client, subject, count, started)
        spent, grown = cpu_seconds(plane.pids()) - cpu, resident_mib(plane.pids()) - memory
        before = cpu_seconds(plane.pids())
        await asyncio.sleep(idle)
        resting = (cpu_seconds(plane.pids()) - before) / idle
        figures = Figures(times[0], times[-1], spent / count, grown / count, resting)
        print(f"{count} {subject.name}: {figures}", flush=True)  # before clean-up, which may take long, or fail
        try:
            print(f"  all deleted in {await remove(client, subject):.1f} s", flush=True)
        except (Unavailable, Timeout) as error:
            print(f"  the plane did not answer while they were deleted: {error}", flush=True)
        return figures
    finally:
        await client.close()


def run(subject: Subject, count: int, idle: float) -> Figures:
    with tempfile.TemporaryDirectory(prefix="homeport-bench-") as folder, Plane(Path(folder), ["--sim"]) as plane:
        return asyncio.run(measure(plane, subject, count, idle))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--counts", type=int, nargs="+", default=[1, 100])
    parser.add_argument("--idle", type=float, default=20.0, metavar="SECONDS")
    given = parser.parse_args()
    for count in given.counts:
        if not 1 <= count <= 100:
            parser.error("--counts: the subnet has addresses for 1 to 100 control planes")
    for count in given.counts:
        found = [run(subject, count, given.idle) for subject in SUBJECTS]
        base, other = found
        print(
            f"  ratio: time {other.last / base.last:.2f}, CPU {other.cpu / base.cpu:.2f}, "
            f"memory {other.memory / max(base.memory, 0.1):.2f}",
            flush=True,
        )


if __name__ == "__main__":
    main()
