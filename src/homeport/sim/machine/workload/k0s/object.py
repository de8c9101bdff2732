"""What k0s puts into its cluster: rights of joining nodes, DNS, the network for Pods, the tunnel to the API server."""

from __future__ import annotations

from collections.abc import Iterator

from homeport.api.meta import Resource
from homeport.sim.machine.workload import addon
from homeport.sim.machine.workload.facts import Facts
from homeport.sim.machine.workload.kind import CLUSTER_ROLE_BINDING, DAEMON_SET, DEPLOYMENT, SERVICE_ACCOUNT, Json

_RBAC = "rbac.authorization.k8s.io"
_ROUTER = "quay.io/k0sproject/kube-router:v2.4.1-iptables1.8.9-0"
_CALICO = "quay.io/k0sproject/calico-node:v3.29.2-0"
_CALICO_CONTROLLERS = "quay.io/k0sproject/calico-kube-controllers:v3.29.2-0"
_TUNNEL = "quay.io/k0sproject/apiserver-network-proxy-agent:v0.31.0"


def k0s_objects(facts: Facts, disabled: frozenset[str] = frozenset()) -> Iterator[tuple[Json, Resource]]:
    """`disabled`: components that the controller was started without."""
    group = {"apiGroup": _RBAC, "kind": "Group", "name": "system:bootstrappers"}
    for name, role in (
        ("kubelet-bootstrap", "system:node-bootstrapper"),
        ("node-autoapprove-bootstrap", "system:certificates.k8s.io:certificatesigningrequests:nodeclient"),
    ):
        reference = {"apiGroup": _RBAC, "kind": "ClusterRole", "name": role}
        yield {"metadata": {"name": name}, "roleRef": reference, "subjects": [group]}, CLUSTER_ROLE_BINDING
    if "coredns" not in disabled:
        yield from addon.coredns(facts)
    if "kube-proxy" not in disabled:
        yield from addon.kube_proxy(facts)
    if "network-provider" not in disabled:
        yield from network_objects(str(facts.configuration.get("network") or "kuberouter"))
    if "konnectivity-server" not in disabled:
        yield from _daemon("konnectivity-agent", _TUNNEL)


def network_objects(provider: str) -> Iterator[tuple[Json, Resource]]:
    """None for `custom`: somebody else brings the network."""
    if provider == "kuberouter":
        yield from _daemon("kube-router", _ROUTER, brings_network=True)
    elif provider == "calico":
        yield from _daemon("calico-node", _CALICO, brings_network=True)
        yield _account("calico-kube-controllers")
        labels = {"k8s-app": "calico-kube-controllers"}
        container = {"name": "calico-kube-controllers", "image": _CALICO_CONTROLLERS}
        pod = {
            "serviceAccountName": "calico-kube-controllers",
            "tolerations": [{"operator": "Exists"}],
            "containers": [container],
        }
        template = {"metadata": {"labels": labels}, "spec": pod}
        spec = {"replicas": 1, "selector": {"matchLabels": labels}, "template": template}
        yield {"metadata": _meta("calico-kube-controllers", labels), "spec": spec}, DEPLOYMENT


def _daemon(name: str, image: str, *, brings_network: bool = False) -> Iterator[tuple[Json, Resource]]:
    yield _account(name)
    labels = {"k8s-app": name}
    container: Json = {"name": name, "image": image}
    pod: Json = {
        "hostNetwork": True,
        "serviceAccountName": name,
        "tolerations": [{"operator": "Exists"}],
        "containers": [container],
    }
    if brings_network:
        container["volumeMounts"] = [{"name": "cni-conf-dir", "mountPath": "/etc/cni/net.d"}]
        pod["volumes"] = [{"name": "cni-conf-dir", "hostPath": {"path": "/etc/cni/net.d"}}]
    spec = {"selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels}, "spec": pod}}
    yield {"metadata": _meta(name, labels), "spec": spec}, DAEMON_SET


def _account(name: str) -> tuple[Json, Resource]:
    return {"metadata": {"name": name, "namespace": "kube-system"}}, SERVICE_ACCOUNT


def _meta(name: str, labels: dict[str, str]) -> Json:
    return {"name": name, "namespace": "kube-system", "labels": labels}
