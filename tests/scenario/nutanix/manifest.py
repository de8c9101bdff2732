"""A whole cluster on Nutanix as a user writes it: the older version of Cluster API, names as guides have them."""

from __future__ import annotations

import json
from typing import Any

CAPI = "cluster.x-k8s.io/v1beta1"
INFRA = "infrastructure.cluster.x-k8s.io/v1beta1"
BOOTSTRAP = "bootstrap.cluster.x-k8s.io/v1beta1"
CONTROL_PLANE = "controlplane.cluster.x-k8s.io/v1beta1"
VERSION = "v1.28.0"
IMAGE = "ubuntu-22.04-kube-v1.28.0"
ADDRESS = "prism-central.example.com"
_EXTERNAL = {"nodeRegistration": {"kubeletExtraArgs": {"cloud-provider": "external"}}}


def _object(api_version: str, kind: str, name: str, spec: dict[str, Any], namespace: str = "default") -> dict[str, Any]:
    return {
        "apiVersion": api_version,
        "kind": kind,
        "metadata": {"name": name, "namespace": namespace},
        "spec": spec,
    }


def _ref(api_version: str, kind: str, name: str) -> dict[str, str]:
    return {"apiVersion": api_version, "kind": kind, "name": name}


def secret(
    password: str = "your-password",
    *,
    name: str = "nutanix-credentials",
    namespace: str = "default",
    user: str = "admin",
) -> dict[str, Any]:
    listed = [{"type": "basic_auth", "data": {"prismCentral": {"username": user, "password": password}}}]
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": name, "namespace": namespace},
        "type": "Opaque",
        "stringData": {"credentials": json.dumps(listed, indent=2)},
    }


def machine_spec(memory: str = "8Gi", **more: Any) -> dict[str, Any]:
    return {
        "vcpuSockets": 4,
        "vcpusPerSocket": 1,
        "memorySize": memory,
        "systemDiskSize": "100Gi",
        "bootType": "legacy",
        "image": {"type": "name", "name": IMAGE},
        "cluster": {"type": "name", "name": "nutanix-cluster-1"},
        "subnet": [{"type": "name", "name": "vm-network"}],
        **more,
    }


def template(name: str, spec: dict[str, Any], namespace: str = "default") -> dict[str, Any]:
    return _object(INFRA, "NutanixMachineTemplate", name, {"template": {"spec": spec}}, namespace)


def cluster(name: str, namespace: str = "default") -> dict[str, Any]:
    spec = {
        "clusterNetwork": {
            "pods": {"cidrBlocks": ["192.168.0.0/16"]},
            "services": {"cidrBlocks": ["10.96.0.0/12"]},
            "serviceDomain": "cluster.local",
        },
        "infrastructureRef": _ref(INFRA, "NutanixCluster", name),
        "controlPlaneRef": _ref(CONTROL_PLANE, "KubeadmControlPlane", f"{name}-kcp"),
    }
    return _object(CAPI, "Cluster", name, spec, namespace)


def infra_cluster(name: str, host: str = "10.0.0.100", namespace: str = "default", **more: Any) -> dict[str, Any]:
    spec: dict[str, Any] = {
        "controlPlaneEndpoint": {"host": host, "port": 6443},
        "prismCentral": {
            "address": ADDRESS,
            "port": 9440,
            "insecure": False,
            "credentialRef": {"kind": "Secret", "name": "nutanix-credentials"},
        },
        **more,
    }
    return _object(INFRA, "NutanixCluster", name, spec, namespace)


def control_plane(name: str, replicas: int, version: str = VERSION, namespace: str = "default") -> dict[str, Any]:
    spec = {
        "replicas": replicas,
        "version": version,
        "machineTemplate": {"infrastructureRef": _ref(INFRA, "NutanixMachineTemplate", f"{name}-cp-mt")},
        "kubeadmConfigSpec": {
            "clusterConfiguration": {
                "apiServer": {"extraArgs": {"cloud-provider": "external"}},
                "controllerManager": {"extraArgs": {"cloud-provider": "external"}},
            },
            "initConfiguration": _EXTERNAL,
            "joinConfiguration": _EXTERNAL,
        },
    }
    return _object(CONTROL_PLANE, "KubeadmControlPlane", f"{name}-kcp", spec, namespace)


def workers(
    name: str, replicas: int, version: str = VERSION, namespace: str = "default", **machine: Any
) -> list[dict[str, Any]]:
    template_ref = _ref(BOOTSTRAP, "KubeadmConfigTemplate", f"{name}-md-0-kt")
    spec = {
        "clusterName": name,
        "replicas": replicas,
        "selector": {"matchLabels": {}},
        "template": {
            "spec": {
                "clusterName": name,
                "version": version,
                "bootstrap": {"configRef": template_ref},
                "infrastructureRef": _ref(INFRA, "NutanixMachineTemplate", f"{name}-worker-mt"),
                **machine,
            }
        },
    }
    config = {"template": {"spec": {"joinConfiguration": _EXTERNAL}}}
    return [
        _object(CAPI, "MachineDeployment", f"{name}-md-0", spec, namespace),
        template(f"{name}-worker-mt", machine_spec("16Gi"), namespace),
        _object(BOOTSTRAP, "KubeadmConfigTemplate", f"{name}-md-0-kt", config, namespace),
    ]


def cluster_objects(
    name: str = "my-nutanix-cluster",
    control_planes: int = 3,
    worker_count: int = 3,
    host: str = "10.0.0.100",
    namespace: str = "default",
    *,
    with_secret: bool = True,
) -> list[dict[str, Any]]:
    """In the order in which people write them: the Secret comes last."""
    return [
        cluster(name, namespace),
        infra_cluster(name, host, namespace),
        control_plane(name, control_planes, namespace=namespace),
        template(f"{name}-cp-mt", machine_spec(), namespace),
        *(workers(name, worker_count, namespace=namespace) if worker_count else []),
        *([secret(namespace=namespace)] if with_secret else []),
    ]
