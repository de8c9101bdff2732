from __future__ import annotations

from typing import Any

import pytest

from homeport.apiserver.auth.rbac.escalation import check_binding, check_role
from homeport.apiserver.auth.rbac.rbac import Rbac
from homeport.apiserver.request import SYSTEM, User
from homeport.client.errors import Forbidden, NotFound
from homeport.store import Store
from unit.apiserver.auth.policy_store import GROUP, bind, role, rule

ANNA = User("anna", ("devs", "system:authenticated"))


def a_role(*rules: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"metadata": {"name": "new"}, "rules": list(rules), **more}


def a_binding(ref: str, *users: str) -> dict[str, Any]:
    kind, name = ref.split("/")
    subjects = [{"kind": "User", "name": user} for user in users]
    return {"metadata": {"name": "new"}, "roleRef": {"kind": kind, "name": name}, "subjects": subjects}


async def hold(store: Store, *rules: dict[str, Any]) -> None:
    await role(store, "held", *rules)
    await bind(store, "held", "ClusterRole/held", "User/anna")


async def test_a_role_with_more_than_its_writer_has_is_refused(store: Store, rbac: Rbac) -> None:
    await hold(store, rule("get list", "-", "pods"))
    with pytest.raises(Forbidden) as refused:
        check_role(rbac, ANNA, "clusterroles", "", a_role(rule("get delete watch", "-", "pods")), None)
    assert str(refused.value) == (
        f'clusterroles.{GROUP} "new" is forbidden: user "anna" (groups=["devs" "system:authenticated"]) '
        "is attempting to grant RBAC permissions not currently held:\n"
        '{APIGroups:[""], Resources:["pods"], Verbs:["delete" "watch"]}'
    )


@pytest.mark.parametrize(
    ("held", "wanted", "allowed"),
    [
        (rule("*", "*", "*"), rule("get", "apps", "deployments/scale"), True),
        (rule("get list", "- apps", "pods deployments"), rule("get", "-", "pods"), True),
        (rule("get", "-", "pods", names="a"), rule("get", "-", "pods"), False),
        (rule("get", "-", "pods", names="a b"), rule("get", "-", "pods", names="a"), True),
        (rule("get", "-", "pods"), rule("get", "-", "pods", names="a"), True),
        (rule("update", "-", "*/scale"), rule("update", "-", "pods/scale"), True),
        (rule("update", "-", "pods/scale"), rule("update", "-", "*/scale"), False),
        (rule("get", "-", "pods"), rule("*", "-", "pods"), False),
        (rule("get", urls="/apis/*"), rule("get", urls="/apis/apps/*"), True),
        (rule("get", urls="/apis/*"), rule("get", urls="*"), False),
    ],
)
async def test_rules_cover_rules(
    store: Store, rbac: Rbac, held: dict[str, Any], wanted: dict[str, Any], allowed: bool
) -> None:
    await hold(store, held)
    if allowed:
        check_role(rbac, ANNA, "clusterroles", "", a_role(wanted), None)
        return
    with pytest.raises(Forbidden):
        check_role(rbac, ANNA, "clusterroles", "", a_role(wanted), None)


async def test_a_role_that_stays_as_it_is_takes_no_rights(rbac: Rbac) -> None:
    old = a_role(rule("get", "-", "pods"))
    owned = {"name": "new", "ownerReferences": [{"name": "x"}], "finalizers": ["a/b"], "managedFields": [{}]}
    check_role(rbac, ANNA, "clusterroles", "", {**old, "metadata": owned}, old)
    with pytest.raises(Forbidden):
        check_role(rbac, ANNA, "clusterroles", "", a_role(rule("list", "-", "pods")), old)


async def test_a_label_that_has_the_rules_gathered_takes_the_rules(store: Store, rbac: Rbac) -> None:
    old = a_role(rule("*", "*", "*"))
    label = {"rbac.authorization.k8s.io/aggregate-to-view": "true"}
    new = {**old, "metadata": {"name": "new", "labels": label}}
    with pytest.raises(Forbidden, match="not currently held"):
        check_role(rbac, ANNA, "clusterroles", "", new, old)
    await hold(store, rule("*", "*", "*"))
    check_role(rbac, ANNA, "clusterroles", "", new, old)


