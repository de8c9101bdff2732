"""A whole cluster on Harvester as a user writes it."""

from __future__ import annotations

import base64
import json
from typing import Any

CAPI = "cluster.x-k8s.io/v1beta2"
INFRA = "infrastructure.cluster.x-k8s.io/v1alpha1"
BOOTSTRAP = "bootstrap.cluster.x-k8s.io/v1beta2"
CONTROL_PLANE = "controlplane.cluster.x-k8s.io/v1beta2"
VERSION = "v1.30.0"
IMAGE = "ubuntu-22.04-kube-v1.30.0"
SERVER = "https://10.20.0.10:6443"
VIP = "10.40.0.200"
NAMESPACE = "default"

Json = dict[str, Any]


def _object(api_version: str, kind: str, name: str, spec: Json) -> Json:
    return {
        "apiVersion": api_version,
        "kind": kind,
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": spec,
    }


def _ref(api_version: str, kind: str, name: str) -> dict[str, str]:
    return {"apiGroup": api_version.partition("/")[0], "kind": kind, "name": name}


def kubeconfig(ca: bytes, token: str, server: str = SERVER) -> Json:
    """By the address that the simulated network knows; the certificate is that of a server on this host."""
    endpoint = {
        "server": server,
        "tls-server-name": "localhost",
        "certificate-authority-data": base64.b64encode(ca).decode(),
    }
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "local", "cluster": endpoint}],
        "users": [{"name": "local", "user": {"token": token}}],
        "contexts": [{"name": "local", "context": {"cluster": "local", "user": "local", "namespace": NAMESPACE}}],
        "current-context": "local",
    }


def secret(config: Json, name: str = "harvester-kubeconfig") -> Json:
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "stringData": {"kubeconfig": json.dumps(config)},
    }


def machine_spec(memory: str = "8Gi", cores: int = 4, image: str = IMAGE, **more: Any) -> Json:
    inner = {
        "domain": {"cpu": {"cores": cores}, "memory": {"guest": memory}},
        "networks": [{"name": "nic-0", "multus": {"networkName": "default/workloads"}}],
    }
    return {
        "virtualMachineTemplate": {"spec": {"runStrategy": "Always", "template": {"spec": inner}}},
        "bootDisk": {"image": f"default/{image}", "size": "40Gi"},
        **more,
    }


def container_machine() -> Json:
    """As upstream's templates have it: the image comes from a registry."""
    inner = {
        "domain": {"cpu": {"cores": 2}, "memory": {"guest": "4Gi"}},
        "networks": [{"name": "default", "pod": {}}],
        "volumes": [{"name": "root", "containerDisk": {"image": f"example.com/capk/ubuntu-2204:{VERSION}"}}],
    }
    return {
        "virtualMachineTemplate": {"spec": {"runStrategy": "Always", "template": {"spec": inner}}},
        "dataDisks": [{"name": "data", "size": "5Gi"}],
    }


def template(name: str, spec: Json) -> Json:
    return _object(INFRA, "KubevirtMachineTemplate", name, {"template": {"spec": spec}})


def cluster(name: str) -> Json:
    spec = {
        "clusterNetwork": {
            "pods": {"cidrBlocks": ["192.168.0.0/16"]},
            "services": {"cidrBlocks": ["10.96.0.0/12"]},
        },
        "infrastructureRef": _ref(INFRA, "KubevirtCluster", name),
        "controlPlaneRef": _ref(CONTROL_PLANE, "KubeadmControlPlane", f"{name}-kcp"),
    }
    return _object(CAPI, "Cluster", name, spec)


def infra_cluster(name: str, host: str = VIP, **more: Any) -> Json:
    endpoint = {"controlPlaneEndpoint": {"host": host, "port": 6443}} if host else {}
    spec = {**endpoint, "infraClusterSecretRef": {"name": "harvester-kubeconfig"}, **more}
    return _object(INFRA, "KubevirtCluster", name, spec)


def control_plane(name: str, replicas: int) -> Json:
    ref = _ref(INFRA, "KubevirtMachineTemplate", f"{name}-cp")
    spec = {
        "replicas": replicas,
        "version": VERSION,
        "machineTemplate": {"spec": {"infrastructureRef": ref}},
        "kubeadmConfigSpec": {"clusterConfiguration": {"certificatesDir": "/etc/kubernetes/pki"}},
    }
    return _object(CONTROL_PLANE, "KubeadmControlPlane", f"{name}-kcp", spec)


def workers(name: str, replicas: int) -> list[Json]:
    spec = {
        "clusterName": name,
        "replicas": replicas,
        "selector": {"matchLabels": {}},
        "template": {
            "spec": {
                "clusterName": name,
                "version": VERSION,
                "bootstrap": {"configRef": _ref(BOOTSTRAP, "KubeadmConfigTemplate", f"{name}-md-0")},
                "infrastructureRef": _ref(INFRA, "KubevirtMachineTemplate", f"{name}-worker"),
            }
        },
    }
    config = {"template": {"spec": {"joinConfiguration": {"caCertPath": "/etc/kubernetes/pki/ca.crt"}}}}
    return [
        _object(CAPI, "MachineDeployment", f"{name}-md-0", spec),
        template(f"{name}-worker", machine_spec("16Gi")),
        _object(BOOTSTRAP, "KubeadmConfigTemplate", f"{name}-md-0", config),
    ]


def bare_machine(cluster_name: str, name: str, **more: Any) -> list[Json]:
    """Bootstrap data, KubevirtMachine and Machine of a VM that boots and never becomes a Node."""
    labels = {"cluster.x-k8s.io/cluster-name": cluster_name}
    infra = _object(INFRA, "KubevirtMachine", name, machine_spec(**more))
    machine = _object(CAPI, "Machine", name, {"clusterName": cluster_name, "version": VERSION})
    machine["spec"]["bootstrap"] = {"dataSecretName": "data"}
    machine["spec"]["infrastructureRef"] = _ref(INFRA, "KubevirtMachine", name)
    for each in (infra, machine):
        each["metadata"]["labels"] = labels
    data = {"value": "#cloud-config\n", "format": "cloud-config"}
    meta = {"name": "data", "namespace": NAMESPACE}
    return [{"apiVersion": "v1", "kind": "Secret", "metadata": meta, "stringData": data}, infra, machine]


def external(objects: list[Json]) -> list[Json]:
    """The same with kubelets that wait for a cloud controller manager."""
    options = {"nodeRegistration": {"kubeletExtraArgs": [{"name": "cloud-provider", "value": "external"}]}}
    for each in objects:
        if each["kind"] == "KubeadmControlPlane":
            each["spec"]["kubeadmConfigSpec"] |= {"initConfiguration": options, "joinConfiguration": options}
        if each["kind"] == "KubeadmConfigTemplate":
            each["spec"]["template"]["spec"]["joinConfiguration"] |= options
    return objects


def cluster_objects(name: str, control_planes: int, worker_count: int) -> list[Json]:
    return [
        cluster(name),
        infra_cluster(name),
        control_plane(name, control_planes),
        template(f"{name}-cp", machine_spec()),
        *(workers(name, worker_count) if worker_count else []),
    ]
