"""A cluster of a built-in template as a Cluster with a topology. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from homeport.platforms.k0rdent.cluster.blueprint import K0S_VARIABLE, WORKER_CLASS, worker_topology
from homeport.platforms.k0rdent.cluster.config import ClusterConfig
from homeport.platforms.k0rdent.cluster.vendor import Access
from homeport.platforms.k0rdent.name import SYSTEM_NAMESPACE

Json = dict[str, Any]

# Labels that Cluster API keeps in sync on Nodes. The kubelet may set the others itself, when it registers.
_SYNCED = ("node-role.kubernetes.io", "node-restriction.kubernetes.io", "node.cluster.x-k8s.io")
_CLOUD_ARGS = ("--enable-cloud-provider", "--kubelet-extra-args=--cloud-provider=external")
_CONTROLLER_ARGS = ("--enable-worker", *_CLOUD_ARGS, "--no-taints")
_UNHEALTHY_SECONDS = 300


def render_topology(config: ClusterConfig, access: Access) -> Json:
    """The spec of the Cluster."""
    plane: Json = {"replicas": config.control_planes}
    return {
        "clusterNetwork": {
            "pods": {"cidrBlocks": list(config.pods)},
            "services": {"cidrBlocks": list(config.services)},
        },
        "topology": {
            "classRef": {"name": config.chart.name, "namespace": SYSTEM_NAMESPACE},
            "version": config.version,
            "controlPlane": plane,
            "workers": {"machineDeployments": [_workers(config)]},
            "variables": [
                {"name": config.chart.vendor.cluster_variable, "value": _cluster_value(config, access)},
                {"name": config.chart.vendor.machine_variable, "value": _machine_value(config)},
                {"name": K0S_VARIABLE, "value": _k0s_value(config)},
            ],
        },
    }


def _workers(config: ClusterConfig) -> Json:
    made: Json = {"class": WORKER_CLASS, "name": worker_topology(config.chart), "replicas": config.workers}
    if config.labels:
        made["metadata"] = {"labels": dict(config.labels)}
    if config.taints:
        made["taints"] = [{**each, "propagation": "Always"} for each in config.taints]
    if config.health_check:
        made["healthCheck"] = {
            "enabled": True,
            "checks": {
                "unhealthyNodeConditions": [
                    {"type": "Ready", "status": status, "timeoutSeconds": _UNHEALTHY_SECONDS}
                    for status in ("False", "Unknown")
                ]
            },
            "remediation": {"triggerIf": {"unhealthyLessThanOrEqualTo": config.health_check}},
        }
    return made


def _cluster_value(config: ClusterConfig, access: Access) -> Json:
    own = config.chart.vendor.cluster_value(config.infrastructure.settings, access)
    return {**own, "controlPlaneEndpoint": {"host": config.host, "port": config.host_port}}


def _machine_value(config: ClusterConfig) -> Json:
    return config.worker if config.hosted else {"controlPlane": config.control_plane, "worker": config.worker}


def _k0s_value(config: ClusterConfig) -> Json:
    args = [*config.args, *config.control_plane_args]
    if not config.hosted:
        args = [*_CONTROLLER_ARGS, *args]
    plane: Json = {"args": args, "config": k0s_config(config)}
    plane |= {"files": list(config.files)} if config.files else {}
    plane |= {"mounts": list(config.mounts)} if config.mounts else {}
    return {
        "controlPlane": plane,
        "worker": {"args": [*_CLOUD_ARGS, *_label_args(config.labels), *config.args]},
    }


def _label_args(labels: Mapping[str, str]) -> list[str]:
    own = [f"{key}={value}" for key, value in sorted(labels.items()) if not _is_synced(key)]
    return [f"--labels={','.join(own)}"] if own else []


def _is_synced(key: str) -> bool:
    domain = key.partition("/")[0]
    return "/" in key and any(domain == each or domain.endswith(f".{each}") for each in _SYNCED)


def k0s_config(config: ClusterConfig) -> Json:
    """The ClusterConfig of k0s: what the user writes wins."""
    spec: Json = {"telemetry": {"enabled": False}}
    if not config.hosted:
        spec["network"] = {
            "provider": config.network_provider,
            "podCIDR": config.pods[0],
            "serviceCIDR": config.services[0],
        }
        if config.network_provider == "calico":
            calico = {"mode": config.calico.get("mode") or "vxlan", "mtu": config.calico.get("mtu")}
            spec["network"]["calico"] = {name: value for name, value in calico.items() if value}
    made: Json = {
        "apiVersion": "k0s.k0sproject.io/v1beta1",
        "kind": "ClusterConfig",
        "metadata": {"name": "k0s"},
        "spec": spec,
    }
    return merged(made, config.k0s_config)


def merged(base: Mapping[str, Any], over: Mapping[str, Any]) -> Json:
    """Maps are merged, everything else is replaced, null removes: as Helm merges values."""
    made = dict(base)
    for key, value in over.items():
        if value is None:
            made.pop(key, None)
        elif isinstance(value, Mapping) and isinstance(made.get(key), Mapping):
            made[key] = merged(made[key], value)
        else:
            made[key] = value
    return made
