"""A control plane behind an ingress controller that passes TLS through by host name. Pure.

Clients inside the cluster talk to `kubernetes.default`, a name that no ingress controller knows: on each node a proxy
takes their connections and talks to the API server under its public name.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from ipaddress import ip_network
from typing import Any

from homeport.api.k0smotron.v1beta2 import IngressSpec
from homeport.capi.remote.pki import KeyPair
from homeport.hosted.k0smotron.pod.config import has_native_konnectivity
from homeport.hosted.k0smotron.pod.subject import Subject, config_map, part
from homeport.machinery import yaml

Json = dict[str, Any]

PROXY = "k0smotron-haproxy"
PROXY_PORT = 7443
_PROXY_IMAGE = "haproxy:2.8"
_AGENT_IMAGE = "quay.io/k0sproject/apiserver-network-proxy-agent:v0.33.0"
# Where no agent listens yet: k0s wants an endpoint before it makes the profiles of workers.
_NOWHERE = "192.0.2.1"


def kubernetes_service_ip(subject: Subject) -> str:
    first = subject.service_cidr.partition(",")[0]
    try:
        return str(ip_network(first.strip(), strict=False).network_address + 1)
    except ValueError:
        return "10.96.0.1"


def proxy_names(subject: Subject) -> list[str]:
    """Names by which clients inside the cluster know the API server."""
    domain = subject.cluster_domain
    names = ["kubernetes", "kubernetes.default", "kubernetes.default.svc", f"kubernetes.default.svc.{domain}"]
    return [*names, "localhost", "127.0.0.1", kubernetes_service_ip(subject)]


def render_ingress(subject: Subject, ingress: IngressSpec) -> Json:
    metadata = subject.metadata(subject.names.ingress, "ingress")
    if ingress.annotations:
        metadata["annotations"] = {**metadata.get("annotations", {}), **ingress.annotations}
    service = subject.spec.service
    rules = [
        _rule(subject, ingress.api_host, service.api_port),
        _rule(subject, ingress.konnectivity_host, service.konnectivity_port),
    ]
    spec: Json = {"rules": rules}
    if ingress.class_name is not None:
        spec["ingressClassName"] = ingress.class_name
    return {"apiVersion": "networking.k8s.io/v1", "kind": "Ingress", "metadata": metadata, "spec": spec}


def _rule(subject: Subject, host: str, port: int) -> Json:
    backend = {"service": {"name": subject.service_name, "port": {"number": port}}}
    return {"host": host, "http": {"paths": [{"path": "/", "pathType": "Prefix", "backend": backend}]}}


def render_ingress_manifests(subject: Subject, ingress: IngressSpec) -> Json:
    """What k0s applies inside the cluster."""
    data = {
        "0-endpoints.yaml": yaml.dump(_endpoints()),
        "1-proxy-config.yaml": yaml.dump(_proxy_config(ingress)),
        "2-proxy.yaml": yaml.dump(_proxy()),
        "3-service.yaml": yaml.dump(_service(subject)),
    }
    if not has_native_konnectivity(subject):
        data["4-konnectivity.yaml"] = "---\n".join(yaml.dump(each) for each in _agent(subject, ingress))
    return config_map(subject, subject.names.ingress_manifests, "ingress", data)


def render_ingress_certificates(subject: Subject, pair: KeyPair, authority: bytes) -> Json:
    """A manifest with the key of the proxies, so a Secret."""
    inner = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": f"{PROXY}-certs", "namespace": "default"},
        "data": {"server.pem": _base64(pair.certificate + pair.key), "ca.crt": _base64(authority)},
    }
    metadata = subject.metadata(f"{subject.names.ingress_manifests}-certs", "ingress")
    data = {"proxy-certs.yaml": _base64(yaml.dump(inner).encode())}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "type": "Opaque", "data": data}


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode()


def _endpoints() -> Json:
    return {
        "apiVersion": "v1",
        "kind": "Endpoints",
        "metadata": {"name": "kubernetes", "namespace": "default"},
        "subsets": [
            {
                "addresses": [{"ip": _NOWHERE}],
                "ports": [{"name": "https", "port": PROXY_PORT, "protocol": "TCP"}],
            }
        ],
    }


def _proxy_config(ingress: IngressSpec) -> Json:
    server = f"{ingress.api_host}:{ingress.port}"
    text = (
        "defaults\n  mode tcp\n  timeout connect 10s\n  timeout client 1h\n  timeout server 1h\n"
        f"frontend inside\n  bind [::]:{PROXY_PORT} v4v6 ssl crt /etc/haproxy/certs/server.pem\n"
        "  default_backend outside\n"
        f"backend outside\n  server api {server} ssl verify required ca-file /etc/haproxy/certs/ca.crt "
        f"sni str({ingress.api_host})\n"
    )
    metadata = {"name": f"{PROXY}-config", "namespace": "default"}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"haproxy.cfg": text}}


def _proxy() -> Json:
    labels = {"app": PROXY}
    container = {
        "name": "haproxy",
        "image": _PROXY_IMAGE,
        "args": ["-f", "/usr/local/etc/haproxy/haproxy.cfg"],
        "ports": [{"name": "https", "containerPort": PROXY_PORT}],
        "volumeMounts": [
            {"name": "config", "mountPath": "/usr/local/etc/haproxy", "readOnly": True},
            {"name": "certs", "mountPath": "/etc/haproxy/certs", "readOnly": True},
        ],
    }
    pod = {
        "hostNetwork": True,  # it runs before the network plugin, which needs the API server
        "tolerations": [{"operator": "Exists"}],
        "containers": [container],
        "volumes": [
            {"name": "config", "configMap": {"name": f"{PROXY}-config"}},
            {"name": "certs", "secret": {"secretName": f"{PROXY}-certs"}},
        ],
    }
    spec = {"selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels}, "spec": pod}}
    metadata = {"name": PROXY, "namespace": "default", "labels": labels}
    return {"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": metadata, "spec": spec}


def _service(subject: Subject) -> Json:
    labels = {"component": "apiserver", "provider": "kubernetes"}
    spec = {
        "type": "ClusterIP",
        "clusterIP": kubernetes_service_ip(subject),
        "internalTrafficPolicy": "Local",
        "selector": {"app": PROXY},
        "ports": [{"name": "https", "port": 443, "targetPort": PROXY_PORT, "protocol": "TCP"}],
    }
    metadata = {"name": "kubernetes", "namespace": "default", "labels": labels}
    return {"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": spec}


def _agent_container(subject: Subject, ingress: IngressSpec) -> Json:
    token_path = "/var/run/secrets/tokens"  # noqa: S105
    return {
        "name": "konnectivity-agent",
        "image": _agent_image(part(subject.spec.k0s_config or {}, "spec", "images")),
        "command": ["/proxy-agent"],
        "env": [{"name": "NODE_IP", "valueFrom": {"fieldRef": {"fieldPath": "status.hostIP"}}}],
        "args": [
            "--logtostderr=true",
            "--ca-cert=/var/run/secrets/kubernetes.io/serviceaccount/ca.crt",
            f"--proxy-server-host={ingress.konnectivity_host}",
            f"--proxy-server-port={ingress.port}",
            f"--service-account-token-path={token_path}/konnectivity-agent-token",
            "--agent-identifiers=host=$(NODE_IP)",
            "--agent-id=$(NODE_IP)",
        ],
        "readinessProbe": {"httpGet": {"port": 8093, "path": "/readyz"}, "timeoutSeconds": 15},
        "livenessProbe": {"httpGet": {"port": 8093, "path": "/healthz"}, "timeoutSeconds": 15},
        "volumeMounts": [{"name": "konnectivity-agent-token", "mountPath": token_path}],
    }


def _agent(subject: Subject, ingress: IngressSpec) -> list[Json]:
    """Konnectivity's agents, for versions of k0s that can't be told where their own should connect to."""
    labels = {"k8s-app": "konnectivity-agent"}
    token = {"path": "konnectivity-agent-token", "audience": "system:konnectivity-server"}
    pod = {
        "priorityClassName": "system-cluster-critical",
        "serviceAccountName": "konnectivity-agent",
        "nodeSelector": {"kubernetes.io/os": "linux"},
        "tolerations": [{"operator": "Exists"}],
        "containers": [_agent_container(subject, ingress)],
        "volumes": [{"name": "konnectivity-agent-token", "projected": {"sources": [{"serviceAccountToken": token}]}}],
    }
    spec = {"selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels}, "spec": pod}}
    where = {"name": "konnectivity-agent", "namespace": "kube-system"}
    group = "rbac.authorization.k8s.io"
    return [
        {
            "apiVersion": f"{group}/v1",
            "kind": "ClusterRoleBinding",
            "metadata": {"name": "system:konnectivity-server"},
            "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": "system:auth-delegator"},
            "subjects": [{"apiGroup": group, "kind": "User", "name": "system:konnectivity-server"}],
        },
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": where},
        {"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {**where, "labels": labels}, "spec": spec},
    ]


def _agent_image(images: Mapping[str, Any]) -> str:
    """As k0s chooses its own images: one that the user names, and all of them from the user's registry."""
    own = part(images, "konnectivity")
    image, _, version = _AGENT_IMAGE.partition(":")
    if own.get("image"):
        image, version = str(own["image"]), ""
    version = str(own.get("version") or version)
    registry = str(images.get("repository") or "")
    if registry and not image.startswith(registry):
        host, slash, path = image.partition("/")
        image = f"{registry}/{path}" if slash and ("." in host or ":" in host) else f"{registry}/{image}"
    return f"{image}:{version}" if version else image
