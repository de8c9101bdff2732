"""CoreDNS and kube-proxy, as kubeadm installs them."""

from __future__ import annotations

from collections.abc import Iterator
from ipaddress import ip_network

from homeport.api.meta import Resource
from homeport.sim.machine import yaml
from homeport.sim.machine.workload.facts import Facts, parse_version
from homeport.sim.machine.workload.kind import CONFIG_MAP, DAEMON_SET, DEPLOYMENT, SERVICE, SERVICE_ACCOUNT, Json

# Which CoreDNS each minor version of kubeadm installs.
_COREDNS = {
    27: "v1.10.1",
    28: "v1.10.1",
    29: "v1.11.1",
    30: "v1.11.3",
    31: "v1.11.3",
    32: "v1.11.3",
    33: "v1.12.0",
    34: "v1.12.1",
}
_SYSTEM = "kube-system"
_DNS_LABELS = {"k8s-app": "kube-dns"}
_CONTROL_PLANE = "node-role.kubernetes.io/control-plane"


def coredns(facts: Facts) -> Iterator[tuple[Json, Resource]]:
    dns = facts.configuration.get("dns") or {}
    if dns.get("disabled"):
        return
    yield _account("coredns")
    yield {"metadata": {"name": "coredns", "namespace": _SYSTEM}, "data": {"Corefile": _corefile(facts)}}, CONFIG_MAP
    meta = {"name": "coredns", "namespace": _SYSTEM, "labels": _DNS_LABELS}
    yield {"metadata": meta, "spec": _coredns_spec(facts, dns)}, DEPLOYMENT
    ports = [
        {"name": "dns", "port": 53, "protocol": "UDP", "targetPort": 53},
        {"name": "dns-tcp", "port": 53, "protocol": "TCP", "targetPort": 53},
        {"name": "metrics", "port": 9153, "protocol": "TCP", "targetPort": 9153},
    ]
    labels = {**_DNS_LABELS, "kubernetes.io/cluster-service": "true"}
    service = {"clusterIP": service_address(facts, 10), "selector": _DNS_LABELS, "ports": ports}
    yield {"metadata": {"name": "kube-dns", "namespace": _SYSTEM, "labels": labels}, "spec": service}, SERVICE


def _coredns_spec(facts: Facts, dns: Json) -> Json:
    repository = dns.get("imageRepository") or f"{facts.image_repository}/coredns"
    tag = dns.get("imageTag") or _COREDNS.get(parse_version(facts.version)[1], "v1.12.1")
    container = {
        "name": "coredns",
        "image": f"{repository}/coredns:{tag}",
        "args": ["-conf", "/etc/coredns/Corefile"],
        "resources": {"limits": {"memory": "170Mi"}, "requests": {"cpu": "100m", "memory": "70Mi"}},
        "volumeMounts": [{"name": "config-volume", "mountPath": "/etc/coredns", "readOnly": True}],
    }
    pod = {
        "priorityClassName": "system-cluster-critical",
        "serviceAccountName": "coredns",
        "dnsPolicy": "Default",
        "nodeSelector": {"kubernetes.io/os": "linux"},
        "tolerations": [
            {"key": "CriticalAddonsOnly", "operator": "Exists"},
            {"key": _CONTROL_PLANE, "effect": "NoSchedule"},
        ],
        "containers": [container],
        "volumes": [{"name": "config-volume", "configMap": {"name": "coredns"}}],
    }
    return {
        "replicas": 2,
        "selector": {"matchLabels": _DNS_LABELS},
        "template": {"metadata": {"labels": _DNS_LABELS}, "spec": pod},
    }


def kube_proxy(facts: Facts) -> Iterator[tuple[Json, Resource]]:
    proxy = facts.configuration.get("proxy") or {}
    if proxy.get("disabled"):
        return
    labels = {"k8s-app": "kube-proxy"}
    yield _account("kube-proxy")
    data = {"config.conf": yaml.dump(_proxy_configuration(facts)), "kubeconfig.conf": f"server: {facts.server}\n"}
    yield (
        {"metadata": {"name": "kube-proxy", "namespace": _SYSTEM, "labels": {"app": "kube-proxy"}}, "data": data},
        CONFIG_MAP,
    )
    container = {
        "name": "kube-proxy",
        "image": f"{facts.image_repository}/kube-proxy:{facts.version}",
        "command": ["/usr/local/bin/kube-proxy", "--config=/var/lib/kube-proxy/config.conf"],
    }
    pod = {
        "priorityClassName": "system-node-critical",
        "serviceAccountName": "kube-proxy",
        "hostNetwork": True,
        "nodeSelector": {"kubernetes.io/os": "linux"},
        "tolerations": [{"operator": "Exists"}],
        "containers": [container],
    }
    spec = {"selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels}, "spec": pod}}
    yield {"metadata": {"name": "kube-proxy", "namespace": _SYSTEM, "labels": labels}, "spec": spec}, DAEMON_SET


def _proxy_configuration(facts: Facts) -> Json:
    return {
        "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
        "kind": "KubeProxyConfiguration",
        "clusterCIDR": facts.pod_subnet,
        "clientConnection": {"kubeconfig": "/var/lib/kube-proxy/kubeconfig.conf"},
        **{key: value for key, value in facts.proxy.items() if key not in ("apiVersion", "kind")},
    }


def service_address(facts: Facts, index: int) -> str:
    network = ip_network(facts.service_subnet.split(",")[0], strict=False)
    return str(network[min(index, network.num_addresses - 2)])


def _account(name: str) -> tuple[Json, Resource]:
    return {"metadata": {"name": name, "namespace": _SYSTEM}}, SERVICE_ACCOUNT


def _corefile(facts: Facts) -> str:
    lines = [
        "errors",
        "health {\n       lameduck 5s\n    }",
        "ready",
        f"kubernetes {facts.dns_domain} in-addr.arpa ip6.arpa {{\n"
        "       pods insecure\n       fallthrough in-addr.arpa ip6.arpa\n       ttl 30\n    }",
        "prometheus :9153",
        "forward . /etc/resolv.conf {\n       max_concurrent 1000\n    }",
        "cache 30",
        "loop",
        "reload",
        "loadbalance",
    ]
    return ".:53 {\n" + "".join(f"    {line}\n" for line in lines) + "}\n"
