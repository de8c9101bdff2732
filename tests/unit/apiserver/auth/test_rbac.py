from __future__ import annotations

from typing import Any

import pytest

from homeport.apiserver.auth.decision import Attributes, forbidden
from homeport.apiserver.auth.rbac.rbac import Rbac
from homeport.apiserver.request import ANONYMOUS, User
from homeport.store import Store
from unit.apiserver.auth.policy_store import GROUP, bind, delete, role, rule

ANNA = User("anna", ("devs", "system:authenticated"))


def ask(verb: str, what: str, user: User = ANNA, namespace: str = "default", name: str = "") -> Attributes:
    """`what` is resource[/subresource][.group], or a path."""
    if what.startswith("/"):
        return Attributes(user, verb, path=what)
    qualified, _, group = what.partition(".")
    resource, _, subresource = qualified.partition("/")
    return Attributes(user, verb, group, "v1", resource, subresource, namespace, name)


@pytest.mark.parametrize(
    ("rule_", "request_", "allowed"),
    [
        (rule("get", "-", "pods"), ("get", "pods"), True),
        (rule("get", "-", "pods"), ("list", "pods"), False),
        (rule("get", "-", "pods"), ("get", "pods.apps"), False),
        (rule("get", "-", "pods"), ("get", "pods/log"), False),
        (rule("get", "-", "pods/log"), ("get", "pods/log"), True),
        (rule("get", "-", "pods/log"), ("get", "pods"), False),
        (rule("*", "apps", "deployments"), ("delete", "deployments.apps"), True),
        (rule("get", "*", "*"), ("get", "anything/sub.example.org"), True),
        (rule("update", "*", "*/scale"), ("update", "machinesets/scale.cluster.x-k8s.io"), True),
        (rule("update", "*", "*/scale"), ("update", "machinesets.cluster.x-k8s.io"), False),
        (rule("update", "*", "*/scale"), ("update", "machinesets/status.cluster.x-k8s.io"), False),
        (rule("get", urls="/metrics"), ("get", "/metrics"), True),
        (rule("get", urls="/metrics"), ("get", "/metrics/x"), False),
        (rule("get", urls="/apis/*"), ("get", "/apis/apps/v1"), True),
        (rule("get", urls="/apis/*"), ("post", "/apis/apps/v1"), False),
        (rule("*", urls="*"), ("post", "/anything"), True),
        (rule("*", "*", "*"), ("get", "/anything"), False),
        (rule("*", urls="*"), ("get", "pods"), False),
    ],
)
async def test_a_rule_allows_what_it_says(
    store: Store, rbac: Rbac, rule_: dict[str, object], request_: tuple[str, str], allowed: bool
) -> None:
    await role(store, "r", rule_)
    await bind(store, "b", "ClusterRole/r", "User/anna")
    assert rbac.authorize(ask(*request_)).allowed is allowed


async def test_names_single_out_objects(store: Store, rbac: Rbac) -> None:
    await role(store, "r", rule("get update", "-", "secrets", names="one two"))
    await bind(store, "b", "ClusterRole/r", "User/anna")
    assert rbac.authorize(ask("get", "secrets", name="two")).allowed
    assert not rbac.authorize(ask("get", "secrets", name="three")).allowed
    assert not rbac.authorize(ask("get", "secrets")).allowed


async def test_a_wider_rule_beside_a_named_one_counts(store: Store, rbac: Rbac) -> None:
    await role(store, "r", rule("get", "-", "secrets", names="one"), rule("get", "-", "secrets"))
    await bind(store, "b", "ClusterRole/r", "User/anna")
    assert rbac.authorize(ask("get", "secrets", name="three")).allowed


async def test_a_role_binding_counts_in_its_namespace_only(store: Store, rbac: Rbac) -> None:
    await role(store, "r", rule("get", "-", "pods"))
    await bind(store, "b", "ClusterRole/r", "User/anna", namespace="team")
    assert rbac.authorize(ask("get", "pods", namespace="team")).allowed
    assert not rbac.authorize(ask("get", "pods", namespace="other")).allowed
    assert not rbac.authorize(ask("get", "pods", namespace="")).allowed


async def test_a_role_of_one_namespace_is_not_that_of_another(store: Store, rbac: Rbac) -> None:
    await role(store, "r", rule("get", "-", "pods"), namespace="a")
    await bind(store, "b", "Role/r", "User/anna", namespace="b")
    refused = rbac.authorize(ask("get", "pods", namespace="b"))
    assert refused == (False, f'RBAC: role.{GROUP} "r" not found')


async def test_groups_and_service_accounts_are_subjects(store: Store, rbac: Rbac) -> None:
    await role(store, "r", rule("get", "-", "pods"))
    await bind(store, "b", "ClusterRole/r", "Group/devs", "ServiceAccount/ops/robot")
    robot = User("system:serviceaccount:ops:robot", ("system:serviceaccounts",))
    assert rbac.authorize(ask("get", "pods")).reason == (
        'RBAC: allowed by ClusterRoleBinding "b" of ClusterRole "r" to Group "devs"'
    )
    assert rbac.authorize(ask("get", "pods", robot)).reason == (
        'RBAC: allowed by ClusterRoleBinding "b" of ClusterRole "r" to ServiceAccount "robot/ops"'
    )
    assert not rbac.authorize(ask("get", "pods", User("devs"))).allowed


