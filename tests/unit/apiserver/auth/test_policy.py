from __future__ import annotations

import asyncio
import copy
from typing import Any

import pytest

from homeport.apiserver.auth.decision import Attributes
from homeport.apiserver.auth.rbac.policy import AUTOUPDATE, default_bindings, default_roles
from homeport.apiserver.auth.rbac.rbac import GROUP, Rbac
from homeport.apiserver.auth.rbac.reconcile import BINDING, ROLE, Aggregator, ensure_policy, plan_policy
from homeport.apiserver.kinds import builtin_kinds
from homeport.apiserver.local import LocalClient
from homeport.apiserver.name import path_segment
from homeport.apiserver.registry import Registry
from homeport.apiserver.request import ANONYMOUS, User
from homeport.apiserver.resource import Catalog
from homeport.apiserver.verb.admission import Admission
from homeport.client.protocol import Key
from homeport.store import Change, Store

KNOWN = User("anna", ("system:authenticated",))


def by_name(objects: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    return {obj["metadata"]["name"]: copy.deepcopy(obj) for obj in objects}


@pytest.fixture
def client(store: Store) -> LocalClient:
    catalog = Catalog()
    for served in builtin_kinds():
        if served.group == GROUP:
            served.naming = path_segment
        catalog.add(served)
    return LocalClient(Registry(store, catalog, Admission()))


def test_nothing_is_planned_where_all_is_there() -> None:
    assert plan_policy(by_name(default_roles()), by_name(default_bindings())) == []


def test_missing_rules_are_added_and_others_left() -> None:
    roles = by_name(default_roles())
    own = {"verbs": ["get"], "apiGroups": ["example.org"], "resources": ["widgets"]}
    roles["system:basic-user"]["rules"] = [own]
    roles["system:basic-user"]["metadata"]["labels"] = {"mine": "yes"}
    (action,) = plan_policy(roles, by_name(default_bindings()))
    rules = action.obj["rules"]
    assert rules[0] == own
    assert {"verbs": ["create"], "apiGroups": ["authentication.k8s.io"], "resources": ["selfsubjectreviews"]} in rules
    assert action.obj["metadata"]["labels"] == {"mine": "yes", "kubernetes.io/bootstrapping": "rbac-defaults"}


def test_missing_subjects_and_selectors_are_added_and_others_left() -> None:
    roles, bindings = by_name(default_roles()), by_name(default_bindings())
    roles["admin"]["aggregationRule"]["clusterRoleSelectors"] = [{"matchLabels": {"mine": "yes"}}]
    bindings["cluster-admin"]["subjects"] = [{"kind": "User", "name": "anna"}]
    admin, masters = plan_policy(roles, bindings)
    assert len(admin.obj["aggregationRule"]["clusterRoleSelectors"]) == 2
    assert [subject["name"] for subject in masters.obj["subjects"]] == ["anna", "system:masters"]


def test_a_binding_to_another_role_is_recreated() -> None:
    bindings = by_name(default_bindings())
    bindings["system:discovery"]["roleRef"]["name"] = "cluster-admin"
    (action,) = plan_policy(by_name(default_roles()), bindings)
    assert action.recreate
    assert action.obj["roleRef"]["name"] == "system:discovery"


def test_what_says_so_is_not_touched() -> None:
    roles, bindings = by_name(default_roles()), by_name(default_bindings())
    roles["system:basic-user"]["rules"] = []
    bindings["cluster-admin"]["subjects"] = []
    for obj in (roles["system:basic-user"], bindings["cluster-admin"]):
        obj["metadata"]["annotations"][AUTOUPDATE] = "false"
    assert plan_policy(roles, bindings) == []


async def test_a_first_start_writes_the_defaults_and_a_second_nothing(client: LocalClient, rbac: Rbac) -> None:
    assert await ensure_policy(client) == len(default_roles()) + len(default_bindings())
    assert await ensure_policy(client) == 0
    assert rbac.authorize(Attributes(ANONYMOUS, "get", path="/version")).allowed
    assert not rbac.authorize(Attributes(ANONYMOUS, "get", path="/api")).allowed
    assert rbac.authorize(Attributes(KNOWN, "get", path="/apis/apps/v1")).allowed
    own = Attributes(KNOWN, "create", "authorization.k8s.io", "v1", "selfsubjectaccessreviews")
    assert rbac.authorize(own).allowed
    assert not rbac.authorize(Attributes(KNOWN, "list", "", "v1", "pods", namespace="default")).allowed


async def test_a_binding_to_another_role_is_repaired(client: LocalClient) -> None:
    await ensure_policy(client)
    await client.delete(BINDING, Key("", "system:discovery"))
    wrong = by_name(default_bindings())["system:discovery"]
    wrong["roleRef"]["name"] = "view"
    await client.create(wrong, kind=BINDING)
    assert await ensure_policy(client) == 1
    assert (await client.get(BINDING, Key("", "system:discovery")))["roleRef"]["name"] == "system:discovery"


async def test_aggregated_roles_are_written_out(client: LocalClient, rbac: Rbac) -> None:
    await ensure_policy(client)
    aggregator = Aggregator(rbac, client)
    assert await aggregator.settle() == 3
    assert await aggregator.settle() == 0
    counts = {name: len((await client.get(ROLE, Key("", name)))["rules"]) for name in ("view", "edit", "admin")}
    assert 0 < counts["view"] < counts["edit"] < counts["admin"]


async def test_a_new_part_reaches_its_aggregated_roles(client: LocalClient, rbac: Rbac, store: Store) -> None:
    await ensure_policy(client)
    aggregator = Aggregator(rbac, client)
    await aggregator.settle()
    part: dict[str, Any] = {
        "apiVersion": f"{GROUP}/v1",
        "kind": "ClusterRole",
        "metadata": {"name": "widgets", "labels": {f"{GROUP}/aggregate-to-view": "true"}},
        "rules": [{"verbs": ["get"], "apiGroups": ["example.org"], "resources": ["widgets"]}],
    }
    await client.create(part, kind=ROLE)
    assert await aggregator.settle() == 3
    assert part["rules"][0] in (await client.get(ROLE, Key("", "admin")))["rules"]


async def test_a_running_aggregator_follows_changes(client: LocalClient, rbac: Rbac, store: Store) -> None:
    await ensure_policy(client)
    aggregator = Aggregator(rbac, client)
    stop = aggregator.follow(store)
    written = asyncio.Event()

    def look(changes: list[Change]) -> None:
        if all(stored == due for _, stored, due in rbac.roles.aggregated()):
            written.set()

    store.subscribe(f"clusterroles.{GROUP}", look)
    running = asyncio.create_task(aggregator.run())
    try:
        await asyncio.wait_for(written.wait(), 10)
        written.clear()
        await client.delete(ROLE, Key("", "system:aggregate-to-view"))
        await asyncio.wait_for(written.wait(), 10)
        assert not (await client.get(ROLE, Key("", "view"))).get("rules")
    finally:
        stop()
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
