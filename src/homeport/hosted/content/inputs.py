"""The facts that decide what stands in a cluster, and the shape of its objects."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from homeport.api.meta import Resource
from homeport.capi import version as versions
from homeport.hosted.certificate import nth_address
from homeport.hosted.endpoint import Endpoint

Json = dict[str, Any]

SYSTEM = "kube-system"
PUBLIC = "kube-public"
# On everything that we keep in the cluster: what has the label is watched, and repaired.
MANAGED_LABEL = "homeport.dev/hosted"
ADDON_LABEL = "homeport.dev/addon"

CONFIG_MAP = Resource("", "v1", "ConfigMap", "configmaps")
SERVICE = Resource("", "v1", "Service", "services")
SERVICE_ACCOUNT = Resource("", "v1", "ServiceAccount", "serviceaccounts")
DEPLOYMENT = Resource("apps", "v1", "Deployment", "deployments")
DAEMON_SET = Resource("apps", "v1", "DaemonSet", "daemonsets")
_RBAC = "rbac.authorization.k8s.io"
ROLE = Resource(_RBAC, "v1", "Role", "roles")
ROLE_BINDING = Resource(_RBAC, "v1", "RoleBinding", "rolebindings")
CLUSTER_ROLE = Resource(_RBAC, "v1", "ClusterRole", "clusterroles", namespaced=False)
CLUSTER_ROLE_BINDING = Resource(_RBAC, "v1", "ClusterRoleBinding", "clusterrolebindings", namespaced=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class ContentInputs:
    """`endpoint` is how nodes reach the API server; `dns` the addresses of the cluster DNS, IPv4 or IPv6."""

    name: str
    version: str
    endpoint: Endpoint
    ca: bytes
    domain: str = "cluster.local"
    service_cidr: str = "10.96.0.0/16"
    pod_cidr: str = "10.244.0.0/16"
    dns: Sequence[str] = ()
    registry: str = "registry.k8s.io"
    cgroup_driver: str = ""
    kubelet_patches: Sequence[Mapping[str, Any]] = field(default_factory=tuple)

    @property
    def minor(self) -> int:
        return versions.parse(self.version).minor

    @property
    def server(self) -> str:
        return f"https://{self.endpoint}"

    @property
    def dns_addresses(self) -> list[str]:
        return list(self.dns) or dns_addresses(self.service_cidr)


def dns_addresses(service_cidr: str) -> list[str]:
    """The tenth address of an IPv4 Service network, `::10` of an IPv6 one."""
    found = []
    for each in service_cidr.split(","):
        first = nth_address(each, 0)
        found.append(str(first + (10 if first.version == 4 else 16)))
    return found


@dataclass(frozen=True, slots=True)
class Item:
    """An object to apply."""

    kind: Resource
    body: Json

    @property
    def name(self) -> str:
        return str(self.body["metadata"]["name"])

    @property
    def namespace(self) -> str:
        return str(self.body["metadata"].get("namespace", ""))


def item(
    kind: Resource,
    name: str,
    namespace: str = "",
    *,
    addon: str = "",
    labels: Mapping[str, str] | None = None,
    **body: Any,
) -> Item:
    marks = {**(labels or {}), MANAGED_LABEL: "true", **({ADDON_LABEL: addon} if addon else {})}
    metadata: Json = {"name": name, **({"namespace": namespace} if namespace else {}), "labels": marks}
    return Item(kind, {**kind.type_meta, "metadata": metadata, **body})


def binding(
    name: str, role: str, *subjects: Json, namespace: str = "", addon: str = "", cluster_role: bool = True
) -> Item:
    kind = ROLE_BINDING if namespace else CLUSTER_ROLE_BINDING
    ref = {"apiGroup": _RBAC, "kind": "ClusterRole" if cluster_role else "Role", "name": role}
    return item(kind, name, namespace, addon=addon, roleRef=ref, subjects=list(subjects))


def group(name: str) -> Json:
    return {"kind": "Group", "apiGroup": _RBAC, "name": name}


def user(name: str) -> Json:
    return {"kind": "User", "apiGroup": _RBAC, "name": name}


def account(name: str, namespace: str = SYSTEM) -> Json:
    return {"kind": "ServiceAccount", "name": name, "namespace": namespace}


def rule(groups: Sequence[str], resources: Sequence[str], verbs: Sequence[str], names: Sequence[str] = ()) -> Json:
    found: Json = {"apiGroups": list(groups), "resources": list(resources), "verbs": list(verbs)}
    return {**found, "resourceNames": list(names)} if names else found
