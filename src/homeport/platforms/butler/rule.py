"""What Butler's controllers do on the cluster that they run on."""

from __future__ import annotations

from homeport.api.butler.v1alpha1 import GROUP
from homeport.capi.name import BOOTSTRAP_GROUP, CONTROL_PLANE_GROUP, INFRASTRUCTURE_GROUP
from homeport.capi.rule import CONTRACT, DEFINED, OWN, Rule
from homeport.platforms.butler.kubeconfig.issue import SIGNER
from homeport.platforms.butler.team.binding import cluster_roles

_RBAC = "rbac.authorization.k8s.io"
_ADMISSION = "admissionregistration.k8s.io"
_CERTIFICATES = "certificates.k8s.io"


def _granted() -> tuple[Rule, ...]:
    """An API server lets nobody grant what they do not have: roles of teams and users are part of ours."""
    return tuple(
        Rule(group, tuple(rule["resources"]), tuple(rule["verbs"]))
        for role in cluster_roles()
        for rule in role["rules"]
        for group in rule["apiGroups"]
    )


_PROVIDED = ("providerconfigs", "machinerequests", "imagesyncs")
# Of the controllers that talk to providers.
PROVIDER_RULES = (
    *(Rule(GROUP, (kind, f"{kind}/status"), ("patch",)) for kind in _PROVIDED),
    # The policies of `author` ask for it when a finalizer is removed.
    *(Rule(GROUP, (f"{kind}/finalizers",), ("update",)) for kind in _PROVIDED),
    Rule("", ("configmaps",), ("list", *OWN)),  # records of VMs
    Rule("", ("secrets",), ("get",)),  # credentials
)
RULES = (
    *_granted(),
    Rule(_RBAC, ("clusterroles", "clusterrolebindings", "roles", "rolebindings"), ("list", *OWN)),
    Rule(_ADMISSION, ("validatingadmissionpolicies", "validatingadmissionpolicybindings"), ("get", "create", "patch")),
    Rule(GROUP, ("addondefinitions", "machinerequests", "ipallocations", "tenantaddons"), OWN),
    Rule("addons.homeport.dev", ("clusteraddons",), OWN),
    Rule("cluster.x-k8s.io", ("clusters", "machinedeployments", "machines"), CONTRACT),
    Rule("cluster.x-k8s.io", ("clusters/status",), ("patch",)),
    Rule(BOOTSTRAP_GROUP, DEFINED, CONTRACT),
    Rule(CONTROL_PLANE_GROUP, DEFINED, CONTRACT),
    Rule(INFRASTRUCTURE_GROUP, DEFINED, CONTRACT),
    Rule("", ("namespaces",), OWN),
    Rule("", ("configmaps", "secrets"), ("list", *OWN)),
    Rule("", ("nodes",), ("get", "list", "watch")),  # of the management cluster, which add-ons may be installed on
    # Kubeconfigs for users are asked for as requests that only we sign.
    Rule(_CERTIFICATES, ("certificatesigningrequests",), ("patch", "delete")),
    Rule(_CERTIFICATES, ("certificatesigningrequests/status", "certificatesigningrequests/approval"), ("patch",)),
    Rule(_CERTIFICATES, ("signers",), ("approve", "sign"), (f"{SIGNER}*",)),
)
