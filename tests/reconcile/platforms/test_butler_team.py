"""Teams: namespace, access of members, usage, deletion."""

from __future__ import annotations

from typing import Any

from homeport.api.butler.v1alpha1 import ButlerConfig, Team, TenantCluster, User
from homeport.api.meta import Resource
from homeport.client.protocol import Key, MergePatch, Query
from homeport.machinery.condition import find, is_true
from homeport.platforms.butler.team.reconciler import NAMESPACE, TeamReconciler
from homeport.platforms.butler.team.role import CLUSTER_ROLE_BINDING, ROLE, ROLE_BINDING
from homeport.platforms.butler.team.settings import ConfigReconciler, PolicyReconciler
from homeport.platforms.butler.team.user import UserReconciler
from homeport.runtime.testing import Plane
from reconcile.platforms.butler_kit import butler, butler_plane

TEAM = Team.__resource__
USER = User.__resource__
HARBOUR = Key("", "harbour")


def install(setup: Any) -> None:
    for make in (TeamReconciler, UserReconciler, ConfigReconciler, PolicyReconciler):
        setup.manager.add(make(setup.manager).controller)


def ready(obj: Any) -> bool:
    return is_true(obj.status.conditions, "Ready") and obj.status.observed_generation == obj.metadata.generation


def reason(obj: Any, kind: str = "Ready") -> str:
    found = find(obj.status.conditions, kind)
    return "" if found is None else str(found["reason"])


async def make_team(p: Plane, **spec: Any) -> Team:
    await p.client.create(butler("Team", "harbour", spec), kind=TEAM)
    found: Team = await p.until(Team, HARBOUR, ready)
    return found


async def make_user(p: Plane, name: str, **spec: Any) -> None:
    await p.client.create(butler("User", name, {"email": f"{name}@example.com", **spec}), kind=USER)


async def subjects(p: Plane, kind: Resource, namespace: str = "") -> dict[str, list[str]]:
    found = (await p.client.list(kind, Query(namespace=namespace))).items
    return {each.name: [one["name"] for one in each.get("subjects") or ()] for each in found}


async def test_a_team_gets_its_namespace_and_its_members_their_roles() -> None:
    async with butler_plane(install, namespaces=("butler-system",)) as p:
        access = {
            "users": [{"name": "ada@example.com", "role": "admin"}, {"name": "bob@example.com"}],
            "groups": [{"name": "devs", "role": "operator"}],
        }
        team = await make_team(p, access=access)
        assert (team.status.phase, team.status.namespace, team.status.member_count) == ("Ready", "harbour", 3)
        assert is_true(team.status.conditions, "NamespaceReady")
        assert is_true(team.status.conditions, "RBACReady")
        assert await subjects(p, ROLE_BINDING, "harbour") == {
            "butler-team-admin": ["ada@example.com"],
            "butler-team-operator": ["devs"],
            "butler-team-viewer": ["bob@example.com"],
        }
        assert "butler-team-harbour" in await subjects(p, CLUSTER_ROLE_BINDING)


async def test_a_member_who_goes_loses_access_and_what_was_changed_by_hand_is_put_right() -> None:
    async with butler_plane(install, namespaces=("butler-system",)) as p:
        await make_team(p, access={"users": [{"name": "ada", "role": "admin"}]})
        binding = Key("harbour", "butler-team-admin")
        stranger = {"subjects": [{"kind": "User", "name": "eve", "apiGroup": "rbac.authorization.k8s.io"}]}
        await p.client.patch(ROLE_BINDING, binding, MergePatch(stranger))
        await p.until(ROLE_BINDING, binding, lambda obj: [each["name"] for each in obj["subjects"]] == ["ada"])
        await p.client.patch(TEAM, HARBOUR, MergePatch({"spec": {"access": {"users": []}}}))
        await p.gone(ROLE_BINDING, binding)
        await p.until(Team, HARBOUR, lambda team: ready(team) and team.status.member_count == 0)
        assert not [name for name in await subjects(p, CLUSTER_ROLE_BINDING) if name.startswith("butler-team")]


async def test_a_disabled_user_has_no_access_whatever_teams_say() -> None:
    async with butler_plane(install, namespaces=("butler-system",)) as p:
        await make_user(p, "ada", platformRole="admin")
        await make_team(p, access={"users": [{"name": "ada", "role": "admin"}]})
        binding = Key("harbour", "butler-team-admin")
        found = await p.until(ROLE_BINDING, binding, lambda obj: True)
        assert [each["name"] for each in found["subjects"]] == ["ada@example.com"]
        await p.until(User, Key("", "ada"), lambda user: ready(user) and user.status.teams != [])
        platform = Key("", "butler-user-ada")
        await p.until(CLUSTER_ROLE_BINDING, platform, lambda obj: True)
        await p.client.patch(USER, Key("", "ada"), MergePatch({"spec": {"disabled": True}}))
        await p.gone(ROLE_BINDING, binding)
        await p.gone(CLUSTER_ROLE_BINDING, platform)
        # A second User with the same address gives nobody access back.
        await p.client.create(butler("User", "second", {"email": "ada@example.com"}), kind=USER)
        await p.until(User, Key("", "second"), ready)
        await p.until(Team, HARBOUR, lambda team: ready(team) and team.status.member_count == 0)
        user = await p.until(User, Key("", "ada"), lambda user: reason(user) == "Disabled")
        assert user.status.phase == "Disabled"


