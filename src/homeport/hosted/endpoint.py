"""Where clients reach a hosted control plane, read from its Service. Pure.

A load balancer that gives an address of its own serves the Service's ports there. One that shares an address with
others (the plane's own listen address) lists the ports it serves in `status.loadBalancer.ingress[].ports`: then the
port is the node port that stands there.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Endpoint:
    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


@dataclass(frozen=True, slots=True)
class Pending:
    """No endpoint yet: why, as the reason and message of a condition."""

    reason: str
    message: str


def parse_endpoint(text: str) -> Endpoint | None:
    """`host:port` or `[v6]:port`; None for anything else."""
    host, colon, port = text.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    if not colon or not host or not port.isascii() or not port.isdigit() or not 0 < int(port) < 65536:
        return None
    return Endpoint(host, int(port))


def resolve_endpoint(
    service: Mapping[str, Any], port_name: str, *, address: str = "", node_address: str = ""
) -> Endpoint | Pending:
    """`address`: what the user chose; `node_address`: of a node, for Services of type NodePort."""
    spec, where = service.get("spec") or {}, _where(service)
    port = _port(service, port_name)
    if port is None:
        return Pending("ServiceNotReady", f"{where} has no port {port_name!r}")
    kind = spec.get("type", "ClusterIP")
    if kind == "LoadBalancer":
        return _balanced(service, port, address)
    if kind == "NodePort":
        return _on_node(where, port, address or node_address)
    host = address or _cluster_ip(spec)
    if not host:
        return Pending("WaitingForServiceAddress", f"{where} has no cluster IP yet")
    return Endpoint(host, int(port["port"]))


def ingress_hosts(service: Mapping[str, Any]) -> list[str]:
    """Addresses and names that a load balancer gave a Service."""
    found = ((service.get("status") or {}).get("loadBalancer") or {}).get("ingress") or ()
    return [str(host) for each in found if (host := each.get("ip") or each.get("hostname"))]


def _balanced(service: Mapping[str, Any], port: Mapping[str, Any], address: str) -> Endpoint | Pending:
    ingress = ((service.get("status") or {}).get("loadBalancer") or {}).get("ingress") or ()
    for each in ingress:
        host = each.get("ip") or each.get("hostname")
        if host:
            shared = {int(item["port"]) for item in each.get("ports") or () if not item.get("error")}
            node_port = int(port.get("nodePort") or 0)
            # An address that the user chose counts, if the load balancer serves the Service's ports there.
            if node_port and node_port in shared and int(port["port"]) not in shared:
                return Endpoint(str(host), node_port)
            return Endpoint(address or str(host), int(port["port"]))
    if address:
        return Endpoint(address, int(port["port"]))
    why = _problem(service) or "status.loadBalancer.ingress is empty"
    return Pending("WaitingForLoadBalancer", f"{_where(service)} has no load balancer address yet: {why}")


def _problem(service: Mapping[str, Any]) -> str:
    """What its load balancer reports in a condition, as that of the plane does; '': nothing."""
    found = (service.get("status") or {}).get("conditions") or ()
    return next((str(each["message"]) for each in found if each.get("status") == "False" and each.get("message")), "")


def _on_node(where: str, port: Mapping[str, Any], host: str) -> Endpoint | Pending:
    node_port = int(port.get("nodePort") or 0)
    if not node_port:
        return Pending("WaitingForNodePort", f"{where} has no node port yet")
    if not host:
        return Pending(
            "WaitingForNodeAddress",
            f"{where} is of type NodePort and no Node of this cluster has an internal IP address: set the address of "
            "one in the control plane's network settings",
        )
    return Endpoint(host, node_port)


def node_address(nodes: Iterable[Mapping[str, Any]]) -> str:
    """The internal IP of the first node by name, so that it is the same one every time. '': there is none."""
    found = [
        (str((node.get("metadata") or {}).get("name", "")), str(each.get("address", "")))
        for node in nodes
        for each in (node.get("status") or {}).get("addresses") or ()
        if each.get("type") == "InternalIP" and each.get("address")
    ]
    return min(found)[1] if found else ""


def _port(service: Mapping[str, Any], name: str) -> Mapping[str, Any] | None:
    ports = (service.get("spec") or {}).get("ports") or ()
    return next((each for each in ports if each.get("name") == name), None)


def _cluster_ip(spec: Mapping[str, Any]) -> str:
    found = str(spec.get("clusterIP") or "")
    return "" if found == "None" else found


def _where(service: Mapping[str, Any]) -> str:
    meta = service.get("metadata") or {}
    return f"Service {meta.get('namespace', '')}/{meta.get('name', '')}"
