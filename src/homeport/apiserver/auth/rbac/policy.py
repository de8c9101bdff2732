"""The roles and bindings that every Kubernetes cluster begins with, as a table.

Left out are those of the components that don't exist here: scheduler, controller manager, DNS, volume and cloud
controllers. Lists are written with spaces; `-` stands for the core group.
"""

from __future__ import annotations

from typing import Any

from homeport.apiserver.auth.rbac.rbac import GROUP
from homeport.apiserver.auth.source import Json

AUTOUPDATE = "rbac.authorization.kubernetes.io/autoupdate"
_AGGREGATE = f"{GROUP}/aggregate-to-"

READ = "get list watch"
CHANGE = "create delete deletecollection patch update"
BOTH = "create delete deletecollection get list patch update watch"

_AUTHENTICATION, _AUTHORIZATION = "authentication.k8s.io", "authorization.k8s.io"
_CERTIFICATES, _COORDINATION = "certificates.k8s.io", "coordination.k8s.io"
_HEALTH = "/healthz /livez /readyz /version /version/"

# verbs, groups, resources[, names]; or verbs, paths
_Row = tuple[str, ...]

_VIEW: tuple[_Row, ...] = (
    (
        READ,
        "-",
        "configmaps endpoints persistentvolumeclaims persistentvolumeclaims/status pods replicationcontrollers "
        "replicationcontrollers/scale serviceaccounts services services/status",
    ),
    (
        READ,
        "-",
        "bindings limitranges namespaces/status pods/log pods/status replicationcontrollers/status resourcequotas "
        "resourcequotas/status",
    ),
    (READ, "-", "namespaces"),
    (READ, "- events.k8s.io", "events"),
    (READ, "discovery.k8s.io", "endpointslices"),
    (
        READ,
        "apps",
        "controllerrevisions daemonsets daemonsets/status deployments deployments/scale deployments/status replicasets "
        "replicasets/scale replicasets/status statefulsets statefulsets/scale statefulsets/status",
    ),
    (READ, "autoscaling", "horizontalpodautoscalers horizontalpodautoscalers/status"),
    (READ, "batch", "cronjobs cronjobs/status jobs jobs/status"),
    (READ, "policy", "poddisruptionbudgets poddisruptionbudgets/status"),
    (READ, "networking.k8s.io", "ingresses ingresses/status networkpolicies"),
)

_EDIT: tuple[_Row, ...] = (
    (READ, "-", "pods/attach pods/exec pods/portforward pods/proxy secrets services/proxy"),
    ("impersonate", "-", "serviceaccounts"),
    (CHANGE, "-", "pods pods/attach pods/exec pods/portforward pods/proxy"),
    ("create", "-", "pods/eviction"),
    (
        CHANGE,
        "-",
        "configmaps persistentvolumeclaims replicationcontrollers replicationcontrollers/scale secrets "
        "serviceaccounts services services/proxy",
    ),
    ("create", "-", "serviceaccounts/token"),
    (CHANGE, "- events.k8s.io", "events"),
    (
        CHANGE,
        "apps",
        "daemonsets deployments deployments/rollback deployments/scale replicasets replicasets/scale statefulsets "
        "statefulsets/scale",
    ),
    (CHANGE, "autoscaling", "horizontalpodautoscalers"),
    (CHANGE, "batch", "cronjobs jobs"),
    (CHANGE, "policy", "poddisruptionbudgets"),
    (CHANGE, "networking.k8s.io", "ingresses networkpolicies"),
    (BOTH, _COORDINATION, "leases"),
)

_NODE: tuple[_Row, ...] = (
    ("create", _AUTHENTICATION, "tokenreviews"),
    ("create", _AUTHORIZATION, "localsubjectaccessreviews subjectaccessreviews"),
    (READ, "-", "services"),
    (f"create {READ}", "-", "nodes"),
    ("patch update", "-", "nodes nodes/status"),
    ("create patch update", "- events.k8s.io", "events"),
    (f"create delete {READ}", "-", "pods"),
    ("patch update", "-", "pods/status"),
    ("create", "-", "pods/eviction"),
    (READ, "-", "configmaps secrets"),
    ("get", "-", "endpoints persistentvolumeclaims persistentvolumes serviceaccounts"),
    (f"create {READ}", _CERTIFICATES, "certificatesigningrequests"),
    ("create delete get patch update", _COORDINATION, "leases"),
    ("get", "storage.k8s.io", "volumeattachments"),
    ("create", "-", "serviceaccounts/token"),
    ("get patch update", "-", "persistentvolumeclaims/status"),
    (READ, "storage.k8s.io", "csidrivers"),
    ("create delete get patch update", "storage.k8s.io", "csinodes"),
    (READ, "node.k8s.io", "runtimeclasses"),
)

