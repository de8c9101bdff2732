"""The Service in front of a hosted control plane. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

NODE_PORTS = range(30000, 32768)


@dataclass(frozen=True, slots=True)
class Port:
    """`node_port` 0: the API server chooses."""

    name: str
    port: int
    target: int | str
    protocol: str = "TCP"
    node_port: int = 0
    app_protocol: str = ""

    def render(self, type_: str) -> dict[str, Any]:
        found: dict[str, Any] = {
            "name": self.name,
            "port": self.port,
            "targetPort": self.target,
            "protocol": self.protocol,
        }
        if self.app_protocol:
            found["appProtocol"] = self.app_protocol
        if self.node_port and type_ != "ClusterIP":
            found["nodePort"] = self.node_port
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceInputs:
    """`address`: one that the user chose; `external`: it is also written to spec.externalIPs."""

    namespace: str
    name: str
    type: str
    selector: Mapping[str, str]
    ports: Sequence[Port]
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    address: str = ""
    external: bool = False
    balancer_class: str = ""
    source_ranges: Sequence[str] = ()
    cluster_ip: str = ""  # "None": headless


def render_service(inputs: ServiceInputs) -> dict[str, Any]:
    metadata: dict[str, Any] = {"name": inputs.name, "namespace": inputs.namespace, "labels": dict(inputs.labels)}
    if inputs.annotations:
        metadata["annotations"] = dict(inputs.annotations)
    spec: dict[str, Any] = {
        "type": inputs.type,
        "selector": dict(inputs.selector),
        "ports": [each.render(inputs.type) for each in inputs.ports],
    }
    if inputs.cluster_ip:
        spec["clusterIP"] = inputs.cluster_ip
    if inputs.address and inputs.external:
        spec["externalIPs"] = [inputs.address]
    if inputs.type == "LoadBalancer":
        if inputs.address:
            spec["loadBalancerIP"] = inputs.address
        if inputs.balancer_class:
            spec["loadBalancerClass"] = inputs.balancer_class
        if inputs.source_ranges:
            spec["loadBalancerSourceRanges"] = list(inputs.source_ranges)
    return {"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": spec}
