from __future__ import annotations

import pytest

from homeport.apiserver.auth.impersonation import impersonate
from homeport.apiserver.auth.rbac.rbac import Rbac
from homeport.apiserver.request import User
from homeport.client.errors import BadRequest, Forbidden
from homeport.store import Store
from unit.apiserver.auth.policy_store import bind, role, rule

ANNA = User("anna", ("system:authenticated",))
ROOT = User("root", ("system:masters",))


async def may(store: Store, *rules: dict[str, object]) -> None:
    await role(store, "r", *rules)
    await bind(store, "b", "ClusterRole/r", "User/anna")


async def test_without_headers_one_stays_oneself(rbac: Rbac) -> None:
    assert impersonate(ANNA, [("Accept", "*/*")], rbac) is ANNA


async def test_a_user_is_impersonated_with_what_the_headers_say(rbac: Rbac) -> None:
    headers = [
        ("Impersonate-User", "ben"),
        ("Impersonate-Group", "devs"),
        ("Impersonate-Group", "ops"),
        ("Impersonate-Uid", "7"),
        ("Impersonate-Extra-acme.org%2fproject", "a"),
        ("Impersonate-Extra-acme.org%2fproject", "b"),
    ]
    assert impersonate(ROOT, headers, rbac) == User(
        "ben", ("devs", "ops", "system:authenticated"), "7", {"acme.org/project": ("a", "b")}
    )


async def test_impersonation_takes_the_right_to_it(store: Store, rbac: Rbac) -> None:
    with pytest.raises(Forbidden) as refused:
        impersonate(ANNA, [("Impersonate-User", "ben")], rbac)
    assert str(refused.value) == (
        'users "ben" is forbidden: User "anna" cannot impersonate resource "users" in API group "" at the cluster scope'
    )
    await may(store, rule("impersonate", "-", "users", names="ben"))
    assert impersonate(ANNA, [("Impersonate-User", "ben")], rbac).name == "ben"
    with pytest.raises(Forbidden):
        impersonate(ANNA, [("Impersonate-User", "carl")], rbac)
    with pytest.raises(Forbidden, match='groups "system:masters" is forbidden'):
        impersonate(ANNA, [("Impersonate-User", "ben"), ("Impersonate-Group", "system:masters")], rbac)


async def test_extra_fields_and_uids_are_rights_of_their_own(store: Store, rbac: Rbac) -> None:
    await may(
        store,
        rule("impersonate", "-", "users"),
        rule("impersonate", "authentication.k8s.io", "userextras/scopes", names="view"),
    )
    headers = [("Impersonate-User", "ben"), ("Impersonate-Extra-Scopes", "view")]
    assert impersonate(ANNA, headers, rbac).extra == {"scopes": ("view",)}
    for header in (("Impersonate-Extra-Scopes", "edit"), ("Impersonate-Uid", "7")):
        with pytest.raises(Forbidden):
            impersonate(ANNA, [("Impersonate-User", "ben"), header], rbac)


async def test_a_service_account_gets_its_groups(store: Store, rbac: Rbac) -> None:
    await may(store, rule("impersonate", "-", "serviceaccounts"))
    robot = impersonate(ANNA, [("Impersonate-User", "system:serviceaccount:ops:robot")], rbac)
    assert robot.groups == ("system:serviceaccounts", "system:serviceaccounts:ops", "system:authenticated")


async def test_anonymous_is_not_authenticated(rbac: Rbac) -> None:
    assert impersonate(ROOT, [("Impersonate-User", "system:anonymous")], rbac).groups == ("system:unauthenticated",)


async def test_a_group_without_a_user_is_refused(rbac: Rbac) -> None:
    with pytest.raises(BadRequest):
        impersonate(ROOT, [("Impersonate-Group", "devs")], rbac)