async def test_a_change_is_seen_by_the_next_question(store: Store, rbac: Rbac) -> None:
    question = ask("get", "pods")
    assert not rbac.authorize(question).allowed
    await bind(store, "b", "ClusterRole/r", "User/anna")
    assert not rbac.authorize(question).allowed
    await role(store, "r", rule("get", "-", "pods"))
    assert rbac.authorize(question).allowed
    await bind(store, "b", "ClusterRole/r", "User/ben")
    assert not rbac.authorize(question).allowed
    await bind(store, "b", "ClusterRole/r", "User/anna")
    assert rbac.authorize(question).allowed
    await delete(store, f"clusterroles.{GROUP}", "r")
    assert not rbac.authorize(question).allowed


async def test_a_policy_that_is_there_before_is_read(store: Store) -> None:
    await role(store, "r", rule("get", "-", "pods"))
    await bind(store, "b", "ClusterRole/r", "User/anna")
    late = Rbac()
    late.follow(store)
    assert late.authorize(ask("get", "pods")).allowed


async def test_masters_may_do_everything_and_health_is_for_all(rbac: Rbac) -> None:
    assert rbac.authorize(ask("delete", "nodes", User("root", ("system:masters",)))).allowed
    assert rbac.authorize(ask("get", "/healthz", ANONYMOUS)).allowed
    assert not rbac.authorize(ask("get", "/metrics", ANONYMOUS)).allowed


async def test_aggregated_roles_follow_their_parts(store: Store, rbac: Rbac) -> None:
    gather: dict[str, Any] = {"aggregationRule": {"clusterRoleSelectors": [{"matchLabels": {"to-edit": "true"}}]}}
    above: dict[str, Any] = {"aggregationRule": {"clusterRoleSelectors": [{"matchLabels": {"to-admin": "true"}}]}}
    await role(store, "edit", metadata={"labels": {"to-admin": "true"}}, **gather)
    await role(store, "admin", **above)
    await bind(store, "b", "ClusterRole/admin", "User/anna")
    assert not rbac.authorize(ask("get", "pods")).allowed
    await role(store, "part", rule("get", "-", "pods"), metadata={"labels": {"to-edit": "true"}})
    assert rbac.authorize(ask("get", "pods")).allowed
    due = {name: rules for name, _, rules in rbac.roles.aggregated()}
    assert due["admin"] == due["edit"] != ()
    await delete(store, f"clusterroles.{GROUP}", "part")
    assert not rbac.authorize(ask("get", "pods")).allowed


async def test_roles_that_gather_each_other_come_to_an_end(store: Store, rbac: Rbac) -> None:
    everything: dict[str, Any] = {"aggregationRule": {"clusterRoleSelectors": [{}]}}
    await role(store, "a", **everything)
    await role(store, "b", **everything)
    await role(store, "c", rule("get", "-", "pods"))
    assert {name: len(rules) for name, _, rules in rbac.roles.aggregated()} == {"a": 1, "b": 1}


async def test_a_broken_selector_gathers_nothing(store: Store, rbac: Rbac) -> None:
    broken = {"clusterRoleSelectors": [{"matchExpressions": [{"key": "a", "operator": "Like"}]}]}
    await role(store, "a", aggregationRule=broken)
    await bind(store, "b", "ClusterRole/a", "User/anna")
    assert not rbac.authorize(ask("get", "pods")).allowed


async def test_rules_for_gives_cluster_wide_and_namespaced_rules(store: Store, rbac: Rbac) -> None:
    await role(store, "wide", rule("get", "-", "nodes"))
    await bind(store, "b", "ClusterRole/wide", "User/anna")
    await role(store, "near", rule("list", "-", "pods"), namespace="team")
    await bind(store, "b", "Role/near", "Group/devs", namespace="team")
    rules, errors = rbac.rules_for(ANNA, "team")
    assert [r.as_dict() for r in rules] == [rule("get", "-", "nodes"), rule("list", "-", "pods")]
    assert not errors
    assert len(rbac.rules_for(ANNA, "other")[0]) == 1


def test_refusals_are_worded_as_kubernetes_words_them() -> None:
    x = User("x")
    listing = Attributes(x, "list", "cluster.x-k8s.io", "v1beta2", "machines", namespace="default")
    assert str(forbidden(listing)) == (
        'machines.cluster.x-k8s.io is forbidden: User "x" cannot list resource "machines" '
        'in API group "cluster.x-k8s.io" in the namespace "default"'
    )
    node = forbidden(Attributes(x, "get", "", "v1", "nodes", name="n"))
    assert str(node) == (
        'nodes "n" is forbidden: User "x" cannot get resource "nodes" in API group "" at the cluster scope'
    )
    assert node.status["details"] == {"name": "n", "kind": "nodes"}
    log = Attributes(x, "get", "", "v1", "pods", "log", "ns", "p")
    assert str(forbidden(log)) == (
        'pods "p" is forbidden: User "x" cannot get resource "pods/log" in API group "" in the namespace "ns"'
    )
    assert str(forbidden(Attributes(x, "get", path="/metrics"))) == 'forbidden: User "x" cannot get path "/metrics"'
