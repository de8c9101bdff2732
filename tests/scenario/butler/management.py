"""A ClusterBootstrap on a simulated Harvester or Nutanix."""

from __future__ import annotations

import base64
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from homeport.api.butler.v1alpha1 import ClusterBootstrap
from homeport.client.http import HttpClient
from homeport.client.kubeconfig import merge, parse, resolve
from homeport.client.protocol import Key
from homeport.machinery import condition
from homeport.platforms.butler.name import SYSTEM_NAMESPACE
from scenario.butler.stage import SECRET, Stage, butler

MGMT = Key(SYSTEM_NAMESPACE, "mgmt")
# Addresses of the machines' network that nothing else uses.
VIPS = {"harvester": "10.40.0.200", "nutanix": "10.0.0.200"}
POOLS = {"harvester": "10.40.0.210-10.40.0.220", "nutanix": "10.0.0.210-10.0.0.220"}
SMALL = {"cpu": 2, "memoryMB": 4096, "diskGB": 40}


def bootstrap(stage: Stage, *, single: bool = False, workers: int = 0, vip: bool = True, **spec: Any) -> dict[str, Any]:
    plane = {"replicas": 1 if single else 3, **SMALL}
    cluster: dict[str, Any] = {"name": "mgmt", "topology": "single-node" if single else "ha", "controlPlane": plane}
    if workers:
        cluster["workers"] = {"replicas": workers, **SMALL}
    network = {"vip": VIPS[stage.provider]} if vip else {}
    made = {
        "providerRef": {"name": "site"},
        "cluster": cluster,
        "network": network,
        "platform": {"metalLBPool": POOLS[stage.provider]},
        **spec,
    }
    given = {name: value for name, value in made.items() if value is not None}
    return butler("ClusterBootstrap", "mgmt", SYSTEM_NAMESPACE, given)


def is_ready(found: ClusterBootstrap) -> bool:
    ready = condition.find(found.status.conditions, "Ready") or {}
    return bool(ready.get("status") == "True" and ready.get("observedGeneration") == found.metadata.generation)


async def bootstrapped(stage: Stage, timeout: float = 1800.0) -> ClusterBootstrap:
    found: ClusterBootstrap = await stage.plane.until(ClusterBootstrap, MGMT, is_ready, timeout, what="being Ready")
    return found


def consoles(stage: Stage) -> dict[str, str]:
    """What the simulated machines of the cluster print, by name."""
    return {
        each.name: each.console.text() for each in stage.site.fleet.machines.values() if each.name.startswith("mgmt-")
    }


@asynccontextmanager
async def inside(stage: Stage) -> AsyncIterator[HttpClient]:
    """A client of the management cluster, with the kubeconfig of its administrator."""
    secret = await stage.client.get(SECRET, Key(SYSTEM_NAMESPACE, "mgmt-kubeconfig"))
    text = base64.b64decode(secret["data"]["value"]).decode()
    async with HttpClient(resolve(merge([parse(text, Path("kubeconfig"))]))) as client:
        yield client
