"""Nobody hands out rights that he does not have himself.

Writing a role takes its rules or the verb `escalate` on it; binding one takes its rules or the verb `bind` on it.
"""

from __future__ import annotations

from collections.abc import Iterable

from homeport.apiserver.auth.decision import Attributes, refusal
from homeport.apiserver.auth.rbac import GROUP, MASTERS, Rbac
from homeport.apiserver.auth.rule import EVERYTHING, Rule, compact, missing, parse_rules, quoted
from homeport.apiserver.auth.source import Json
from homeport.apiserver.request import User
from homeport.client.errors import Forbidden, not_found


def check_role(rbac: Rbac, user: User, plural: str, namespace: str, obj: Json, old: Json | None) -> None:
    """Raises Forbidden when a Role or ClusterRole would hold more than its writer does."""
    name = obj["metadata"].get("name", "")
    if MASTERS in user.groups or _may(rbac, user, "escalate", plural, namespace, name):
        return
    aggregation = obj.get("aggregationRule")
    if aggregation and (old is None or old.get("aggregationRule") != aggregation):
        # Whoever chooses what is gathered can gather anything.
        _confirm(
            rbac, user, plural, "", name, EVERYTHING, "must have cluster-admin privileges to use the aggregationRule: "
        )
    if old is None or old.get("rules") != obj.get("rules"):
        _confirm(rbac, user, plural, namespace, name, parse_rules(obj))


def check_binding(rbac: Rbac, user: User, plural: str, namespace: str, obj: Json, old: Json | None) -> None:
    """Raises Forbidden when a binding would give somebody more than its writer has; NotFound for a missing role."""
    if MASTERS in user.groups or (old is not None and _same_binding(old, obj)):
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


def _same_binding(old: Json, new: Json) -> bool:
    return all((old.get(field) or None) == (new.get(field) or None) for field in ("roleRef", "subjects"))


def _may(rbac: Rbac, user: User, verb: str, resource: str, namespace: str, name: str) -> bool:
    return rbac.authorize(Attributes(user, verb, GROUP, "v1", resource, "", namespace, name)).allowed


def _confirm(
    rbac: Rbac, user: User, plural: str, namespace: str, name: str, wanted: Iterable[Rule], why: str = ""
) -> None:
    held, errors = rbac.rules_for(user, namespace)
    lacking = missing(held, wanted)
    if lacking:
        raise _refused(user, plural, name, lacking, errors, why)


def _refused(user: User, plural: str, name: str, lacking: list[Rule], errors: list[str], why: str) -> Forbidden:
    text = (
        f'{why}user "{user.name}" (groups={quoted(user.groups)}) is attempting to grant RBAC permissions '
        "not currently held:\n" + "\n".join(str(rule) for rule in compact(lacking))
    )
    if errors:
        text += f"; resolution errors: {quoted(errors)}"
    return refusal(GROUP, plural, name, text)
