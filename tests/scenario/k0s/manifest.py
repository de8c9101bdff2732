"""Clusters with k0s on Nutanix as a user writes them."""

from __future__ import annotations

from typing import Any

from scenario.nutanix import manifest as nutanix

CAPI = "cluster.x-k8s.io/v1beta2"
BOOTSTRAP = "bootstrap.cluster.x-k8s.io/v1beta2"
CONTROL_PLANE = "controlplane.cluster.x-k8s.io/v1beta2"
VERSION = "v1.33.4+k0s.0"
IMAGE = "ubuntu-22.04-k0s"
HOST = "10.0.0.100"

Json = dict[str, Any]


def _object(api_version: str, kind: str, name: str, spec: Json) -> Json:
    return {
        "apiVersion": api_version,
        "kind": kind,
        "metadata": {"name": name, "namespace": "default"},
        "spec": spec,
    }


def _ref(group: str, kind: str, name: str) -> dict[str, str]:
    return {"apiGroup": f"{group}.cluster.x-k8s.io", "kind": kind, "name": name}


def cluster(name: str, control_plane: str) -> Json:
    network = {"pods": {"cidrBlocks": ["192.168.0.0/16"]}, "services": {"cidrBlocks": ["10.96.0.0/12"]}}
    spec = {
        "clusterNetwork": network,
        "infrastructureRef": _ref("infrastructure", "NutanixCluster", name),
        "controlPlaneRef": _ref("controlplane", control_plane, f"{name}-cp"),
    }
    return _object(CAPI, "Cluster", name, spec)


def machine_template(name: str, image: str = IMAGE) -> Json:
    return nutanix.template(name, nutanix.machine_spec(image={"type": "name", "name": image}))


def workers(
    name: str, replicas: int, *, version: str = VERSION, labels: Json | None = None, **config: Any
) -> list[Json]:
    spec = {
        "clusterName": name,
        "replicas": replicas,
        "selector": {"matchLabels": {}},
        "template": {
            "metadata": {"labels": labels or {}},
            "spec": {
                "clusterName": name,
                "version": version,
                "bootstrap": {"configRef": _ref("bootstrap", "K0sWorkerConfigTemplate", f"{name}-worker")},
                "infrastructureRef": _ref("infrastructure", "NutanixMachineTemplate", f"{name}-worker-mt"),
            },
        },
    }
    return [
        _object(CAPI, "MachineDeployment", f"{name}-md-0", spec),
        machine_template(f"{name}-worker-mt"),
        _object(BOOTSTRAP, "K0sWorkerConfigTemplate", f"{name}-worker", {"template": {"spec": config}}),
    ]


def hosted(name: str, worker_count: int, *, version: str = VERSION, **config: Any) -> list[Json]:
    """A control plane of Pods, and workers on Nutanix."""
    service = {"type": "LoadBalancer", "apiPort": 6443, "konnectivityPort": 8132}
    infra = nutanix.infra_cluster(name)
    del infra["spec"]["controlPlaneEndpoint"]
    return [
        cluster(name, "K0smotronControlPlane"),
        infra,
        _object(CONTROL_PLANE, "K0smotronControlPlane", f"{name}-cp", {"version": version, "service": service}),
        *workers(name, worker_count, version=version, **config),
        nutanix.secret(),
    ]


def standalone(
    name: str,
    controllers: int,
    worker_count: int = 0,
    *,
    version: str = VERSION,
    config: Json | None = None,
    **spec: Any,
) -> list[Json]:
    """A control plane on machines, and workers."""
    ref = {
        "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1",
        "kind": "NutanixMachineTemplate",
        "name": f"{name}-cp-mt",
    }
    plane = {
        "replicas": controllers,
        "version": version,
        "k0sConfigSpec": config or {},
        "machineTemplate": {"infrastructureRef": ref},
        **spec,
    }
    return [
        cluster(name, "K0sControlPlane"),
        nutanix.infra_cluster(name, HOST),
        _object(CONTROL_PLANE, "K0sControlPlane", f"{name}-cp", plane),
        machine_template(f"{name}-cp-mt"),
        *(workers(name, worker_count, version=version) if worker_count else []),
        nutanix.secret(),
    ]
