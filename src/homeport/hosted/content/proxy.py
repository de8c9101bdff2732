"""kube-proxy, as kubeadm installs it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from homeport.hosted.content.inputs import (
    CONFIG_MAP,
    DAEMON_SET,
    ROLE,
    SERVICE_ACCOUNT,
    SYSTEM,
    ContentInputs,
    Item,
    account,
    binding,
    group,
    item,
    rule,
)
from homeport.hosted.content.join import BOOTSTRAPPERS
from homeport.machinery import yaml

ADDON = "kube-proxy"
_LABELS = {"k8s-app": "kube-proxy"}
_FOLDER = "/var/lib/kube-proxy"


def render_proxy(inputs: ContentInputs, *, repository: str = "", tag: str = "") -> Iterator[Item]:
    yield item(SERVICE_ACCOUNT, ADDON, SYSTEM, addon=ADDON)
    yield binding("kubeadm:node-proxier", "system:node-proxier", account(ADDON), addon=ADDON)
    yield item(ROLE, ADDON, SYSTEM, addon=ADDON, rules=[rule([""], ["configmaps"], ["get"], [ADDON])])
    yield binding(ADDON, ADDON, group(BOOTSTRAPPERS), namespace=SYSTEM, addon=ADDON, cluster_role=False)
    data = {"config.conf": yaml.dump(_configuration(inputs)), "kubeconfig.conf": yaml.dump(_kubeconfig(inputs))}
    yield item(CONFIG_MAP, ADDON, SYSTEM, addon=ADDON, labels={"app": ADDON}, data=data)
    image = f"{(repository or inputs.registry).rstrip('/')}/kube-proxy:{tag or inputs.version.replace('+', '_')}"
    yield item(DAEMON_SET, ADDON, SYSTEM, addon=ADDON, labels=_LABELS, spec=_daemon_set(image))


def _configuration(inputs: ContentInputs) -> dict[str, Any]:
    return {
        "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
        "kind": "KubeProxyConfiguration",
        "bindAddress": "0.0.0.0" if "." in inputs.pod_cidr else "::",  # noqa: S104 as kubeadm has it
        "clientConnection": {"kubeconfig": f"{_FOLDER}/kubeconfig.conf"},
        "clusterCIDR": inputs.pod_cidr,
        "mode": "iptables",
    }


def _kubeconfig(inputs: ContentInputs) -> dict[str, Any]:
    mounted = "/var/run/secrets/kubernetes.io/serviceaccount"
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [
            {"name": "default", "cluster": {"certificate-authority": f"{mounted}/ca.crt", "server": inputs.server}}
        ],
        "contexts": [{"name": "default", "context": {"cluster": "default", "namespace": "default", "user": "default"}}],
        "current-context": "default",
        "users": [{"name": "default", "user": {"tokenFile": f"{mounted}/token"}}],
    }


def _daemon_set(image: str) -> dict[str, Any]:
    container = {
        "name": ADDON,
        "image": image,
        "imagePullPolicy": "IfNotPresent",
        "command": [
            "/usr/local/bin/kube-proxy",
            f"--config={_FOLDER}/config.conf",
            "--hostname-override=$(NODE_NAME)",
        ],
        "env": [{"name": "NODE_NAME", "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": "spec.nodeName"}}}],
        "securityContext": {"privileged": True},
        "volumeMounts": [
            {"name": ADDON, "mountPath": _FOLDER},
            {"name": "xtables-lock", "mountPath": "/run/xtables.lock"},
            {"name": "lib-modules", "mountPath": "/lib/modules", "readOnly": True},
        ],
    }
    pod = {
        "priorityClassName": "system-node-critical",
        "serviceAccountName": ADDON,
        "hostNetwork": True,
        "nodeSelector": {"kubernetes.io/os": "linux"},
        "tolerations": [{"operator": "Exists"}],
        "containers": [container],
        "volumes": [
            {"name": ADDON, "configMap": {"name": ADDON}},
            {"name": "xtables-lock", "hostPath": {"path": "/run/xtables.lock", "type": "FileOrCreate"}},
            {"name": "lib-modules", "hostPath": {"path": "/lib/modules"}},
        ],
    }
    return {
        "selector": {"matchLabels": _LABELS},
        "updateStrategy": {"type": "RollingUpdate"},
        "template": {"metadata": {"labels": _LABELS}, "spec": pod},
    }
