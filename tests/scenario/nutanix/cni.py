"""Networks for Pods, each as small as it can be and still be told apart from what is none.

They have what matters of the real ones: where their DaemonSet lives, which of its containers writes the configuration,
and how it finds the API server. They are put into a ConfigMap for a ClusterResourceSet, as a user does it.
"""

from __future__ import annotations

from typing import Any

from homeport.machinery import yaml

Json = dict[str, Any]
LABEL = "cni"


def _account(name: str, namespace: str) -> list[Json]:
    subject = {"kind": "ServiceAccount", "name": name, "namespace": namespace}
    rules = [{"apiGroups": [""], "resources": ["nodes", "pods"], "verbs": ["get", "list", "watch", "patch"]}]
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name}
    api = "rbac.authorization.k8s.io/v1"
    return [
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name, "namespace": namespace}},
        {"apiVersion": api, "kind": "ClusterRole", "metadata": {"name": name}, "rules": rules},
        {
            "apiVersion": api,
            "kind": "ClusterRoleBinding",
            "metadata": {"name": name},
            "roleRef": role,
            "subjects": [subject],
        },
    ]


def _daemon(name: str, namespace: str, account: str, pod: Json) -> Json:
    labels = {"k8s-app": name}
    whole = {
        "hostNetwork": True,
        "serviceAccountName": account,
        "priorityClassName": "system-node-critical",
        "tolerations": [{"operator": "Exists"}],
        **pod,
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": name, "namespace": namespace, "labels": labels},
        "spec": {"selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels}, "spec": whole}},
    }


def _host(name: str, path: str) -> Json:
    return {"name": name, "hostPath": {"path": path}}


def _mount(name: str, path: str, **more: Any) -> Json:
    return {"name": name, "mountPath": path, **more}


def kindnet() -> list[Json]:
    """One container does all of it."""
    pod = {
        "containers": [
            {
                "name": "kindnet-cni",
                "image": "registry.example.com/kindnetd:v1",
                "env": [{"name": "POD_SUBNET", "value": "192.168.0.0/16"}],
                "volumeMounts": [_mount("cni-cfg", "/etc/cni/net.d")],
            }
        ],
        "volumes": [_host("cni-cfg", "/etc/cni/net.d")],
    }
    return [*_account("kindnet", "kube-system"), _daemon("kindnet", "kube-system", "kindnet", pod)]


def calico() -> list[Json]:
    """A container of the beginning installs it; there are kinds of its own, and a Deployment that waits for Nodes."""
    install = {
        "name": "install-cni",
        "image": "registry.example.com/calico-cni:v1",
        "volumeMounts": [_mount("cni-net-dir", "/host/etc/cni/net.d"), _mount("cni-bin-dir", "/host/opt/cni/bin")],
    }
    pod = {
        "initContainers": [install],
        "containers": [{"name": "calico-node", "image": "registry.example.com/calico-node:v1"}],
        "volumes": [_host("cni-net-dir", "/etc/cni/net.d"), _host("cni-bin-dir", "/opt/cni/bin")],
    }
    labels = {"k8s-app": "calico-kube-controllers"}
    controllers = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "calico-kube-controllers", "namespace": "kube-system"},
        "spec": {
            "replicas": 1,
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {
                    "tolerations": [{"key": "node-role.kubernetes.io/control-plane", "effect": "NoSchedule"}],
                    "containers": [{"name": "controllers", "image": "registry.example.com/calico-controllers:v1"}],
                },
            },
        },
    }
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    pools = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "ippools.crd.projectcalico.org"},
        "spec": {
            "group": "crd.projectcalico.org",
            "names": {"kind": "IPPool", "plural": "ippools"},
            "scope": "Cluster",
            "versions": [{"name": "v1", "served": True, "storage": True, "schema": schema}],
        },
    }
    pool = {
        "apiVersion": "crd.projectcalico.org/v1",
        "kind": "IPPool",
        "metadata": {"name": "default"},
        "spec": {"cidr": "192.168.0.0/16"},
    }
    daemon = _daemon("calico-node", "kube-system", "calico-node", pod)
    return [pool, controllers, daemon, pools, *_account("calico-node", "kube-system")]


def cilium(*, api: str = "") -> list[Json]:
    """The agent itself writes the configuration. `api`: where it finds the API server without kube-proxy."""
    env = [
        {"name": "KUBERNETES_SERVICE_HOST", "value": api},
        {"name": "KUBERNETES_SERVICE_PORT", "value": "6443"},
    ]
    binaries = {
        "name": "install-cni-binaries",
        "image": "registry.example.com/cilium:v1",
        "volumeMounts": [_mount("cni-path", "/host/opt/cni/bin")],
    }
    agent = {
        "name": "cilium-agent",
        "image": "registry.example.com/cilium:v1",
        "env": env if api else [],
        "volumeMounts": [_mount("etc-cni-netd", "/host/etc/cni/net.d")],
    }
    pod = {
        "initContainers": [binaries],
        "containers": [agent],
        "volumes": [_host("cni-path", "/opt/cni/bin"), _host("etc-cni-netd", "/etc/cni/net.d")],
    }
    config = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "cilium-config", "namespace": "kube-system"},
        "data": {"kube-proxy-replacement": "true" if api else "false"},
    }
    return [config, *_account("cilium", "kube-system"), _daemon("cilium", "kube-system", "cilium", pod)]


def flannel() -> list[Json]:
    """It lives in a namespace of its own, which the manifest brings along at its end."""
    install = {
        "name": "install-cni",
        "image": "registry.example.com/flannel:v1",
        "command": ["cp", "-f", "/etc/kube-flannel/cni-conf.json", "/etc/cni/net.d/10-flannel.conflist"],
        "volumeMounts": [_mount("cni", "/etc/cni/net.d")],
    }
    pod = {
        "initContainers": [install],
        "containers": [{"name": "kube-flannel", "image": "registry.example.com/flannel:v1"}],
        "volumes": [_host("cni", "/etc/cni/net.d")],
    }
    space = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "kube-flannel"}}
    return [
        _daemon("kube-flannel-ds", "kube-flannel", "flannel", pod),
        *_account("flannel", "kube-flannel"),
        space,
    ]


def watcher() -> list[Json]:
    """No network at all: it only reads how others have configured theirs."""
    container = {
        "name": "watcher",
        "image": "registry.example.com/watcher:v1",
        "volumeMounts": [_mount("conf", "/etc/cni/net.d", readOnly=True)],
    }
    pod = {"containers": [container], "volumes": [_host("conf", "/etc/cni/net.d")]}
    return [*_account("watcher", "kube-system"), _daemon("watcher", "kube-system", "watcher", pod)]


def delivered(name: str, objects: list[Json]) -> list[Json]:
    """The ConfigMap and the ClusterResourceSet for Clusters that ask for it by their label."""
    text = "---\n".join(yaml.dump(each) for each in objects)
    return [
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {f"{name}.yaml": text}},
        {
            "apiVersion": "addons.cluster.x-k8s.io/v1beta1",
            "kind": "ClusterResourceSet",
            "metadata": {"name": name},
            "spec": {
                "clusterSelector": {"matchLabels": {LABEL: name}},
                "resources": [{"kind": "ConfigMap", "name": name}],
                "strategy": "ApplyOnce",
            },
        },
    ]
