"""The objects of bench/dashboard.py: one paused Cluster, which no controller touches, with many Machines."""

from __future__ import annotations

import asyncio
from typing import Any

from homeport.api.meta import Resource
from homeport.client.http import HttpClient
from homeport.client.protocol import Key, MergePatch

GROUP = "cluster.x-k8s.io"
_THEN = "2026-01-01T00:00:00Z"
CLUSTERS = Resource(GROUP, "v1beta2", "Cluster", "clusters")
DEPLOYMENTS = Resource(GROUP, "v1beta2", "MachineDeployment", "machinedeployments")
SETS = Resource(GROUP, "v1beta2", "MachineSet", "machinesets")
MACHINES = Resource(GROUP, "v1beta2", "Machine", "machines")
WORKERS = Key("default", "big-workers")
_AT_ONCE = 64


def name_of(number: int) -> str:
    return f"big-workers-{number:05d}"


def condition(kind: str, status: str, reason: str, message: str = "") -> dict[str, Any]:
    return {"type": kind, "status": status, "reason": reason, "message": message, "lastTransitionTime": _THEN}


def _owner(kind: str, made: Any) -> dict[str, Any]:
    return {"apiVersion": f"{GROUP}/v1beta2", "kind": kind, "name": made.name, "uid": made.uid, "controller": True}


def _object(kind: str, name: str, spec: dict[str, Any], owner: dict[str, Any] | None = None) -> dict[str, Any]:
    metadata: dict[str, Any] = {"name": name, "namespace": "default", "labels": {f"{GROUP}/cluster-name": "big"}}
    if owner:
        metadata["ownerReferences"] = [owner]
    return {"apiVersion": f"{GROUP}/v1beta2", "kind": kind, "metadata": metadata, "spec": spec}


def _template() -> dict[str, Any]:
    reference = {"apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "NutanixMachineTemplate", "name": "big"}
    bootstrap = {
        "configRef": {"apiGroup": "bootstrap.cluster.x-k8s.io", "kind": "KubeadmConfigTemplate", "name": "big"}
    }
    return {"clusterName": "big", "version": "v1.29.0", "bootstrap": bootstrap, "infrastructureRef": reference}


async def make(client: HttpClient, count: int) -> None:
    network = {"pods": {"cidrBlocks": ["192.168.0.0/16"]}}
    infra = {"apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "NutanixCluster", "name": "big"}
    spec = {"paused": True, "clusterNetwork": network, "infrastructureRef": infra}
    cluster = await client.create(_object("Cluster", "big", spec), kind=CLUSTERS)
    body = {"clusterName": "big", "replicas": count, "selector": {}, "template": {"spec": _template()}}
    deployment = await client.create(
        _object("MachineDeployment", WORKERS.name, body, _owner("Cluster", cluster)), kind=DEPLOYMENTS
    )
    labels = {"matchLabels": {f"{GROUP}/cluster-name": "big"}}
    inner = {"metadata": {"labels": labels["matchLabels"]}, "spec": _template()}
    machine_set = await client.create(
        _object(
            "MachineSet",
            WORKERS.name,
            {"clusterName": "big", "replicas": count, "selector": labels, "template": inner},
            _owner("MachineDeployment", deployment),
        ),
        kind=SETS,
    )
    slots = asyncio.Semaphore(_AT_ONCE)

    async def one(number: int) -> None:
        async with slots:
            owner = _owner("MachineSet", machine_set)
            spec = {**_template(), "providerID": f"nutanix://{number:036d}"}
            await client.create(_object("Machine", name_of(number), spec, owner), kind=MACHINES)
            await report(client, number, "all is well")

    await asyncio.gather(*(one(number) for number in range(count)))


async def report(client: HttpClient, number: int, message: str, *, ready: bool = True) -> None:
    status = "True" if ready else "False"
    body = {
        "phase": "Running" if ready else "Failed",
        "nodeRef": {"name": name_of(number)},
        "conditions": [
            condition("Ready", status, "Ready" if ready else "VMFailed", message),
            condition("Available", status, "Available" if ready else "VMFailed", message),
            condition("NodeHealthy", status, "NodeHealthy" if ready else "VMFailed", message),
            condition("InfrastructureReady", status, "Ready" if ready else "VMFailed", message),
        ],
    }
    await client.patch(MACHINES, Key("default", name_of(number)), MergePatch({"status": body}), subresource="status")


async def count_ready(client: HttpClient, number: int) -> None:
    """A figure that the tree shows."""
    await client.patch(DEPLOYMENTS, WORKERS, MergePatch({"status": {"readyReplicas": number}}), subresource="status")


async def complain(client: HttpClient, message: str) -> None:
    """A cause that the front page shows."""
    wrong = [
        condition("Available", "False", "NotAvailable"),
        condition("ControlPlaneAvailable", "False", "Broken", message),
    ]
    await client.patch(
        CLUSTERS, Key("default", "big"), MergePatch({"status": {"conditions": wrong}}), subresource="status"
    )