_ROLES: dict[str, tuple[_Row, ...]] = {
    "cluster-admin": (("*", "*", "*"), ("*", "*")),
    "system:aggregate-to-admin": (
        ("create", _AUTHORIZATION, "localsubjectaccessreviews"),
        (BOTH, GROUP, "rolebindings roles"),
    ),
    "system:aggregate-to-edit": _EDIT,
    "system:aggregate-to-view": _VIEW,
    "system:auth-delegator": (
        ("create", _AUTHENTICATION, "tokenreviews"),
        ("create", _AUTHORIZATION, "subjectaccessreviews"),
    ),
    "system:basic-user": (
        ("create", _AUTHORIZATION, "selfsubjectaccessreviews selfsubjectrulesreviews"),
        ("create", _AUTHENTICATION, "selfsubjectreviews"),
    ),
    "system:certificates.k8s.io:certificatesigningrequests:nodeclient": (
        ("create", _CERTIFICATES, "certificatesigningrequests/nodeclient"),
    ),
    "system:certificates.k8s.io:certificatesigningrequests:selfnodeclient": (
        ("create", _CERTIFICATES, "certificatesigningrequests/selfnodeclient"),
    ),
    "system:discovery": (("get", f"/api /api/* /apis /apis/* /openapi /openapi/* {_HEALTH}"),),
    "system:kubelet-api-admin": (
        (READ, "-", "nodes"),
        ("proxy", "-", "nodes"),
        ("*", "-", "nodes/configz nodes/healthz nodes/log nodes/metrics nodes/pods nodes/proxy nodes/stats"),
    ),
    "system:monitoring": (
        ("get", "/healthz /healthz/* /livez /livez/* /metrics /metrics/slis /readyz /readyz/*"),
        ("get", "-", "nodes/metrics"),
    ),
    "system:node": _NODE,
    "system:node-bootstrapper": ((f"create {READ}", _CERTIFICATES, "certificatesigningrequests"),),
    "system:node-proxier": (
        ("list watch", "-", "endpoints services"),
        (READ, "-", "nodes"),
        ("create patch update", "- events.k8s.io", "events"),
        ("list watch", "discovery.k8s.io", "endpointslices"),
    ),
    "system:public-info-viewer": (("get", _HEALTH),),
    "system:service-account-issuer-discovery": (
        (
            "get",
            "/.well-known/openid-configuration /.well-known/openid-configuration/ /openid/v1/jwks /openid/v1/jwks/",
        ),
    ),
}

for _signer in ("kube-apiserver-client", "kube-apiserver-client-kubelet", "kubelet-serving", "legacy-unknown"):
    _ROLES[f"system:certificates.k8s.io:{_signer}-approver"] = (
        ("approve", _CERTIFICATES, "signers", f"kubernetes.io/{_signer}"),
    )

# Put together from others, and part of the next one.
_AGGREGATED = {"admin": "", "edit": "admin", "view": "edit"}
_PART_OF = {f"system:aggregate-to-{role}": role for role in _AGGREGATED} | _AGGREGATED

# role (and binding) > subjects
_BINDINGS: dict[str, tuple[tuple[str, str], ...]] = {
    "cluster-admin": (("Group", "system:masters"),),
    "system:basic-user": (("Group", "system:authenticated"),),
    "system:discovery": (("Group", "system:authenticated"),),
    "system:monitoring": (("Group", "system:monitoring"),),
    "system:node-proxier": (("User", "system:kube-proxy"),),
    "system:public-info-viewer": (("Group", "system:authenticated"), ("Group", "system:unauthenticated")),
    "system:service-account-issuer-discovery": (("Group", "system:serviceaccounts"),),
}


def default_roles() -> list[Json]:
    plain = [_role(name, rules=[_rule(row) for row in rows]) for name, rows in _ROLES.items()]
    return plain + [_role(name, aggregationRule=_aggregation(name)) for name in _AGGREGATED]


def default_bindings() -> list[Json]:
    return [
        {
            "apiVersion": f"{GROUP}/v1",
            "kind": "ClusterRoleBinding",
            "metadata": _metadata(name),
            "roleRef": {"apiGroup": GROUP, "kind": "ClusterRole", "name": name},
            "subjects": [{"apiGroup": GROUP, "kind": kind, "name": who} for kind, who in subjects],
        }
        for name, subjects in _BINDINGS.items()
    ]


def _role(name: str, **content: Any) -> Json:
    meta = _metadata(name)
    if target := _PART_OF.get(name):
        meta["labels"][f"{_AGGREGATE}{target}"] = "true"
    return {"apiVersion": f"{GROUP}/v1", "kind": "ClusterRole", "metadata": meta, "rules": [], **content}


def _aggregation(name: str) -> Json:
    return {"clusterRoleSelectors": [{"matchLabels": {f"{_AGGREGATE}{name}": "true"}}]}


def _metadata(name: str) -> Json:
    return {
        "name": name,
        "labels": {"kubernetes.io/bootstrapping": "rbac-defaults"},
        "annotations": {AUTOUPDATE: "true"},
    }


def _rule(row: _Row) -> Json:
    verbs = row[0].split()
    if len(row) == 2:
        return {"verbs": verbs, "nonResourceURLs": row[1].split()}
    groups = ["" if group == "-" else group for group in row[1].split()]
    rule: Json = {"verbs": verbs, "apiGroups": groups, "resources": row[2].split()}
    if len(row) == 4:
        rule["resourceNames"] = row[3].split()
    return rule
