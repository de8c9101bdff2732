"""Roles and bindings of an installation."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from homeport.app.kubernetes.layout import Placement
from homeport.app.kubernetes.workload import LABELS, Json
from homeport.capi.rule import Rule

GROUP = "rbac.authorization.k8s.io"
_AGGREGATE = {"matchLabels": {"cluster.x-k8s.io/aggregate-to-manager": "true"}}


def account_of(placement: Placement) -> Json:
    """As the subject of a binding."""
    return {"kind": "ServiceAccount", "name": placement.name, "namespace": placement.namespace}


def render_role(name: str, rules: list[Rule], namespace: str = "", *, aggregate: bool = False) -> Json:
    """A ClusterRole without a namespace."""
    more: Mapping[str, Any] = {"rules": [each.render() for each in rules]}
    if aggregate:
        more = {"aggregationRule": {"clusterRoleSelectors": [_AGGREGATE]}}
    return _named("Role" if namespace else "ClusterRole", name, namespace, more)


def render_binding(name: str, role: str, subject: Json, namespace: str = "") -> Json:
    kind = "Role" if namespace else "ClusterRole"
    ref = {"apiGroup": GROUP, "kind": kind, "name": role}
    return _named(f"{kind}Binding", name, namespace, {"roleRef": ref, "subjects": [subject]})


def _named(kind: str, name: str, namespace: str, more: Mapping[str, Any]) -> Json:
    meta: Json = {"name": name, **({"namespace": namespace} if namespace else {}), "labels": dict(LABELS)}
    return {"apiVersion": f"{GROUP}/v1", "kind": kind, "metadata": meta, **more}
