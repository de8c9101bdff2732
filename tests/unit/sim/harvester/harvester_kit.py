"""A simulated Harvester in virtual time, and manifests for it."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from homeport.apiserver.registry import Call
from homeport.apiserver.request import SYSTEM, Context
from homeport.client.protocol import Key
from homeport.runtime.clock import LoopClock
from homeport.runtime.testing import shared_pki
from homeport.sim.harvester.harvester import Harvester
from homeport.sim.harvester.kind import IMAGE

Json = dict[str, Any]


@asynccontextmanager
async def harvester(**options: Any) -> AsyncIterator[Harvester]:
    made = await Harvester.open(shared_pki(), clock=LoopClock(), **options)
    try:
        yield made
    finally:
        await made.close()


async def class_of(made: Harvester, image: str = "rocky-9-cloud") -> str:
    found = await made.client().get(IMAGE, Key("default", image))
    return str(found["status"]["storageClassName"])


def claim_template(name: str, storage_class: str, image: str = "rocky-9-cloud", size: str = "40Gi") -> Json:
    return {
        "metadata": {"name": name, "annotations": {"harvesterhci.io/imageId": f"default/{image}"}},
        "spec": {
            "accessModes": ["ReadWriteMany"],
            "volumeMode": "Block",
            "storageClassName": storage_class,
            "resources": {"requests": {"storage": size}},
        },
    }


def vm_manifest(
    name: str, storage_class: str, *, strategy: str = "Always", image: str = "rocky-9-cloud", **cloud_init: Any
) -> Json:
    """A VM as Harvester's users write one: a claim from an image, a VLAN network, cloud-init."""
    templates = [claim_template(f"{name}-disk-0", storage_class, image)]
    return {
        "metadata": {
            "name": name,
            "namespace": "default",
            "annotations": {"harvesterhci.io/volumeClaimTemplates": json.dumps(templates)},
        },
        "spec": {
            "runStrategy": strategy,
            "template": {
                "metadata": {"labels": {"harvesterhci.io/vmName": name}},
                "spec": {
                    "domain": {
                        "cpu": {"cores": 2},
                        "devices": {
                            "disks": [
                                {"name": "root", "bootOrder": 1, "disk": {"bus": "virtio"}},
                                {"name": "cloudinitdisk", "disk": {"bus": "virtio"}},
                            ],
                            "interfaces": [{"name": "default", "bridge": {}, "model": "virtio"}],
                        },
                        "resources": {"limits": {"cpu": "2", "memory": "4Gi"}},
                    },
                    "networks": [{"name": "default", "multus": {"networkName": "default/workloads"}}],
                    "volumes": [
                        {"name": "root", "persistentVolumeClaim": {"claimName": f"{name}-disk-0"}},
                        {
                            "name": "cloudinitdisk",
                            **(cloud_init or {"cloudInitNoCloud": {"userData": "#cloud-config\n"}}),
                        },
                    ],
                },
            },
        },
    }


async def press(
    made: Harvester, name: str, action: str, body: Json | None = None, plural: str = "virtualmachines"
) -> None:
    """PUT of a subresource: start, stop, restart."""
    served, version = made.server.registry.find("subresources.kubevirt.io", "v1", plural)
    connector = made.server.registry.connector(served, action)
    assert connector is not None
    await connector(Call(Context(SYSTEM), served, version, "default", name, "PUT", body, {}))
