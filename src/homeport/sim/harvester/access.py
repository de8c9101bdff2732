"""Who may do what: the roles of Harvester, and two ServiceAccounts with less than an administrator has.

`default/homeport` may do what a provider of clusters needs in the namespace default, `default/viewer` may only look.
`kubectl create token` gives credentials for them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from homeport.api.meta import Resource
from homeport.sim.harvester.kind import Json

_RBAC = "rbac.authorization.k8s.io"
SERVICE_ACCOUNT: Final = Resource("", "v1", "ServiceAccount", "serviceaccounts")
CLUSTER_ROLE: Final = Resource(_RBAC, "v1", "ClusterRole", "clusterroles", namespaced=False)
CLUSTER_ROLE_BINDING: Final = Resource(_RBAC, "v1", "ClusterRoleBinding", "clusterrolebindings", namespaced=False)
ROLE_BINDING: Final = Resource(_RBAC, "v1", "RoleBinding", "rolebindings")

NAMESPACE = "default"
PROVIDER, VIEWER = "homeport", "viewer"
_READ = ("get", "list", "watch")
_WRITE = (*_READ, "create", "update", "patch", "delete")

Entry = tuple[Json, Resource]


def objects() -> Iterator[Entry]:
    yield _role("harvesterhci.io:cloudprovider", _CLOUD_PROVIDER), CLUSTER_ROLE
    yield _role("harvesterhci.io:csi-driver", _CSI_DRIVER), CLUSTER_ROLE
    yield _role("homeport:machines", _MACHINES), CLUSTER_ROLE
    yield _role("homeport:infrastructure", _INFRASTRUCTURE), CLUSTER_ROLE
    yield _role("homeport:view", _VIEW), CLUSTER_ROLE
    for name in (PROVIDER, VIEWER):
        yield {"metadata": {"name": name, "namespace": NAMESPACE}}, SERVICE_ACCOUNT
    in_namespace = {"name": f"{PROVIDER}-machines", "namespace": NAMESPACE}
    yield {"metadata": in_namespace, **_bound("homeport:machines", PROVIDER)}, ROLE_BINDING
    for name, role in ((PROVIDER, "homeport:infrastructure"), (VIEWER, "homeport:view")):
        yield {"metadata": {"name": f"{NAMESPACE}-{name}"}, **_bound(role, name)}, CLUSTER_ROLE_BINDING


def _role(name: str, rules: list[Json]) -> Json:
    return {"metadata": {"name": name}, "rules": rules}


def _bound(role: str, account: str) -> Json:
    return {
        "roleRef": {"apiGroup": _RBAC, "kind": "ClusterRole", "name": role},
        "subjects": [{"kind": "ServiceAccount", "name": account, "namespace": NAMESPACE}],
    }


def _rule(group: str, resources: str, verbs: tuple[str, ...]) -> Json:
    return {"apiGroups": [group], "resources": resources.split(), "verbs": list(verbs)}


_VOLUME_CALLS = (
    "virtualmachines/addvolume virtualmachines/removevolume virtualmachineinstances/addvolume "
    "virtualmachineinstances/removevolume virtualmachineinstances/guestosinfo"
)
_CLOUD_PROVIDER = [
    _rule("loadbalancer.harvesterhci.io", "loadbalancers", (*_READ, "update", "create", "delete")),
    _rule("subresources.kubevirt.io", _VOLUME_CALLS, ("get", "update")),
    _rule("kubevirt.io", "virtualmachines virtualmachineinstances", _READ),
    _rule("", "pods", _READ),
]
_CSI_DRIVER = [
    _rule("storage.k8s.io", "storageclasses", _READ),
    _rule("", "pods", _READ),
    _rule("", "persistentvolumeclaims", _WRITE),
    _rule("kubevirt.io", "virtualmachines virtualmachineinstances", _READ),
    _rule("subresources.kubevirt.io", _VOLUME_CALLS, ("get", "update")),
]
_MACHINES = [
    _rule("kubevirt.io", "virtualmachines virtualmachineinstances virtualmachineinstancemigrations", _WRITE),
    _rule(
        "subresources.kubevirt.io", "virtualmachines/start virtualmachines/stop virtualmachines/restart", ("update",)
    ),
    _rule("cdi.kubevirt.io", "datavolumes", _WRITE),
    _rule("", "secrets services persistentvolumeclaims", _WRITE),
    _rule("", "pods events", _READ),
    _rule("harvesterhci.io", "virtualmachineimages keypairs", _READ),
    _rule("k8s.cni.cncf.io", "network-attachment-definitions", _READ),
    _rule("loadbalancer.harvesterhci.io", "loadbalancers", _WRITE),
]
_INFRASTRUCTURE = [
    _rule("", "nodes namespaces", _READ),
    _rule("storage.k8s.io", "storageclasses", _READ),
    _rule("apps", "deployments", _READ),
    _rule("apiextensions.k8s.io", "customresourcedefinitions", _READ),
    _rule("harvesterhci.io", "settings", _READ),
    _rule("network.harvesterhci.io", "clusternetworks vlanconfigs", _READ),
    _rule("loadbalancer.harvesterhci.io", "ippools", _READ),
    # Machines may name images, networks and keys of other namespaces.
    _rule("harvesterhci.io", "virtualmachineimages keypairs", _READ),
    _rule("k8s.cni.cncf.io", "network-attachment-definitions", _READ),
]
_VIEW = [
    *_INFRASTRUCTURE,
    _rule("kubevirt.io", "*", _READ),
    _rule("", "pods pods/log services persistentvolumeclaims events", _READ),
]
