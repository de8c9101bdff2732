"""What a simulated Harvester costs: CPU time and writes per VM, from the manifest to Running and from there to its end.

python bench/harvester_sim.py [--vms 500]
"""

from __future__ import annotations

import argparse
import asyncio
import json
import resource
import tempfile
from pathlib import Path
from typing import Any

import msgspec
import structlog

from homeport.apiserver.auth.pki import PKI
from homeport.app.memory import tune_garbage_collection
from homeport.client.protocol import Key
from homeport.sim.harvester.harvester import Harvester
from homeport.sim.harvester.kind import IMAGE, VM
from homeport.sim.harvester.world import default_world


def cpu_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def manifest(name: str, storage_class: str) -> dict[str, Any]:
    claim = {
        "metadata": {"name": f"{name}-disk-0", "annotations": {"harvesterhci.io/imageId": "default/rocky-9-cloud"}},
        "spec": {
            "accessModes": ["ReadWriteMany"],
            "volumeMode": "Block",
            "storageClassName": storage_class,
            "resources": {"requests": {"storage": "40Gi"}},
        },
    }
    notes = {
        "harvesterhci.io/volumeClaimTemplates": json.dumps([claim]),
        "harvesterhci.io/removedPersistentVolumeClaims": f"{name}-disk-0",
    }
    spec = {
        "domain": {
            "devices": {
                "disks": [{"name": "root", "disk": {"bus": "virtio"}}],
                "interfaces": [{"name": "default", "bridge": {}}],
            },
            "resources": {"limits": {"cpu": "4", "memory": "8Gi"}},
        },
        "networks": [{"name": "default", "multus": {"networkName": "default/workloads"}}],
        "volumes": [
            {"name": "root", "persistentVolumeClaim": {"claimName": f"{name}-disk-0"}},
            {"name": "cloudinitdisk", "cloudInitNoCloud": {"userData": "#cloud-config\n"}},
        ],
    }
    return {
        "metadata": {"name": name, "namespace": "default", "annotations": notes},
        "spec": {"runStrategy": "Always", "template": {"spec": spec}},
    }


async def measure(vms: int) -> None:
    tune_garbage_collection()
    roomy = tuple(
        msgspec.structs.replace(node, cpus=vms, memory_bytes=vms * 8 * 1024**3) for node in default_world().nodes
    )
    world = msgspec.structs.replace(default_world(), nodes=roomy)
    with tempfile.TemporaryDirectory() as folder:
        began = cpu_seconds()
        harvester = await Harvester.open(PKI.ensure(Path(folder)), world=world)
        print(f"start           {cpu_seconds() - began:6.2f} s CPU")
        client = harvester.client()
        image = await client.get(IMAGE, Key("default", "rocky-9-cloud"))
        names = [f"vm-{number}" for number in range(vms)]
        began, revision = cpu_seconds(), harvester.server.store.revision
        for name in names:
            await client.create(manifest(name, image["status"]["storageClassName"]), kind=VM)
        await harvester.settled()
        shown = [vm["status"]["printableStatus"] for vm in (await client.list(VM)).items]
        assert shown == ["Running"] * vms, set(shown)
        report("to Running", began, harvester.server.store.revision - revision, vms)
        began, revision = cpu_seconds(), harvester.server.store.revision
        for name in names:
            await client.delete(VM, Key("default", name))
        await harvester.settled()
        assert not (await client.list(VM)).items
        report("to their end", began, harvester.server.store.revision - revision, vms)
        await harvester.close()


def report(what: str, began: float, writes: int, vms: int) -> None:
    seconds = cpu_seconds() - began
    each = f"{1000 * seconds / vms:.1f} ms and {writes / vms:.1f} writes each"
    print(f"{what:15} {seconds:6.2f} s CPU for {vms} VMs, {each}")


if __name__ == "__main__":
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(40))
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--vms", type=int, default=500)
    asyncio.run(measure(parser.parse_args().vms))
