"""Everything that a workload cluster needs to run the cloud controller manager."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from homeport import __version__
from homeport.api.meta import Resource
from homeport.capi.name import UNINITIALIZED_TAINT
from homeport.ccm.node import UNINITIALIZED
from homeport.client.absence import drop_object
from homeport.client.protocol import Client, Key

NAMESPACE = "kube-system"
NAME = "homeport-cloud-controller-manager"
SECRET_NAME = f"{NAME}-credentials"
LEASE_NAME = NAME
IMAGE = f"ghcr.io/homeport-dev/homeport:{__version__}"
HEALTH_PORT = 10258  # where cloud controller managers are usually asked for their health
CONFIG_FOLDER = "/etc/cloud"
CONFIG_HASH = "ccm.homeport.dev/config-hash"

_RBAC = "rbac.authorization.k8s.io"
SERVICE_ACCOUNT = Resource("", "v1", "ServiceAccount", "serviceaccounts")
CONFIG_MAP = Resource("", "v1", "ConfigMap", "configmaps")
SECRET = Resource("", "v1", "Secret", "secrets")
DEPLOYMENT = Resource("apps", "v1", "Deployment", "deployments")
DAEMON_SET = Resource("apps", "v1", "DaemonSet", "daemonsets")
CLUSTER_ROLE = Resource(_RBAC, "v1", "ClusterRole", "clusterroles", namespaced=False)
CLUSTER_ROLE_BINDING = Resource(_RBAC, "v1", "ClusterRoleBinding", "clusterrolebindings", namespaced=False)
ROLE = Resource(_RBAC, "v1", "Role", "roles")
ROLE_BINDING = Resource(_RBAC, "v1", "RoleBinding", "rolebindings")

_LABELS = {"app.kubernetes.io/name": NAME, "app.kubernetes.io/managed-by": "homeport"}
CONTROL_PLANE = "node-role.kubernetes.io/control-plane"
_LOST_SECONDS = 60  # then another control plane takes over

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Settings:
    """What a provider says about one workload cluster. `secret` is what the Secret holds, in clear."""

    cloud: str  # --cloud
    config_file: str  # as the provider calls it
    config: str
    secret: Mapping[str, str] = field(default_factory=dict, repr=False)
    services: bool = False  # Services of type LoadBalancer get addresses or load balancers
    workers: bool = False  # it runs on any Node: there is no control plane Node


def render(settings: Settings, image: str = IMAGE) -> list[tuple[Json, Resource]]:
    """In the order in which they are to be applied: what a Pod needs comes before the Pod."""
    return [
        (_object(SERVICE_ACCOUNT, NAME, NAMESPACE), SERVICE_ACCOUNT),
        (_object(CLUSTER_ROLE, NAME, rules=_cluster_rules(settings)), CLUSTER_ROLE),
        (_object(CLUSTER_ROLE_BINDING, NAME, **_bound("ClusterRole")), CLUSTER_ROLE_BINDING),
        (_object(ROLE, NAME, NAMESPACE, rules=_own_rules()), ROLE),
        (_object(ROLE_BINDING, NAME, NAMESPACE, **_bound("Role")), ROLE_BINDING),
        (_object(CONFIG_MAP, NAME, NAMESPACE, data={settings.config_file: settings.config}), CONFIG_MAP),
        (render_secret(settings), SECRET),
        (_deployment(settings, image), DEPLOYMENT),
    ]


async def remove(client: Client) -> None:
    """All of it, the Secret first. It is not an error if some of it is gone."""
    for kind in (
        SECRET,
        DEPLOYMENT,
        CONFIG_MAP,
        ROLE_BINDING,
        ROLE,
        CLUSTER_ROLE_BINDING,
        CLUSTER_ROLE,
        SERVICE_ACCOUNT,
    ):
        name = SECRET_NAME if kind is SECRET else NAME
        await drop_object(client, kind, Key(NAMESPACE if kind.namespaced else "", name), propagation="Background")


def render_secret(settings: Settings) -> Json:
    data = {name: base64.b64encode(text.encode()).decode() for name, text in settings.secret.items()}
    return _object(SECRET, SECRET_NAME, NAMESPACE, type="Opaque", data=data)


def _object(kind: Resource, name: str, namespace: str = "", **more: Any) -> Json:
    meta: Json = {"name": name, "labels": dict(_LABELS)}
    if namespace:
        meta["namespace"] = namespace
    return {**kind.type_meta, "metadata": meta, **more}


def _bound(role: str) -> Json:
    return {
        "roleRef": {"apiGroup": _RBAC, "kind": role, "name": NAME},
        "subjects": [{"kind": "ServiceAccount", "name": NAME, "namespace": NAMESPACE}],
    }


def _cluster_rules(settings: Settings) -> list[Json]:
    """Exactly what our controllers do."""
    rules = [
        _rule("", ["nodes"], "list", "watch", "patch", "delete"),
        _rule("", ["nodes/status"], "patch"),
        _rule("", ["services"], "get"),  # of the API itself: its address says which family comes first
        _rule("events.k8s.io", ["events"], "create", "patch"),
        _rule("", ["events"], "create", "patch"),
    ]
    if settings.services:
        rules += [_rule("", ["services"], "list", "watch", "patch"), _rule("", ["services/status"], "patch")]
    return rules


def _own_rules() -> list[Json]:
    leases = ["leases"]
    return [
        _rule("coordination.k8s.io", leases, "create"),
        {**_rule("coordination.k8s.io", leases, "get", "update"), "resourceNames": [LEASE_NAME]},
        {**_rule("", ["secrets"], "get"), "resourceNames": [SECRET_NAME]},
    ]


def _rule(group: str, resources: Iterable[str], *verbs: str) -> Json:
    return {"apiGroups": [group], "resources": list(resources), "verbs": list(verbs)}


def _deployment(settings: Settings, image: str) -> Json:
    selector = {"app.kubernetes.io/name": NAME}
    # A changed configuration is read by a new Pod; changed credentials are read by the one that runs.
    digest = hashlib.sha256(settings.config.encode()).hexdigest()[:16]
    template = {
        "metadata": {"labels": dict(_LABELS), "annotations": {CONFIG_HASH: digest}},
        "spec": _pod(settings, image),
    }
    spec = {
        "replicas": 1,
        "selector": {"matchLabels": selector},
        # Two of them on one machine would want the same port.
        "strategy": {"type": "Recreate"},
        "template": template,
    }
    return _object(DEPLOYMENT, NAME, NAMESPACE, spec=spec)


_ON_WORKERS: Json = {"nodeSelector": {"kubernetes.io/os": "linux"}}
# The vendor's credentials stay on control plane Nodes where there are any. kubeadm gives them the label without a
# value, and k0s with one.
_ON_CONTROL_PLANES: Json = {
    "affinity": {
        "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {
                "nodeSelectorTerms": [{"matchExpressions": [{"key": CONTROL_PLANE, "operator": "Exists"}]}]
            }
        }
    }
}


def _pod(settings: Settings, image: str) -> Json:
    return {
        "serviceAccountName": NAME,
        "priorityClassName": "system-cluster-critical",
        # It has to work before the Pod network does, and to find names before there is a DNS in the cluster.
        "hostNetwork": True,
        "dnsPolicy": "Default",
        **(_ON_WORKERS if settings.workers else _ON_CONTROL_PLANES),
        "tolerations": [
            {"key": UNINITIALIZED, "operator": "Exists", "effect": "NoSchedule"},
            # Cluster API keeps it on workers until they have the provider ID that only this Pod can give them.
            {"key": UNINITIALIZED_TAINT["key"], "operator": "Exists", "effect": "NoSchedule"},
            {"key": CONTROL_PLANE, "operator": "Exists", "effect": "NoSchedule"},
            {"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoSchedule"},
            *(
                {
                    "key": f"node.kubernetes.io/{state}",
                    "operator": "Exists",
                    "effect": "NoExecute",
                    "tolerationSeconds": _LOST_SECONDS,
                }
                for state in ("not-ready", "unreachable")
            ),
        ],
        "containers": [_container(settings, image)],
        "volumes": [{"name": "config", "configMap": {"name": NAME}}],
    }


def _container(settings: Settings, image: str) -> Json:
    return {
        "name": "cloud-controller-manager",
        "image": image,
        "args": [
            "ccm",
            "--cloud",
            settings.cloud,
            "--config",
            f"{CONFIG_FOLDER}/{settings.config_file}",
            "--leader-elect",
            "--health",
            f"127.0.0.1:{HEALTH_PORT}",
        ],
        "livenessProbe": {"httpGet": {"host": "127.0.0.1", "path": "/healthz", "port": HEALTH_PORT}},
        "resources": {"requests": {"cpu": "20m", "memory": "80Mi"}},
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        },
        "volumeMounts": [{"name": "config", "mountPath": CONFIG_FOLDER, "readOnly": True}],
    }