async def test_members_of_an_environment_get_its_clusters_by_name() -> None:
    async with butler_plane(install, namespaces=("butler-system",)) as p:
        environment = {"name": "Prod", "access": {"users": [{"name": "olga", "role": "operator"}]}}
        await make_team(p, environments=[environment, {"name": "dev"}])
        for name, label in (("a", "Prod"), ("b", "dev"), ("c", "Prod")):
            labels = {"butler.butlerlabs.dev/environment": label}
            cluster = butler("TenantCluster", name, {}, namespace="harbour", labels=labels)
            await p.client.create(cluster, kind=TenantCluster.__resource__)
        await p.until(Team, HARBOUR, lambda team: ready(team) and team.status.cluster_count == 3)
        roles = (await p.client.list(ROLE, Query(namespace="harbour"))).items
        assert [each["rules"][0]["resourceNames"] for each in roles] == [["a", "c"]]
        assert "create" not in roles[0]["rules"][0]["verbs"]
        team = await p.client.get(Team, HARBOUR)
        assert {each.name: each.clusters for each in team.status.environments} == {"Prod": 2, "dev": 1}


async def test_usage_and_limits_are_shown() -> None:
    async with butler_plane(install, namespaces=("butler-system",)) as p:
        team = await make_team(p, resourceLimits={"maxClusters": 2, "maxMemory": "32Gi", "maxStorage": "1Ti"})
        assert team.status.quota_status == "OK"
        cluster = butler("TenantCluster", "a", {"workers": {"replicas": 3}}, namespace="harbour")
        await p.client.create(cluster, kind=TenantCluster.__resource__)
        team = await p.until(Team, HARBOUR, lambda each: each.status.cluster_count == 1)
        usage = team.status.resource_usage
        assert usage is not None
        assert (usage.total_nodes, usage.total_cpu, usage.total_memory, usage.total_storage) == (
            3,
            "12",
            "24Gi",
            "120Gi",
        )
        assert (usage.cluster_utilization, usage.memory_utilization, usage.cpu_utilization) == (50, 75, None)
        patch = MergePatch({"spec": {"workers": {"replicas": 5}}})
        await p.client.patch(TenantCluster.__resource__, Key("harbour", "a"), patch)
        team = await p.until(Team, HARBOUR, lambda each: each.status.quota_status == "Exceeded")
        assert team.status.quota_message == "40Gi of 32Gi memory"
        assert is_true(team.status.conditions, "QuotaExceeded")


async def test_a_namespace_of_others_is_not_taken() -> None:
    async with butler_plane(install, namespaces=("butler-system",)) as p:
        await p.client.create(butler("Namespace", "harbour") | {"apiVersion": "v1"}, kind=NAMESPACE)
        await p.client.create(butler("Team", "harbour", {}), kind=TEAM)
        team = await p.until(Team, HARBOUR, lambda each: reason(each) == "NamespaceTaken")
        assert team.status.phase == "Failed"
        label = {"metadata": {"labels": {"butler.butlerlabs.dev/team": "harbour"}}}
        await p.client.patch(NAMESPACE, HARBOUR, MergePatch(label))
        await p.until(Team, HARBOUR, ready)


async def test_a_team_with_clusters_stays_until_they_are_gone() -> None:
    async with butler_plane(install, namespaces=("butler-system",)) as p:
        await make_team(p, access={"users": [{"name": "ada"}]})
        cluster = butler("TenantCluster", "a", {}, namespace="harbour")
        await p.client.create(cluster, kind=TenantCluster.__resource__)
        await p.until(Team, HARBOUR, lambda each: each.status.cluster_count == 1)
        await p.client.delete(TEAM, HARBOUR)
        team = await p.until(Team, HARBOUR, lambda each: reason(each) == "ClustersExist")
        assert team.status.phase == "Terminating"
        await p.client.delete(TenantCluster.__resource__, Key("harbour", "a"))
        await p.gone(Team, HARBOUR)
        await p.gone(NAMESPACE, HARBOUR)
        assert not [name for name in await subjects(p, CLUSTER_ROLE_BINDING) if name.startswith("butler-team")]


async def test_the_settings_report_their_mode_and_counts() -> None:
    async with butler_plane(install, namespaces=("butler-system",)) as p:
        await make_team(p)
        spec = {"multiTenancy": {"mode": "Enforced"}, "defaultNamespace": "clusters"}
        await p.client.create(butler("ButlerConfig", "butler", spec), kind=ButlerConfig.__resource__)
        config = await p.until(ButlerConfig, Key("", "butler"), ready)
        assert (config.status.mode, config.status.team_count, config.status.cluster_count) == ("Enforced", 1, 0)
        await p.client.get(NAMESPACE, Key("", "clusters"))
        await p.client.create(butler("ButlerConfig", "other", {}), kind=ButlerConfig.__resource__)
        await p.until(ButlerConfig, Key("", "other"), lambda each: reason(each) == "NotRead")


async def test_a_namespace_that_is_gone_or_going_keeps_nobody_from_losing_access() -> None:
    async with butler_plane(install, namespaces=("butler-system",)) as p:
        await make_team(p, access={"users": [{"name": "ada", "role": "admin"}, {"name": "bob"}]})
        going = {"name": "b-going", "finalizers": ["example.com/hold"]}
        await p.have({"apiVersion": "v1", "kind": "Namespace", "metadata": going})
        await p.client.delete(NAMESPACE, Key("", "b-going"))
        for name, namespace in (("a", "a-gone"), ("b", "b-going")):
            await p.client.create(
                butler("TenantCluster", name, {}, namespace="harbour"), kind=TenantCluster.__resource__
            )
            status = MergePatch({"status": {"tenantNamespace": namespace}})
            await p.client.patch(TenantCluster, Key("harbour", name), status, subresource="status")
        await p.client.patch(TEAM, HARBOUR, MergePatch({"spec": {"access": {"users": [{"name": "bob"}]}}}))
        await p.gone(ROLE_BINDING, Key("harbour", "butler-team-admin"))
        await p.until(Team, HARBOUR, lambda team: ready(team) and team.status.member_count == 1)