async def test_escalate_and_masters_pass(store: Store, rbac: Rbac) -> None:
    await hold(store, rule("escalate", GROUP, "clusterroles", names="new"))
    wanted = a_role(rule("*", "*", "*"))
    check_role(rbac, ANNA, "clusterroles", "", wanted, a_role())
    with pytest.raises(Forbidden):
        check_role(rbac, ANNA, "clusterroles", "", wanted, None)  # what is not there has no name yet
    check_role(rbac, SYSTEM, "clusterroles", "", wanted, None)
    with pytest.raises(Forbidden):
        check_role(rbac, ANNA, "roles", "ns", wanted, None)


async def test_choosing_what_is_gathered_takes_everything(store: Store, rbac: Rbac) -> None:
    gather = {"aggregationRule": {"clusterRoleSelectors": [{"matchLabels": {"a": "b"}}]}}
    with pytest.raises(Forbidden, match="must have cluster-admin privileges to use the aggregationRule"):
        check_role(rbac, ANNA, "clusterroles", "", a_role(**gather), None)
    await hold(store, rule("*", "*", "*"), rule("*", urls="*"))
    check_role(rbac, ANNA, "clusterroles", "", a_role(**gather), None)


@pytest.mark.parametrize("plain_first", [True, False])
async def test_any_change_of_a_role_that_gathers_takes_everything(store: Store, rbac: Rbac, plain_first: bool) -> None:
    """Also one that takes the gathering away: it would keep the role from being tightened."""
    await hold(store, rule("get", "-", "pods"))
    gather = {"aggregationRule": {"clusterRoleSelectors": [{"matchLabels": {"a": "b"}}]}}
    one, other = a_role(), a_role(**gather)
    labelled = {**other, "metadata": {"name": "new", "labels": {"a": "b"}}}
    for new, old in ((one, other) if plain_first else (other, one), (labelled, other)):
        with pytest.raises(Forbidden, match="must have cluster-admin privileges to use the aggregationRule"):
            check_role(rbac, ANNA, "clusterroles", "", new, old)


async def test_binding_takes_the_rules_or_the_verb_bind(store: Store, rbac: Rbac) -> None:
    await role(store, "strong", rule("delete", "-", "nodes"))
    binding = a_binding("ClusterRole/strong", "ben")
    with pytest.raises(Forbidden, match="not currently held"):
        check_binding(rbac, ANNA, "clusterrolebindings", "", binding, None)
    await hold(store, rule("bind", GROUP, "clusterroles", names="strong"))
    check_binding(rbac, ANNA, "clusterrolebindings", "", binding, None)
    check_binding(rbac, ANNA, "rolebindings", "ns", binding, None)
    await hold(store, rule("delete", "-", "nodes"))
    check_binding(rbac, ANNA, "clusterrolebindings", "", binding, None)


async def test_a_binding_to_a_role_that_is_not_there_says_so(rbac: Rbac) -> None:
    with pytest.raises(NotFound, match=f'role.{GROUP} "gone" not found'):
        check_binding(rbac, ANNA, "rolebindings", "ns", a_binding("Role/gone", "ben"), None)
    check_binding(rbac, SYSTEM, "rolebindings", "ns", a_binding("Role/gone", "ben"), None)


async def test_a_binding_gets_new_subjects_only_from_those_who_may_bind(store: Store, rbac: Rbac) -> None:
    await role(store, "strong", rule("delete", "-", "nodes"))
    old = a_binding("ClusterRole/strong", "ben")
    check_binding(rbac, ANNA, "clusterrolebindings", "", old, old)
    with pytest.raises(Forbidden):
        check_binding(rbac, ANNA, "clusterrolebindings", "", a_binding("ClusterRole/strong", "ben", "anna"), old)
