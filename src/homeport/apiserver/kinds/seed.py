"""What a fresh server has before anybody asks for anything."""

from __future__ import annotations

from homeport.api.meta import Resource
from homeport.apiserver.kinds.workload.policy import SYSTEM_PRIORITIES
from homeport.apiserver.resource import Json

NAMESPACES = ("default", "kube-system", "kube-public", "kube-node-lease")
_NAMESPACE = Resource("", "v1", "Namespace", "namespaces", namespaced=False)
_SERVICE = Resource("", "v1", "Service", "services")
_SLICE = Resource("discovery.k8s.io", "v1", "EndpointSlice", "endpointslices")
_PRIORITY = Resource("scheduling.k8s.io", "v1", "PriorityClass", "priorityclasses", namespaced=False)
_PURPOSES = {
    "system-node-critical": "For system Pods that must stay on the node they run on.",
    "system-cluster-critical": "For system Pods that the cluster needs and that may move to another node.",
}


def seed_objects(
    *, service_address: str = "10.96.0.1", host: str = "", port: int = 6443
) -> list[tuple[Json, Resource]]:
    """Objects and their kinds, in an order in which they can be created.

    With `host`, the address that the server can be reached at, the Service `kubernetes` has an endpoint. A loopback
    address is none: nothing in a cluster could reach it.
    """
    found: list[tuple[Json, Resource]] = [({"metadata": {"name": name}}, _NAMESPACE) for name in NAMESPACES]
    for name, value in SYSTEM_PRIORITIES.items():
        found.append(({"metadata": {"name": name}, "value": value, "description": _PURPOSES[name]}, _PRIORITY))
    found.append((_service(service_address, port), _SERVICE))
    if host:
        found.append((_slice(host, port), _SLICE))
    return found


def _service(address: str, port: int) -> Json:
    return {
        "metadata": {
            "name": "kubernetes",
            "namespace": "default",
            "labels": {"component": "apiserver", "provider": "kubernetes"},
        },
        "spec": {
            "clusterIP": address,
            "ports": [{"name": "https", "port": 443, "protocol": "TCP", "targetPort": port}],
        },
    }


def _slice(host: str, port: int) -> Json:
    return {
        "metadata": {
            "name": "kubernetes",
            "namespace": "default",
            "labels": {"kubernetes.io/service-name": "kubernetes"},
        },
        "addressType": "IPv6" if ":" in host else "IPv4",
        "endpoints": [{"addresses": [host], "conditions": {"ready": True}}],
        "ports": [{"name": "https", "port": port, "protocol": "TCP"}],
    }
