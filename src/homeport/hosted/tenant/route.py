"""A control plane behind an ingress controller or a Gateway that passes TLS through by host name. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from homeport.api.meta import Resource
from homeport.api.steward.part import Metadata
from homeport.api.steward.v1alpha1 import Gateway, Ingress
from homeport.hosted import name as names
from homeport.hosted.tenant.podinputs import PodInputs

Json = dict[str, Any]

INGRESS = Resource("networking.k8s.io", "v1", "Ingress", "ingresses")
INGRESS_ROUTE = Resource("traefik.io", "v1alpha1", "IngressRouteTCP", "ingressroutetcps")
TLS_ROUTE = Resource("gateway.networking.k8s.io", "v1alpha2", "TLSRoute", "tlsroutes")
ROUTES = (INGRESS, INGRESS_ROUTE, TLS_ROUTE)
INGRESS_PORT, GATEWAY_PORT = 443, 6443
# How each ingress controller is told to pass TLS through.
_PASSTHROUGH: Mapping[str, Mapping[str, str]] = {
    "haproxy": {"haproxy.org/ssl-passthrough": "true"},
    "nginx": {
        "nginx.ingress.kubernetes.io/ssl-passthrough": "true",
        "nginx.ingress.kubernetes.io/backend-protocol": "HTTPS",
    },
}


@dataclass(frozen=True, slots=True)
class Route:
    kind: Resource
    body: Json

    @property
    def name(self) -> str:
        return str(self.body["metadata"]["name"])


def route_host(inputs: PodInputs) -> str:
    """Under which clients reach the API server through an Ingress or a Gateway; '' without."""
    plane = inputs.spec.control_plane
    given = plane.ingress or plane.gateway
    if given is None:
        return ""
    if given.hostname:
        return given.hostname.rpartition(":")[0] if ":" in given.hostname else given.hostname
    return f"{inputs.name}.{inputs.namespace}.{inputs.spec.network_profile.cluster_domain}"


def render_routes(inputs: PodInputs) -> list[Route]:
    plane = inputs.spec.control_plane
    if plane.ingress is not None:
        return [_ingress(inputs, plane.ingress)]
    if plane.gateway is not None:
        return _gateway(inputs, plane.gateway)
    return []


def _ingress(inputs: PodInputs, ingress: Ingress) -> Route:
    if ingress.controller_type == "traefik":
        return _route_tcp(inputs, ingress)
    host, metadata = route_host(inputs), _metadata(inputs, inputs.name, ingress.additional_metadata)
    annotations = {**_PASSTHROUGH.get(ingress.controller_type, {}), **ingress.additional_metadata.annotations}
    if annotations:
        metadata["annotations"] = annotations
    backend = {"service": {"name": inputs.name, "port": {"number": inputs.port}}}
    rule = {"host": host, "http": {"paths": [{"path": "/", "pathType": "Prefix", "backend": backend}]}}
    spec: Json = {"rules": [rule]}
    if ingress.ingress_class_name:
        spec["ingressClassName"] = ingress.ingress_class_name
    return _made(INGRESS, metadata, spec)


def _route_tcp(inputs: PodInputs, ingress: Ingress) -> Route:
    """An Ingress can't ask Traefik to pass TLS through."""
    match = f"HostSNI(`{route_host(inputs)}`)"
    spec = {
        "entryPoints": ["websecure"],
        "routes": [{"match": match, "services": [{"name": inputs.name, "port": inputs.port}]}],
        "tls": {"passthrough": True},
    }
    return _made(INGRESS_ROUTE, _metadata(inputs, inputs.name, ingress.additional_metadata), spec)


def _gateway(inputs: PodInputs, gateway: Gateway) -> list[Route]:
    served = [(inputs.name, names.KUBE_APISERVER, GATEWAY_PORT, inputs.port)]
    tunnel = inputs.spec.addons.konnectivity
    if tunnel is not None:
        port = tunnel.server.port
        served.append((names.part(inputs.name, "konnectivity"), names.KONNECTIVITY_SERVER, port, port))
    found = []
    for name, section, listener, port in served:
        spec = {
            "parentRefs": [{**each, "sectionName": section, "port": listener} for each in gateway.parent_refs],
            "hostnames": [route_host(inputs)],
            "rules": [{"backendRefs": [{"name": inputs.name, "port": port}]}],
        }
        found.append(_made(TLS_ROUTE, _metadata(inputs, name, gateway.additional_metadata), spec))
    return found


def _metadata(inputs: PodInputs, name: str, extra: Metadata) -> Json:
    metadata: Json = {
        "name": name,
        "namespace": inputs.namespace,
        "labels": {**extra.labels, **names.labels(inputs.group, inputs.name, inputs.project)},
    }
    if extra.annotations:
        metadata["annotations"] = dict(extra.annotations)
    return metadata


def _made(kind: Resource, metadata: Json, spec: Json) -> Route:
    return Route(kind, {**kind.type_meta, "metadata": metadata, "spec": spec})
