"""VMs on a simulated Harvester, created by the KubeVirt provider: the time until all run, and the API calls per VM.

    python bench/harvester.py [--vms 500]

Each machine is driven as its reconciler does: observe, converge, then nothing until the watch wakes it. Requests are
counted by the simulator's journal; watches are counted apart, because their number does not depend on the machines.

Upstream's numbers are counted in the source of its machine controller (release series 0.11), not measured.
"""

from __future__ import annotations

import argparse
import asyncio
import base64
import hashlib
import json
import tempfile
import time
import uuid
from collections import Counter
from pathlib import Path
from typing import Any

import msgspec
import structlog

from homeport.api.kubevirt.v1alpha1 import BootDisk, KubevirtMachine
from homeport.apiserver.auth.authn import authenticated
from homeport.apiserver.auth.pki import PKI
from homeport.apiserver.request import User
from homeport.client.dial import DIRECT
from homeport.infra.protocol import MachineScope
from homeport.providers.harvester.cloud.node import Nodes
from homeport.providers.harvester.infracluster.connection import Connector, HarvesterSession
from homeport.providers.harvester.machine.driver import MachineDriver
from homeport.runtime.clock import SystemClock
from homeport.sim.engine.journal import Journal
from homeport.sim.harvester.harvester import Harvester
from homeport.sim.harvester.world import default_world

TOKEN = "bench"
USER_DATA = b"#cloud-config\n"
UPSTREAM_CREATES = 6  # GET and POST Secret, GET instance, GET VM twice, POST VM
UPSTREAM_LOOKS = 3  # GET Secret, instance, VM; 20 s later, and every 20 s until the VM runs


async def create(driver: MachineDriver, session: HarvesterSession, name: str) -> None:
    """Returns when the VM runs."""
    infra = KubevirtMachine()
    infra.metadata.name, infra.metadata.namespace, infra.metadata.uid = name, "default", str(uuid.uuid4())
    infra.spec.boot_disk = BootDisk(image="default/rocky-9-cloud", size="40Gi")
    inner = {
        "domain": {"cpu": {"cores": 2}, "memory": {"guest": "4Gi"}},
        "networks": [{"name": "nic-0", "multus": {"networkName": "default/workloads"}}],
    }
    infra.spec.virtual_machine_template.spec = {"template": {"spec": inner}}
    changed = asyncio.Event()
    first = True
    while True:
        changed.clear()
        scope: Any = MachineScope(
            infra, session, user_data=USER_DATA, format="cloud-config", never_asked=first, wake=changed.set
        )
        instance = await driver.observe(scope)
        if instance is not None and instance.power == "on":
            return
        await driver.converge(scope, instance)
        if not first:
            await changed.wait()
        first = False


async def measure(vms: int, folder: Path) -> None:
    clock, pki = SystemClock(), PKI.ensure(folder, ["127.0.0.1"])
    world, journal = default_world(), Journal(50 * vms + 1000)
    nodes = tuple(msgspec.structs.replace(each, memory_bytes=8 * 2**40, cpus=1024) for each in world.nodes)
    harvester = await Harvester.open(
        pki, world=msgspec.structs.replace(world, nodes=nodes), clock=clock, journal=journal
    )
    url = await harvester.serve()
    user = authenticated(User("bench", ("system:masters",), "1"))
    harvester.server.authenticator._static[hashlib.sha256(TOKEN.encode()).digest()] = user
    ca = base64.b64encode(pki.ca_pem).decode()
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "h", "cluster": {"server": url, "certificate-authority-data": ca}}],
        "users": [{"name": "u", "user": {"token": TOKEN}}],
        "contexts": [{"name": "c", "context": {"cluster": "h", "user": "u", "namespace": "default"}}],
        "current-context": "c",
    }
    connector = Connector(harvester.client(), clock, DIRECT)
    try:
        session = await connector.open({}, {"kubeconfig": json.dumps(config)})
        driver, begun, cpu = MachineDriver(clock, Nodes(None)), time.perf_counter(), time.process_time()
        await asyncio.gather(*(create(driver, session, f"vm-{number}") for number in range(vms)))
        seconds, cpu = time.perf_counter() - begun, time.process_time() - cpu
    finally:
        await connector.close()
        await harvester.close()
    calls = Counter(_call(entry.method, entry.route, entry.query) for entry in journal)
    watches = sum(count for call, count in calls.items() if call.startswith("WATCH"))
    print(f"{vms} VMs run after {seconds:.1f} s, {cpu:.1f} s of CPU: {vms / seconds:.0f} a second, with the simulator")
    print(f"{(calls.total() - watches) / vms:.2f} API calls per VM, and {watches} watches for all")
    print(f"upstream: at least {UPSTREAM_CREATES + UPSTREAM_LOOKS} per VM, and {UPSTREAM_LOOKS} for each further 20 s")
    for call, count in calls.most_common():
        print(f"  {count:6} {call}")


def _call(method: str, route: str, query: str) -> str:
    return f"{'WATCH' if 'watch=' in query else method} {route}"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--vms", type=int, default=500, help="how many (default: 500)")
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(40))
    with tempfile.TemporaryDirectory() as made:
        asyncio.run(measure(parser.parse_args().vms, Path(made)))
