"""What simulated infrastructure costs: memory and time per workload cluster and per machine, CPU while all are idle.

    python bench/sim.py [--clusters 1000] [--workers 9] [--idle 30]

Machines boot from the user data that a bootstrap provider writes: nothing here takes a short cut.
"""

from __future__ import annotations

import argparse
import asyncio
import datetime
import gc
import os
import resource
import time
from collections.abc import Iterator

import structlog
import yaml
from cryptography import x509

from homeport.apiserver.auth import certificate as certs
from homeport.app.memory import tune_garbage_collection
from homeport.runtime.clock import SystemClock
from homeport.sim.engine import guest
from homeport.sim.machine.fleet import Fleet
from homeport.sim.machine.workload.object import bootstrap_token
from homeport.sim.machine.workload.trust.authority import spki_hash
from homeport.sim.network import Balancer, Network

TOKEN = "abcdef.0123456789abcdef"
IMAGE = "ubuntu-22.04-kube-v1.30.2"
GIB = 1024**3


def resident_kib() -> int:
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") // 1024


def cpu_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def address(number: int) -> str:
    return f"10.{number >> 16 & 255}.{number >> 8 & 255}.{number & 255}"


class Plan:
    """The user data of one cluster. All share their keys: making them is not what is measured."""

    def __init__(self) -> None:
        now = datetime.datetime.now(datetime.UTC)
        pairs = {}
        for name in ("ca", "etcd/ca", "front-proxy-ca"):
            key = certs.make_key()
            pairs[name] = (certs.certificate_pem(certs.sign_ca(key, now)), certs.key_pem(key))
        self.hash = spki_hash(x509.load_pem_x509_certificate(pairs["ca"][0]))
        folder = "/etc/kubernetes/pki"
        self.files = [{"path": f"{folder}/sa.key", "content": certs.key_pem(certs.make_key()).decode()}]
        for name, (certificate, key_pem) in pairs.items():
            self.files.append({"path": f"{folder}/{name}.crt", "content": certificate.decode()})
            self.files.append({"path": f"{folder}/{name}.key", "content": key_pem.decode()})

    def init(self, endpoint: str) -> bytes:
        document = {
            "apiVersion": "kubeadm.k8s.io/v1beta3",
            "kind": "ClusterConfiguration",
            "kubernetesVersion": "v1.30.2",
            "controlPlaneEndpoint": f"{endpoint}:6443",
        }
        files = [*self.files, {"path": "/run/kubeadm/kubeadm.yaml", "content": yaml.safe_dump(document)}]
        return _cloud_config(files, "kubeadm init --config /run/kubeadm/kubeadm.yaml")

    def join(self, endpoint: str) -> bytes:
        token = {"apiServerEndpoint": f"{endpoint}:6443", "token": TOKEN, "caCertHashes": [self.hash]}
        document = {
            "apiVersion": "kubeadm.k8s.io/v1beta3",
            "kind": "JoinConfiguration",
            "discovery": {"bootstrapToken": token},
        }
        files = [{"path": "/run/kubeadm/kubeadm-join-config.yaml", "content": yaml.safe_dump(document)}]
        return _cloud_config(files, "kubeadm join --config /run/kubeadm/kubeadm-join-config.yaml")


def _cloud_config(files: list[dict[str, str]], *commands: str) -> bytes:
    return b"#cloud-config\n" + yaml.safe_dump({"write_files": files, "runcmd": list(commands)}).encode()


def machine(name: str, number: int, data: bytes) -> guest.Machine:
    return guest.Machine(
        ext_id=f"{number:08x}-0000-4000-8000-000000000000",
        name=name,
        cluster="pe",
        image=IMAGE,
        image_type="DISK_IMAGE",
        vcpus=4,
        memory_bytes=8 * GIB,
        user_data=data,
        addresses=(address(number),),
    )


