"""The roles that kubeadm leaves in a new cluster, and that joining machines depend on."""

from __future__ import annotations

from collections.abc import Iterator

from homeport.api.meta import Resource
from homeport.sim.machine.workload.facts import Facts, parse_version
from homeport.sim.machine.workload.kind import CLUSTER_ROLE, CLUSTER_ROLE_BINDING, ROLE, ROLE_BINDING, Json

BOOTSTRAPPERS = "system:bootstrappers:kubeadm:default-node-token"
_GROUP = "rbac.authorization.k8s.io"
_NODES = "system:nodes"


def kubeadm_rbac(facts: Facts) -> Iterator[tuple[Json, Resource]]:
    yield _bound("kubeadm:kubelet-bootstrap", "system:node-bootstrapper", BOOTSTRAPPERS)
    signing = "system:certificates.k8s.io:certificatesigningrequests:"
    yield _bound("kubeadm:node-autoapprove-bootstrap", f"{signing}nodeclient", BOOTSTRAPPERS)
    yield _bound("kubeadm:node-autoapprove-certificate-rotation", f"{signing}selfnodeclient", _NODES)
    rules = [{"apiGroups": [""], "resources": ["nodes"], "verbs": ["get"]}]
    yield {"metadata": {"name": "kubeadm:get-nodes"}, "rules": rules}, CLUSTER_ROLE
    yield _bound("kubeadm:get-nodes", "kubeadm:get-nodes", BOOTSTRAPPERS)
    if parse_version(facts.version) >= (1, 29, 0):
        yield _bound("kubeadm:cluster-admins", "cluster-admin", "kubeadm:cluster-admins")
    for name, config in (("nodes-kubeadm-config", "kubeadm-config"), ("kubelet-config", "kubelet-config")):
        yield from _reader("kube-system", f"kubeadm:{name}", config, [_group(BOOTSTRAPPERS), _group(_NODES)])
    anonymous = {"apiGroup": _GROUP, "kind": "User", "name": "system:anonymous"}
    yield from _reader("kube-public", "kubeadm:bootstrap-signer-clusterinfo", "cluster-info", [anonymous])
    yield from _reader("kube-system", "kube-proxy", "kube-proxy", [_group(BOOTSTRAPPERS)])
    yield _binding("kubeadm:node-proxier", "system:node-proxier", _account("kube-proxy")), CLUSTER_ROLE_BINDING
    rules = [
        {"apiGroups": [""], "resources": ["endpoints", "services", "pods", "namespaces"], "verbs": ["list", "watch"]},
        {"apiGroups": ["discovery.k8s.io"], "resources": ["endpointslices"], "verbs": ["list", "watch"]},
    ]
    yield {"metadata": {"name": "system:coredns"}, "rules": rules}, CLUSTER_ROLE
    yield _binding("system:coredns", "system:coredns", _account("coredns")), CLUSTER_ROLE_BINDING


def _reader(namespace: str, name: str, config: str, subjects: list[Json]) -> Iterator[tuple[Json, Resource]]:
    """A role that may get one ConfigMap, and who has it."""
    meta = {"name": name, "namespace": namespace}
    rules = [{"apiGroups": [""], "resources": ["configmaps"], "resourceNames": [config], "verbs": ["get"]}]
    yield {"metadata": dict(meta), "rules": rules}, ROLE
    reference = {"apiGroup": _GROUP, "kind": "Role", "name": name}
    yield {"metadata": dict(meta), "roleRef": reference, "subjects": subjects}, ROLE_BINDING


def _bound(name: str, role: str, group: str) -> tuple[Json, Resource]:
    return _binding(name, role, _group(group)), CLUSTER_ROLE_BINDING


def _binding(name: str, role: str, subject: Json) -> Json:
    reference = {"apiGroup": _GROUP, "kind": "ClusterRole", "name": role}
    return {"metadata": {"name": name}, "roleRef": reference, "subjects": [subject]}


def _group(name: str) -> Json:
    return {"apiGroup": _GROUP, "kind": "Group", "name": name}


def _account(name: str) -> Json:
    return {"kind": "ServiceAccount", "name": name, "namespace": "kube-system"}
