"""The clusters of bench/scale.py: one control plane machine each, on Nutanix, in the newest version of Cluster API."""

from __future__ import annotations

import asyncio
import contextlib
import datetime
from collections.abc import Awaitable, Callable
from typing import Any

from homeport.api.cluster.v1beta2 import Cluster
from homeport.api.controlplane.v1beta2 import KubeadmControlPlane
from homeport.api.meta import Resource
from homeport.client.errors import AlreadyExists, Timeout, TooManyRequests, Unavailable
from homeport.client.http import HttpClient
from homeport.client.protocol import Key, MergePatch
from homeport.machinery import condition
from scenario.nutanix import manifest

NAMESPACE = "default"
_ATTEMPTS = 6
INFRA = "infrastructure.cluster.x-k8s.io"
CONTROL_PLANE = "controlplane.cluster.x-k8s.io"
_PLURALS = {
    "Cluster": "clusters",
    "NutanixCluster": "nutanixclusters",
    "KubeadmControlPlane": "kubeadmcontrolplanes",
    "NutanixMachineTemplate": "nutanixmachinetemplates",
    "Secret": "secrets",
}
_KUBELET = {"nodeRegistration": {"kubeletExtraArgs": [{"name": "cloud-provider", "value": "external"}]}}


def name_of(number: int) -> str:
    return f"c{number:05d}"


def secret() -> dict[str, Any]:
    return manifest.secret()


def objects(number: int) -> list[dict[str, Any]]:
    name = name_of(number)
    host = f"10.65.{number >> 8}.{number & 255}"
    cluster = {
        "clusterNetwork": {"pods": {"cidrBlocks": ["192.168.0.0/16"]}, "services": {"cidrBlocks": ["10.96.0.0/12"]}},
        "infrastructureRef": {"apiGroup": INFRA, "kind": "NutanixCluster", "name": name},
        "controlPlaneRef": {"apiGroup": CONTROL_PLANE, "kind": "KubeadmControlPlane", "name": f"{name}-kcp"},
    }
    template = {"apiGroup": INFRA, "kind": "NutanixMachineTemplate", "name": f"{name}-cp-mt"}
    plane = {
        "replicas": 1,
        "version": manifest.VERSION,
        "machineTemplate": {"spec": {"infrastructureRef": template}},
        "kubeadmConfigSpec": {"initConfiguration": _KUBELET, "joinConfiguration": _KUBELET},
    }
    return [
        _object("cluster.x-k8s.io/v1beta2", "Cluster", name, cluster),
        manifest.infra_cluster(name, host),
        _object(f"{CONTROL_PLANE}/v1beta2", "KubeadmControlPlane", f"{name}-kcp", plane),
        manifest.template(f"{name}-cp-mt", manifest.machine_spec()),
    ]


def _object(api_version: str, kind: str, name: str, spec: dict[str, Any]) -> dict[str, Any]:
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": name, "namespace": NAMESPACE}, "spec": spec}


async def create(client: HttpClient, body: dict[str, Any]) -> None:
    group, _, version = body["apiVersion"].rpartition("/")
    kind = Resource(group, version, body["kind"], _PLURALS[body["kind"]])
    with contextlib.suppress(AlreadyExists):  # the answer to an attempt before was lost
        await _persist(lambda: client.create(body, kind=kind))


async def _persist(call: Callable[[], Awaitable[object]]) -> None:
    """A server with a thousand clusters may refuse a request or answer it late."""
    for attempt in range(1, _ATTEMPTS + 1):
        try:
            await call()
        except (Unavailable, Timeout, TooManyRequests) as error:
            if attempt == _ATTEMPTS:
                raise
            await asyncio.sleep(max(attempt, error.retry_after))
        else:
            return


async def create_cluster(client: HttpClient, number: int) -> None:
    for body in objects(number):
        await create(client, body)


async def roll(client: HttpClient, number: int) -> None:
    """Replaces every machine, though nothing has changed."""
    after = datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    key = Key(NAMESPACE, f"{name_of(number)}-kcp")
    patch = MergePatch({"spec": {"rollout": {"after": after}}})
    await _persist(lambda: client.patch(KubeadmControlPlane, key, patch))


def is_up(cluster: Cluster) -> bool:
    return condition.is_true(cluster.status.conditions, "Available")


def is_rolled(plane: KubeadmControlPlane) -> bool:
    s = plane.status
    counted = (s.replicas, s.ready_replicas, s.available_replicas, s.up_to_date_replicas)
    return bool(counted == (1,) * 4 and (s.observed_generation or 0) >= plane.metadata.generation > 1)