async def boot_clusters(clusters: int, control_planes: int, workers: int) -> dict[str, float]:
    """So many at once; gives what they cost: CPU seconds and MiB. Further control planes are counted like workers,
    which cost as much but for their static Pods."""
    network, clock, plan = Network(), SystemClock(), Plan()
    fleet = Fleet(network, clock)
    tune_garbage_collection()
    before, used = resident_kib(), cpu_seconds()
    joining = control_planes - 1 + workers
    try:
        number = 0
        for i in range(clusters):
            number += 1
            endpoint = balance(network, i, number)
            fleet.powered_on(machine(f"c{i}-cp", number, plan.init(endpoint)))
        await fleet.settled()
        for i, cluster in enumerate(fleet.clusters()):
            await cluster.put([bootstrap_token({"token": TOKEN, "ttl": "24h"}, clock.now())])
            for j in range(joining):
                number += 1
                fleet.powered_on(machine(f"c{i}-w{j}", number, plan.join(f"172.16.{i >> 8}.{i & 255}")))
        await fleet.settled()
        nodes = sum(len(cluster.kubelets) for cluster in fleet.clusters())
        assert nodes == clusters * (1 + joining), (nodes, fleet.console(f"{number:08x}-0000-4000-8000-000000000000"))
        return {"cpu": cpu_seconds() - used, "memory": (resident_kib() - before) / 1024}
    finally:
        await fleet.close()


def balance(network: Network, cluster: int, number: int) -> str:
    """The endpoint of a cluster, in front of its first machine."""
    endpoint = f"172.16.{cluster >> 8}.{cluster & 255}"
    host = network.attach(f"lb-{cluster}", [endpoint])
    host.listen(6443, Balancer(network, host, [(address(number), 6443)]))
    return endpoint


async def run(clusters: int, workers: int, idle_seconds: float) -> Iterator[str]:
    network, clock, plan = Network(), SystemClock(), Plan()
    fleet = Fleet(network, clock)
    lines: list[str] = []
    number = 0
    warm = resident_kib()
    try:
        started, before, used = time.perf_counter(), resident_kib(), cpu_seconds()
        for i in range(clusters):
            number += 1
            endpoint = balance(network, i, number)
            fleet.powered_on(machine(f"c{i}-cp", number, plan.init(endpoint)))
            await fleet.machines[f"{number:08x}-0000-4000-8000-000000000000"].task  # type: ignore[misc]
        await fleet.settled()
        for cluster in fleet.clusters():
            await cluster.put([bootstrap_token({"token": TOKEN, "ttl": "24h"}, clock.now())])
        gc.collect()
        made = len(fleet.clusters())
        assert made == clusters, fleet.console("00000001-0000-4000-8000-000000000000")
        lines.append(
            f"{made} clusters of one machine: {(resident_kib() - before) / made:.0f} KiB and "
            f"{(cpu_seconds() - used) / made * 1000:.1f} ms CPU each, {time.perf_counter() - started:.1f} s in all"
        )
        if workers:
            before, used, started = resident_kib(), cpu_seconds(), time.perf_counter()
            for i in range(clusters):
                for j in range(workers):
                    number += 1
                    data = plan.join(f"172.16.{i >> 8}.{i & 255}")
                    fleet.powered_on(machine(f"c{i}-w{j}", number, data))
                await fleet.settled()
            gc.collect()
            nodes = sum(len(cluster.kubelets) for cluster in fleet.clusters()) - clusters
            assert nodes == clusters * workers, (nodes, fleet.console(f"{number:08x}-0000-4000-8000-000000000000"))
            lines.append(
                f"{nodes} workers: {(resident_kib() - before) / nodes:.0f} KiB and "
                f"{(cpu_seconds() - used) / nodes * 1000:.1f} ms CPU each, {time.perf_counter() - started:.1f} s in all"
            )
        used, started = cpu_seconds(), time.perf_counter()
        await asyncio.sleep(idle_seconds)
        share = (cpu_seconds() - used) / (time.perf_counter() - started)
        total = len(fleet.machines)
        lines.append(
            f"idle: {share * 100:.1f} % of one core for {total} machines ({share / total * 1e6:.1f} us per second each)"
        )
        lines.append(
            f"in all: {resident_kib() / 1024:.0f} MiB resident, {(resident_kib() - warm) / 1024:.0f} MiB simulated"
        )
    finally:
        await fleet.close()
    return iter(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--clusters", type=int, default=1000)
    parser.add_argument("--workers", type=int, default=9, help="per cluster, besides its control plane")
    parser.add_argument("--idle", type=float, default=30.0, help="seconds to watch the idle fleet")
    options = parser.parse_args()
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(40))
    for line in asyncio.run(run(options.clusters, options.workers, options.idle)):
        print(line)


if __name__ == "__main__":
    main()
