"""Roles as RBAC. Nothing here may impersonate, change RBAC, or read Secrets that it does not need.

Members of a team have their role in the team's namespace alone; nothing that a team grants reaches the platform.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from homeport.api.butler.v1alpha1 import GROUP
from homeport.api.meta import Resource
from homeport.platforms.butler.author.rule import ADMINISTER

Rule = dict[str, Any]

CLUSTER_ROLE = Resource("rbac.authorization.k8s.io", "v1", "ClusterRole", "clusterroles", namespaced=False)
ROLE = Resource("rbac.authorization.k8s.io", "v1", "Role", "roles")
ROLE_BINDING = Resource("rbac.authorization.k8s.io", "v1", "RoleBinding", "rolebindings")
CLUSTER_ROLE_BINDING = Resource(
    "rbac.authorization.k8s.io", "v1", "ClusterRoleBinding", "clusterrolebindings", namespaced=False
)

ADMIN, OPERATOR, VIEWER = "admin", "operator", "viewer"
READ = ("get", "list", "watch")
CHANGE = ("create", "update", "patch")

# Kinds of a team's namespace. MachineRequests and NetworkPools are read-only for all: they would get around quotas.
_OWN_KINDS = (
    "imagesyncs",
    "ipallocations",
    "machinerequests",
    "networkpools",
    "providerconfigs",
    "tenantaddons",
    "tenantclusters",
    "workspaces",
    "workspacetemplates",
)
_CAPI_GROUPS = (
    "addons.homeport.dev",
    "bootstrap.cluster.x-k8s.io",
    "cluster.x-k8s.io",
    "controlplane.cluster.x-k8s.io",
    "infrastructure.cluster.x-k8s.io",
    "steward.butlerlabs.dev",
)


def rule(groups: Sequence[str], resources: Sequence[str], verbs: Iterable[str], names: Sequence[str] = ()) -> Rule:
    found = {"apiGroups": list(groups), "resources": list(resources), "verbs": list(verbs)}
    return {**found, "resourceNames": list(names)} if names else found


_EVENTS = rule(["", "events.k8s.io"], ["events"], READ)
_VIEWER = [rule([GROUP], [*_OWN_KINDS], READ), rule([GROUP], ["tenantclusters/scale"], ("get",)), _EVENTS]
_OPERATOR = [
    *_VIEWER,
    rule([GROUP], ["tenantclusters"], CHANGE),
    rule([GROUP], ["tenantclusters/scale"], ("update", "patch")),
    rule([GROUP], ["tenantaddons"], (*CHANGE, "delete")),
]
_ADMIN = [
    *_OPERATOR,
    rule([GROUP], ["tenantclusters", "tenantaddons"], ("delete", "deletecollection")),
    rule([GROUP], ["tenantclusters"], (ADMINISTER,)),
    rule([GROUP], ["providerconfigs"], (*CHANGE, "delete")),
    # Credentials of the team's own ProviderConfigs, and kubeconfigs of its clusters.
    rule([""], ["secrets"], (*READ, *CHANGE, "delete")),
]
TEAM_RULES: Mapping[str, list[Rule]] = {VIEWER: _VIEWER, OPERATOR: _OPERATOR, ADMIN: _ADMIN}

# For all members: what there is to choose from, and asking for a kubeconfig. A request carries the name of its
# creator, which the API server sets.
_MEMBER = [
    rule([GROUP], ["addondefinitions", "clustercreationpolicies"], READ),
    rule(["certificates.k8s.io"], ["certificatesigningrequests"], ("create", "get")),
]
# In the namespaces with the Cluster API objects of a team's clusters. No Secrets: they hold keys of the clusters.
_TENANT_NAMESPACE = [rule(_CAPI_GROUPS, ["*"], READ), _EVENTS]
_PLATFORM_VIEWER = [rule([GROUP], ["*"], READ), rule([""], ["namespaces"], READ), *_TENANT_NAMESPACE]
_PLATFORM_ADMIN = [
    *_PLATFORM_VIEWER,
    rule([GROUP], ["*"], (*CHANGE, "delete", "deletecollection")),
    rule([GROUP], ["tenantclusters"], (ADMINISTER,)),
    _MEMBER[1],
]
# In butler-system, for platform admins: credentials of ProviderConfigs.
_PLATFORM_SECRETS = [rule([""], ["secrets"], (*READ, *CHANGE, "delete"))]

MEMBER_ROLE = "butler-member"
TENANT_ROLE = "butler-tenant-viewer"
SECRETS_ROLE = "butler-platform-secrets"
# Role in a tenant cluster > ClusterRole that every Kubernetes cluster has.
TENANT_CLUSTER_ROLES: Mapping[str, str] = {ADMIN: "cluster-admin", OPERATOR: "edit", VIEWER: "view"}


def team_role(role: str) -> str:
    return f"butler-team-{role}"


def platform_role(role: str) -> str:
    return f"butler-platform-{role}"


CLUSTER_ROLES: Mapping[str, list[Rule]] = {
    **{team_role(role): rules for role, rules in TEAM_RULES.items()},
    MEMBER_ROLE: _MEMBER,
    TENANT_ROLE: _TENANT_NAMESPACE,
    platform_role(VIEWER): _PLATFORM_VIEWER,
    platform_role(ADMIN): _PLATFORM_ADMIN,
    SECRETS_ROLE: _PLATFORM_SECRETS,
}


def environment_rules(role: str, clusters: Sequence[str]) -> list[Rule]:
    """Access to these clusters alone. RBAC knows objects by name, so an environment's members can neither list nor
    create. Members who should create clusters belong to the team itself."""
    verbs = {
        VIEWER: ("get",),
        OPERATOR: ("get", "update", "patch"),
        ADMIN: ("get", "update", "patch", "delete", ADMINISTER),
    }[role]
    scale = ("get",) if role == VIEWER else ("get", "update", "patch")
    return [
        rule([GROUP], ["tenantclusters"], verbs, clusters),
        rule([GROUP], ["tenantclusters/scale"], scale, clusters),
    ]
