"""The Service in front of a control plane, and the endpoint that it gives. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from homeport.hosted.endpoint import Endpoint, Pending, resolve_endpoint
from homeport.hosted.k0smotron.pod.subject import Subject, config_map

Json = dict[str, Any]
TYPES = ("ClusterIP", "NodePort", "LoadBalancer")


def render_service(subject: Subject) -> Json:
    service = subject.spec.service
    metadata = subject.metadata(subject.service_name, "control-plane")
    metadata["labels"] |= subject.service_setting("labels") or {}
    if annotations := subject.service_setting("annotations"):
        metadata["annotations"] = {**metadata.get("annotations", {}), **annotations}
    spec: Json = {
        "type": service.type,
        "selector": subject.pod_selector,
        "ports": [
            _port("api", service.api_port, service.type),
            _port("konnectivity", service.konnectivity_port, service.type),
        ],
    }
    if policy := subject.service_setting("externalTrafficPolicy"):
        spec["externalTrafficPolicy"] = policy
    if service.type == "LoadBalancer" and (balancer := subject.service_setting("loadBalancerClass")):
        spec["loadBalancerClass"] = balancer
    return {"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": spec}


def _port(name: str, number: int, type_: str) -> Json:
    port: Json = {"name": name, "port": number, "targetPort": number, "protocol": "TCP"}
    return {**port, "nodePort": number} if type_ == "NodePort" else port


def endpoint_of(subject: Subject, service: Mapping[str, Any], node: str = "") -> Endpoint | Pending:
    """Where nodes and users reach the API server. `node`: the address of a node."""
    ingress = subject.spec.ingress
    if ingress is not None:
        return Endpoint(ingress.api_host, ingress.port)
    return resolve_endpoint(service, "api", address=subject.spec.external_address, node_address=node)


def render_endpoint_manifest(subject: Subject, endpoint: Endpoint) -> Json:
    """A manifest for the cluster itself: network plugins that replace kube-proxy must know where the API server is."""
    text = (
        "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: control-plane-endpoint\n  namespace: kube-system\n"
        f'data:\n  apiServerHost: "{endpoint.host}"\n  apiServerPort: "{endpoint.port}"\n'
    )
    return config_map(subject, subject.names.endpoint, "control-plane", {"endpoint.yaml": text})
