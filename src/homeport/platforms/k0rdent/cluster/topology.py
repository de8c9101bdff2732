"""A cluster of a built-in template as a Cluster with a topology. Pure."""

from __future__ import annotations

from typing import Any

from homeport.platforms.k0rdent.cluster.blueprint import worker_topology
from homeport.platforms.k0rdent.cluster.config import ClusterConfig
from homeport.platforms.k0rdent.cluster.patch import WORKER_CLASS
from homeport.platforms.k0rdent.cluster.vendor import Access
from homeport.platforms.k0rdent.name import SYSTEM_NAMESPACE

Json = dict[str, Any]

_UNHEALTHY_SECONDS = 300
_API_PORT = 6443


def render_topology(config: ClusterConfig, access: Access) -> Json:
    """The spec of the Cluster."""
    chart, plane = config.chart, {"replicas": config.control_planes}
    network: Json = {"pods": {"cidrBlocks": list(config.pods)}, "services": {"cidrBlocks": list(config.services)}}
    if chart.distribution.network_port and config.host_port != _API_PORT:
        network["apiServerPort"] = config.host_port
    return {
        "clusterNetwork": network,
        "topology": {
            "classRef": {"name": chart.name, "namespace": SYSTEM_NAMESPACE},
            "version": config.version,
            "controlPlane": plane,
            "workers": {"machineDeployments": [_workers(config)]},
            "variables": [
                {"name": chart.vendor.cluster_variable, "value": _cluster_value(config, access)},
                {"name": chart.vendor.machine_variable, "value": _machine_value(config)},
                {"name": chart.distribution.variable, "value": chart.distribution.value(config)},
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
