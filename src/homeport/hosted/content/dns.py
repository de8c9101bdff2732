"""CoreDNS, as kubeadm installs it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from homeport.hosted.content.inputs import (
    CLUSTER_ROLE,
    CONFIG_MAP,
    DEPLOYMENT,
    SERVICE,
    SERVICE_ACCOUNT,
    SYSTEM,
    ContentInputs,
    Item,
    account,
    binding,
    item,
    rule,
)

ADDON = "coredns"
# Which CoreDNS belongs to each minor version of Kubernetes; a newer one gets the last.
_TAGS = {
    29: "v1.11.1",
    30: "v1.11.3",
    31: "v1.11.3",
    32: "v1.11.3",
    33: "v1.12.0",
    34: "v1.12.1",
    35: "v1.13.1",
    36: "v1.14.6",
}
_LABELS = {"k8s-app": "kube-dns"}


def render_dns(inputs: ContentInputs, *, repository: str = "", tag: str = "") -> Iterator[Item]:
    yield item(SERVICE_ACCOUNT, "coredns", SYSTEM, addon=ADDON)
    rules = [
        rule([""], ["endpoints", "services", "pods", "namespaces"], ["list", "watch"]),
        rule(["discovery.k8s.io"], ["endpointslices"], ["list", "watch"]),
    ]
    yield item(CLUSTER_ROLE, "system:coredns", addon=ADDON, rules=rules)
    yield binding("system:coredns", "system:coredns", account("coredns"), addon=ADDON)
    yield item(CONFIG_MAP, "coredns", SYSTEM, addon=ADDON, data={"Corefile": _corefile(inputs)})
    yield item(DEPLOYMENT, "coredns", SYSTEM, addon=ADDON, labels=_LABELS, spec=_deployment(inputs, repository, tag))
    yield _service(inputs)


def _service(inputs: ContentInputs) -> Item:
    addresses = inputs.dns_addresses
    labels = {**_LABELS, "kubernetes.io/cluster-service": "true", "kubernetes.io/name": "CoreDNS"}
    spec: dict[str, Any] = {
        "clusterIP": addresses[0],
        "selector": _LABELS,
        "ports": [
            {"name": "dns", "port": 53, "protocol": "UDP", "targetPort": 53},
            {"name": "dns-tcp", "port": 53, "protocol": "TCP", "targetPort": 53},
            {"name": "metrics", "port": 9153, "protocol": "TCP", "targetPort": 9153},
        ],
    }
    if len(addresses) > 1:
        spec |= {"clusterIPs": addresses, "ipFamilyPolicy": "PreferDualStack"}
    return item(SERVICE, "kube-dns", SYSTEM, addon=ADDON, labels=labels, spec=spec)


def _deployment(inputs: ContentInputs, repository: str, tag: str) -> dict[str, Any]:
    apart = {
        "weight": 100,
        "podAffinityTerm": {"labelSelector": {"matchLabels": _LABELS}, "topologyKey": "kubernetes.io/hostname"},
    }
    files = {"name": "coredns", "items": [{"key": "Corefile", "path": "Corefile"}]}
    pod = {
        "priorityClassName": "system-cluster-critical",
        "serviceAccountName": "coredns",
        "dnsPolicy": "Default",
        "nodeSelector": {"kubernetes.io/os": "linux"},
        "affinity": {"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [apart]}},
        "tolerations": [
            {"key": "CriticalAddonsOnly", "operator": "Exists"},
            {"key": "node-role.kubernetes.io/control-plane", "effect": "NoSchedule"},
        ],
        "containers": [_container(inputs, repository, tag)],
        "volumes": [{"name": "config-volume", "configMap": files}],
    }
    return {
        "replicas": 2,
        "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 1}},
        "selector": {"matchLabels": _LABELS},
        "template": {"metadata": {"labels": _LABELS}, "spec": pod},
    }


def _container(inputs: ContentInputs, repository: str, tag: str) -> dict[str, Any]:
    image = f"{(repository or f'{inputs.registry}/coredns').rstrip('/')}/coredns:{tag or default_tag(inputs.minor)}"
    return {
        "name": "coredns",
        "image": image,
        "imagePullPolicy": "IfNotPresent",
        "args": ["-conf", "/etc/coredns/Corefile"],
        "resources": {"limits": {"memory": "170Mi"}, "requests": {"cpu": "100m", "memory": "70Mi"}},
        "ports": [
            {"name": "dns", "containerPort": 53, "protocol": "UDP"},
            {"name": "dns-tcp", "containerPort": 53, "protocol": "TCP"},
            {"name": "metrics", "containerPort": 9153, "protocol": "TCP"},
        ],
        "livenessProbe": {
            "httpGet": {"path": "/health", "port": 8080, "scheme": "HTTP"},
            "initialDelaySeconds": 60,
            "timeoutSeconds": 5,
            "failureThreshold": 5,
        },
        "readinessProbe": {"httpGet": {"path": "/ready", "port": 8181, "scheme": "HTTP"}},
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "capabilities": {"add": ["NET_BIND_SERVICE"], "drop": ["ALL"]},
            "readOnlyRootFilesystem": True,
        },
        "volumeMounts": [{"name": "config-volume", "mountPath": "/etc/coredns", "readOnly": True}],
    }


def default_tag(minor: int) -> str:
    return _TAGS[min(max(minor, min(_TAGS)), max(_TAGS))]


def _corefile(inputs: ContentInputs) -> str:
    return f""".:53 {{
    errors
    health {{
       lameduck 5s
    }}
    ready
    kubernetes {inputs.domain} in-addr.arpa ip6.arpa {{
       pods insecure
       fallthrough in-addr.arpa ip6.arpa
       ttl 30
    }}
    prometheus :9153
    forward . /etc/resolv.conf {{
       max_concurrent 1000
    }}
    cache 30
    loop
    reload
    loadbalance
}}
"""
