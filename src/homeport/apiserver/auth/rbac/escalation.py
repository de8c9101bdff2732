"""Prevents privilege escalation: users can only grant permissions that they have.

Writing a role takes its rules or the verb `escalate` on it; binding one takes its rules or the verb `bind` on it.
"""

from __future__ import annotations

from collections.abc import Iterable

from homeport.apiserver.auth.decision import Attributes, refusal
from homeport.apiserver.auth.rbac.rbac import GROUP, MASTERS, Rbac
from homeport.apiserver.auth.rbac.rule import EVERYTHING, Rule, compact, missing, parse_rules, quoted
from homeport.apiserver.auth.source import Json
from homeport.apiserver.request import User
from homeport.client.errors import Forbidden, not_found

_COLLECTED = ("finalizers", "ownerReferences", "managedFields", "resourceVersion", "generation")
_TYPE = ("kind", "apiVersion")


def check_role(rbac: Rbac, user: User, plural: str, namespace: str, obj: Json, old: Json | None) -> None:
    """Raises Forbidden when a Role or ClusterRole would hold more than its writer does.

    Any change takes the role's rules, not only a change of them: a label can have them gathered into another role.
    """
    name = obj["metadata"].get("name", "")
    # A role that does not exist yet has no name that the verb `escalate` could be limited to.
    if MASTERS in user.groups or _may(rbac, user, "escalate", plural, namespace, "" if old is None else name):
        return
    if old is not None and _changes_nothing(obj, old):
        return
    _confirm(rbac, user, plural, namespace, name, parse_rules(obj))
    if _gathers(obj) or (old is not None and _gathers(old)):
        held, _ = rbac.rules_for(user, "")
        if missing(held, EVERYTHING):
            raise refusal(GROUP, plural, name, "must have cluster-admin privileges to use the aggregationRule")


def check_binding(rbac: Rbac, user: User, plural: str, namespace: str, obj: Json, old: Json | None) -> None:
    """Raises Forbidden when a binding would give somebody more than its writer has; NotFound for a missing role."""
    if MASTERS in user.groups or (old is not None and _changes_nothing(obj, old)):
        return
    ref = obj.get("roleRef") or {}
    kind, role = ref.get("kind", ""), ref.get("name", "")
    roles = "roles" if kind == "Role" else "clusterroles"
    if _may(rbac, user, "bind", roles, namespace, role):
        return
    rules = rbac.roles.rules(kind, namespace, role)
    if rules is None:
        raise not_found(GROUP, kind.lower(), role)
    _confirm(rbac, user, plural, namespace, obj["metadata"].get("name", ""), rules)


def _gathers(role: Json) -> bool:
    return bool((role.get("aggregationRule") or {}).get("clusterRoleSelectors"))


def _changes_nothing(obj: Json, old: Json) -> bool:
    """But for what garbage collection writes, so that it can delete what it could not have created."""
    return _compared(obj) == _compared(old)


def _compared(obj: Json) -> Json:
    meta = {field: value for field, value in obj["metadata"].items() if value and field not in _COLLECTED}
    return {"metadata": meta, **{f: value for f, value in obj.items() if value and f not in ("metadata", *_TYPE)}}


def _may(rbac: Rbac, user: User, verb: str, resource: str, namespace: str, name: str) -> bool:
    return rbac.authorize(Attributes(user, verb, GROUP, "v1", resource, "", namespace, name)).allowed


def _confirm(rbac: Rbac, user: User, plural: str, namespace: str, name: str, wanted: Iterable[Rule]) -> None:
    held, errors = rbac.rules_for(user, namespace)
    lacking = missing(held, wanted)
    if lacking:
        raise _refused(user, plural, name, lacking, errors)


def _refused(user: User, plural: str, name: str, lacking: list[Rule], errors: list[str]) -> Forbidden:
    text = (
        f'user "{user.name}" (groups={quoted(user.groups)}) is attempting to grant RBAC permissions '
        "not currently held:\n" + "\n".join(str(rule) for rule in compact(lacking))
    )
    if errors:
        text += f"; resolution errors: {quoted(errors)}"
    return refusal(GROUP, plural, name, text)
