"""Objects that give members their access: rendered, and compared with those that are there."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from homeport.api.meta import Resource
from homeport.platforms.butler.name import MANAGED_BY, MANAGED_BY_LABEL, TEAM_LABEL
from homeport.platforms.butler.normal.team import Member
from homeport.platforms.butler.team.role import (
    ADMIN,
    CLUSTER_ROLE,
    CLUSTER_ROLE_BINDING,
    CLUSTER_ROLES,
    MEMBER_ROLE,
    OPERATOR,
    ROLE,
    ROLE_BINDING,
    TENANT_CLUSTER_ROLES,
    TENANT_ROLE,
    VIEWER,
    environment_rules,
    rule,
    team_role,
)

Json = dict[str, Any]
_API = "rbac.authorization.k8s.io"
ROLES = (ADMIN, OPERATOR, VIEWER)


def labels(team: str = "") -> dict[str, str]:
    return {MANAGED_BY_LABEL: MANAGED_BY, **({TEAM_LABEL: team} if team else {})}


def subject(member: Member) -> Json:
    return {"kind": member.kind, "name": member.name, "apiGroup": _API}


def _object(kind: Resource, name: str, namespace: str, team: str, **more: Any) -> Json:
    meta: Json = {"name": name, "labels": labels(team)}
    if namespace:
        meta["namespace"] = namespace
    return {**kind.type_meta, "metadata": meta, **more}


def _binding(kind: Resource, name: str, namespace: str, team: str, role: str, members: Iterable[Member]) -> Json:
    ref_kind, _, ref = role.rpartition("/")
    found = [subject(each) for each in _unique(members)]
    return _object(
        kind,
        name,
        namespace,
        team,
        roleRef={"apiGroup": _API, "kind": ref_kind or "ClusterRole", "name": ref},
        subjects=found,
    )


def _unique(members: Iterable[Member]) -> list[Member]:
    found = {(each.kind, each.name): each for each in members}
    return [found[key] for key in sorted(found)]


def cluster_roles() -> list[Json]:
    return [_object(CLUSTER_ROLE, name, "", "", rules=rules) for name, rules in CLUSTER_ROLES.items()]


def team_objects(
    team: str, members: Sequence[Member], clusters: Mapping[str, str], namespaces: Mapping[str, str]
) -> list[Json]:
    """All that gives members of a team their access on the management plane. `clusters`: name > environment.
    `namespaces`: cluster > namespace of its Cluster API objects."""
    found = []
    whole = [each for each in members if not each.environment]
    for role in ROLES:
        some = [each for each in whole if each.role == role]
        if some:
            found.append(_binding(ROLE_BINDING, f"butler-team-{role}", team, team, team_role(role), some))
    if members:
        name = f"butler-team-{team}"
        own = [rule(["butler.butlerlabs.dev"], ["teams"], ("get", "list", "watch"), [team])]
        found.append(_object(CLUSTER_ROLE, name, "", team, rules=own))
        found.append(_binding(CLUSTER_ROLE_BINDING, name, "", team, name, members))
        found.append(_binding(CLUSTER_ROLE_BINDING, f"{name}-member", "", team, MEMBER_ROLE, members))
    found += _environment_objects(team, members, clusters)
    for cluster, namespace in sorted(namespaces.items()):
        readers = [each for each in members if each.environment in ("", clusters.get(cluster, ""))]
        if readers:
            found.append(_binding(ROLE_BINDING, "butler-team-viewer", namespace, team, TENANT_ROLE, readers))
    return found


def _environment_objects(team: str, members: Sequence[Member], clusters: Mapping[str, str]) -> list[Json]:
    found = []
    for environment, role in sorted({(each.environment, each.role) for each in members if each.environment}):
        names = sorted(name for name, held in clusters.items() if held == environment)
        if not names:
            continue
        some = [each for each in members if (each.environment, each.role) == (environment, role)]
        # The names of environments allow more than those of objects.
        mark = hashlib.sha256(environment.encode()).hexdigest()[:8]
        name = f"butler-environment-{mark}-{role}"
        found.append(_object(ROLE, name, team, team, rules=environment_rules(role, names)))
        found.append(_binding(ROLE_BINDING, name, team, team, f"Role/{name}", some))
    return found


def tenant_cluster_objects(members: Sequence[Member], environment: str) -> list[Json]:
    """What members get in a cluster itself: of its team, and of its environment."""
    here = [each for each in members if each.environment in ("", environment)]
    found = []
    for role, name in TENANT_CLUSTER_ROLES.items():
        some = [each for each in here if each.role == role]
        if some:
            found.append(_binding(CLUSTER_ROLE_BINDING, f"butler-{role}", "", "", name, some))
    return found


def platform_binding(role: str, users: Sequence[str], name: str, namespace: str = "") -> Json | None:
    members = [Member("User", each, role) for each in users]
    if not members:
        return None
    kind = ROLE_BINDING if namespace else CLUSTER_ROLE_BINDING
    return _binding(kind, name, namespace, "", role, members)


def identity(obj: Mapping[str, Any]) -> tuple[str, str, str]:
    meta = obj.get("metadata") or {}
    return str(obj.get("kind", "")), str(meta.get("namespace", "")), str(meta.get("name", ""))


def same(there: Mapping[str, Any], wanted: Mapping[str, Any]) -> bool:
    keys = ("rules", "roleRef", "subjects")
    return all((there.get(key) or []) == (wanted.get(key) or []) for key in keys)
