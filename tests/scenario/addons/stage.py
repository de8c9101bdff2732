"""What scenarios of add-ons share: the plane with the add-ons part, objects to write, and looks into clusters."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from capikit import manifest
from capikit.harness import NAMESPACE, Harness, Part, harness
from homeport import addons
from homeport.addons.definition import definitions
from homeport.api.addon.v1alpha1 import ClusterAddon
from homeport.api.meta import Resource
from homeport.capi.chartsettings import ChartSettings
from homeport.client.errors import NotFound
from homeport.client.protocol import Client, Key
from homeport.machinery import yaml
from scenario.capi.look import says

CONFIG_MAP = Resource("", "v1", "ConfigMap", "configmaps")
SECRET = Resource("", "v1", "Secret", "secrets")
DEPLOYMENT = Resource("apps", "v1", "Deployment", "deployments")
READY = says("Ready", status="True")

ADDONS = Part(definitions, addons.register, lambda capi: addons.install(capi, ChartSettings(simulated=True)))


@asynccontextmanager
async def stage(**options: Any) -> AsyncIterator[Harness]:
    async with harness(parts=(ADDONS,), **options) as h:
        yield h


def config_map(name: str, namespace: str = "default", **data: str) -> dict[str, Any]:
    meta = {"name": name, "namespace": namespace}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": data}


def deployment(name: str, namespace: str = "default", replicas: int = 1) -> dict[str, Any]:
    labels = {"app": name}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {
                    "tolerations": [{"operator": "Exists"}],
                    "containers": [{"name": "c", "image": "example/c:1"}],
                },
            },
        },
    }


def text(*objects: dict[str, Any]) -> str:
    return "---\n".join(yaml.dump(each) for each in objects)


def addon(name: str, *objects: dict[str, Any], cluster: str = "one", **spec: Any) -> dict[str, Any]:
    body: dict[str, Any] = {**({"clusterName": cluster} if cluster else {}), **spec}
    if objects:
        body["manifests"] = [{"inline": text(*objects)}]
    return {
        "apiVersion": "addons.homeport.dev/v1alpha1",
        "kind": "ClusterAddon",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": body,
    }


async def cluster(h: Harness, name: str = "one", workers: int = 0, **labels: str) -> None:
    first, *others = manifest.cluster_objects(name, 1, workers)
    first["metadata"]["labels"] = labels
    await h.plane.have(first, *others)


async def ready(h: Harness, name: str, timeout: float = 600.0) -> ClusterAddon:
    found: ClusterAddon = await h.until(ClusterAddon, name, _current, timeout, what="being Ready")
    return found


def _current(found: ClusterAddon) -> bool:
    return READY(found) and found.status.observed_generation == found.metadata.generation


async def data(client: Client, name: str, namespace: str = "default") -> Any:
    return (await client.get(CONFIG_MAP, Key(namespace, name))).get("data")


async def exists(client: Client, kind: Resource, name: str, namespace: str = "default") -> bool:
    try:
        await client.get(kind, Key(namespace, name))
    except NotFound:
        return False
    return True
