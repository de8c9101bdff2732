"""Manifests of a whole cluster, as a user writes them."""

from __future__ import annotations

from typing import Any

from capikit import generic

CLUSTER_API = "cluster.x-k8s.io/v1beta2"
_PROVIDER_ID = [{"name": "provider-id", "value": "generic://{{ ds.meta_data.instance_id }}"}]


def _ref(kind: str, name: str, group: str = generic.GROUP) -> dict[str, str]:
    return {"apiGroup": group, "kind": kind, "name": name}


def _object(api_version: str, kind: str, name: str, spec: dict[str, Any], **meta: Any) -> dict[str, Any]:
    return {
        "apiVersion": api_version,
        "kind": kind,
        "metadata": {"name": name, "namespace": "default", **meta},
        "spec": spec,
    }


def template(name: str) -> dict[str, Any]:
    return _object(f"{generic.GROUP}/v1", "GenericMachineTemplate", name, {"template": {"spec": {}}})


def cluster(name: str) -> dict[str, Any]:
    spec = {
        "clusterNetwork": {"pods": {"cidrBlocks": ["192.168.0.0/16"]}, "services": {"cidrBlocks": ["10.128.0.0/12"]}},
        "controlPlaneRef": _ref("KubeadmControlPlane", f"{name}-cp", "controlplane.cluster.x-k8s.io"),
        "infrastructureRef": _ref("GenericCluster", name),
    }
    return _object(CLUSTER_API, "Cluster", name, spec)


def control_plane(name: str, replicas: int, version: str, **more: Any) -> dict[str, Any]:
    registration = {"kubeletExtraArgs": _PROVIDER_ID}
    spec = {
        "replicas": replicas,
        "version": version,
        "machineTemplate": {"spec": {"infrastructureRef": _ref("GenericMachineTemplate", f"{name}-cp")}},
        "kubeadmConfigSpec": {
            "initConfiguration": {"nodeRegistration": registration},
            "joinConfiguration": {"nodeRegistration": registration},
        },
        **more,
    }
    return _object("controlplane.cluster.x-k8s.io/v1beta2", "KubeadmControlPlane", f"{name}-cp", spec)


def workers(name: str, replicas: int, version: str, **more: Any) -> list[dict[str, Any]]:
    config = {"template": {"spec": {"joinConfiguration": {"nodeRegistration": {"kubeletExtraArgs": _PROVIDER_ID}}}}}
    machine = {
        "clusterName": name,
        "version": version,
        "bootstrap": {
            "configRef": _ref("KubeadmConfigTemplate", f"{name}-md-0", "bootstrap.cluster.x-k8s.io"),
        },
        "infrastructureRef": _ref("GenericMachineTemplate", f"{name}-md-0"),
    }
    spec = {
        "clusterName": name,
        "replicas": replicas,
        "selector": {"matchLabels": {}},
        "template": {"spec": machine},
        **more,
    }
    return [
        _object("bootstrap.cluster.x-k8s.io/v1beta2", "KubeadmConfigTemplate", f"{name}-md-0", config),
        template(f"{name}-md-0"),
        _object(CLUSTER_API, "MachineDeployment", f"{name}-md-0", spec),
    ]


def cluster_objects(
    name: str, control_planes: int, worker_count: int, version: str = "v1.30.0"
) -> list[dict[str, Any]]:
    """Every object of a cluster, in the order in which people write them."""
    return [
        cluster(name),
        _object(f"{generic.GROUP}/v1", "GenericCluster", name, {}),
        control_plane(name, control_planes, version),
        template(f"{name}-cp"),
        *(workers(name, worker_count, version) if worker_count else []),
    ]
