"""Team: its namespace, the access of its members, and what its clusters use."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from homeport.api.butler.v1alpha1 import ButlerConfig, Team, TenantCluster, User
from homeport.api.butler.v1alpha1.team import EnvironmentUsage, TeamUsage
from homeport.api.cluster.v1beta2 import Cluster, Machine
from homeport.api.meta import Resource
from homeport.client.absence import find_object
from homeport.client.protocol import Key, Query, Write
from homeport.platforms.butler.name import (
    ENVIRONMENT_LABEL,
    FIELD_MANAGER,
    MANAGED_BY,
    MANAGED_BY_LABEL,
    SOURCE_NAMESPACE_LABEL,
    TEAM_LABEL,
    USER_LABEL,
    finalizer,
)
from homeport.platforms.butler.normal.team import TeamModel, normal_team
from homeport.platforms.butler.normal.tenant import Defaults
from homeport.platforms.butler.reconciler import ButlerReconciler
from homeport.platforms.butler.team.apply import KINDS, keep
from homeport.platforms.butler.team.binding import cluster_roles, labels, team_objects
from homeport.platforms.butler.team.demand import Demand, as_bytes, total
from homeport.platforms.butler.team.existing import ExistingView
from homeport.platforms.butler.team.holding import as_held, describe_left_behind, hold, left_behind
from homeport.platforms.butler.team.member import resolve
from homeport.platforms.butler.team.quota import Held, shares
from homeport.platforms.butler.team.world import WorldView
from homeport.runtime.clock import rfc3339
from homeport.runtime.informer import metadata_only
from homeport.runtime.manager import Manager
from homeport.runtime.outcome import Wait
from homeport.runtime.reconciler import Phase, Scope

NAMESPACE = Resource("", "v1", "Namespace", "namespaces", namespaced=False)
WARNING_PERCENT = 80
OURS = f"{MANAGED_BY_LABEL}={MANAGED_BY}"
_LOOK_SECONDS = 300.0
_WRITE = Write(field_manager=FIELD_MANAGER)


class TeamScope(Scope[Team]):
    model: TeamModel


class TeamReconciler(ButlerReconciler[Team, TeamScope]):
    controller_name = "butler-team"
    kind = Team
    finalizer = finalizer("team")
    workers = 4

    def __init__(self, manager: Manager) -> None:
        super().__init__(manager)
        self._world = WorldView(manager)
        self._users = manager.informers.get(User).cache
        self._tenants = manager.informers.get(TenantCluster).cache
        self._existing = ExistingView(manager.informers)
        self._watch()

    def _watch(self) -> None:
        self.controller.map(TenantCluster, lambda tenant: [Key("", tenant.metadata.namespace)])
        self.controller.map(User, self.all_keys).map(ButlerConfig, self.all_keys)
        self.controller.map(
            Cluster, lambda obj: _present(obj.metadata.labels.get(SOURCE_NAMESPACE_LABEL)), predicate=_made_or_gone
        )
        self.controller.map(Machine, lambda obj: _present(self._existing.team_of(obj)), predicate=_made_or_gone)
        self.controller.map(metadata_only(NAMESPACE), _team_of, query=Query(labels=TEAM_LABEL))
        for kind in KINDS.values():  # access that was changed by hand is put right
            self.controller.map(metadata_only(kind), _team_of, query=Query(labels=OURS))

    def load(self, obj: Team) -> TeamScope:
        return TeamScope(obj)

    def phases(self, scope: TeamScope) -> Sequence[Phase[TeamScope]]:
        if scope.deleting:
            return [self._await_no_clusters, self._take_access, self.drop_finalizer]
        return [self.hold_finalizer, self._read, self._hold_namespace, self._count, self._give_access]

    # -- what is wanted ----------------------------------------------------------------------------------------

    async def _read(self, scope: TeamScope) -> Wait | None:
        status = scope.object.status
        status.observed_generation = scope.object.metadata.generation
        found = normal_team(scope.object)
        if found.model is None:
            status.phase = "Failed"
            return Wait("InvalidConfiguration", found.text, warning=True)
        scope.model = found.model
        return None

    async def _hold_namespace(self, scope: TeamScope) -> Wait | None:
        team, name = scope.object, scope.model.namespace
        there = await find_object(self.client, NAMESPACE, Key("", name))
        if there is not None and (there.metadata.get("labels") or {}).get(TEAM_LABEL) != name:
            scope.object.status.phase = "Failed"
            message = (
                f"namespace {name} exists and does not belong to the team: delete it, or label it {TEAM_LABEL}={name} "
                "if the team should have it and all that is in it"
            )
            self._report(scope, "NamespaceReady", False, "NamespaceTaken", message)
            return Wait("NamespaceTaken", message, warning=True)
        if there is not None and there.metadata.get("deletionTimestamp"):
            message = f"namespace {name} is being deleted: it is created again when it is gone"
            self._report(scope, "NamespaceReady", False, "NamespaceTerminating", message)
            return Wait("NamespaceTerminating", message)
        if there is None:
            owner = {
                "apiVersion": Team.__resource__.api_version,
                "kind": "Team",
                "name": name,
                "uid": team.metadata.uid,
            }
            body = {
                "apiVersion": "v1",
                "kind": "Namespace",
                "metadata": {"name": name, "labels": labels(name), "ownerReferences": [owner]},
            }
            await self.client.apply(body, _WRITE, kind=NAMESPACE, force=True)
        scope.object.status.namespace = name
        self._report(scope, "NamespaceReady", True, "NamespaceReady", f"namespace {name} belongs to the team")
        return None

    async def _give_access(self, scope: TeamScope) -> Wait | None:
        team = scope.model
        await keep(self.client, cluster_roles(), f"{OURS},!{TEAM_LABEL},!{USER_LABEL}", [KINDS["ClusterRole"]])
        members = resolve(team.members, self._users.list())
        mine = self._tenants.list(team.namespace)
        clusters = {each.metadata.name: _environment(each) for each in mine}
        namespaces = {each.metadata.name: each.status.tenant_namespace for each in mine if each.status.tenant_namespace}
        wanted = team_objects(team.name, members, clusters, namespaces)
        await keep(self.client, wanted, f"{OURS},{TEAM_LABEL}={team.name}")
        scope.object.status.member_count = len({(each.kind, each.name) for each in members})
        self._report(scope, "RBACReady", True, "RBACReady", "members have the access of their roles")
        scope.object.status.phase = "Ready"
        return None

    # -- what is used ------------------------------------------------------------------------------------------

    async def _count(self, scope: TeamScope) -> Wait | None:
        team, status, settings = scope.model, scope.object.status, self._world.look().settings
        limits, defaults = team.limits.under(settings.limits), Defaults(settings, team)
        tenants, existing = self._tenants.list(team.namespace), self._existing.of(team.namespace)
        left = left_behind(tenants, existing)
        held = [hold(each, existing, defaults, lambda tenant: "").both for each in tenants] + list(map(as_held, left))
        used = total(each.demand for each in held)
        status.cluster_count = len(held)
        found = {share.what: share for share in shares(limits, used)}
        status.resource_usage = _usage(used, {what: min(100, share.percent) for what, share in found.items()})
        status.environments = _environments(team, held)
        over = [share.text for share in found.values() if share.percent > 100]
        near = [share.text for share in found.values() if WARNING_PERCENT <= share.percent <= 100]
        status.quota_status = "Exceeded" if over else "Warning" if near else "OK"
        status.quota_message = "; ".join(filter(None, [*over, *near, describe_left_behind(left)]))
        text = status.quota_message or "no limit is nearly used"
        self._report(scope, "QuotaExceeded", bool(over), "QuotaExceeded" if over else "WithinQuota", text)
        return None

    # -- the end -----------------------------------------------------------------------------------------------

    async def _await_no_clusters(self, scope: TeamScope) -> Wait | None:
        scope.object.status.phase = "Terminating"
        team = scope.object.metadata.name
        tenants = self._tenants.list(team)
        names = sorted(each.metadata.name for each in tenants)
        if not names:
            left = describe_left_behind(left_behind(tenants, self._existing.of(team)))
            return Wait("ClustersExist", f"the team has {left}") if left else None
        text = f"the team has {len(names)} clusters ({', '.join(names[:5])}): delete them first"
        return Wait("ClustersExist", text)

    async def _take_access(self, scope: TeamScope) -> Wait | None:
        await keep(self.client, [], f"{OURS},{TEAM_LABEL}={scope.object.metadata.name}")
        return None

    def next_look(self, scope: TeamScope, wait: Wait | None) -> Wait | None:
        if wait is None and not scope.deleting:
            wait = Wait("Watching", "access is checked periodically", after=_LOOK_SECONDS, quiet=True)
        return super().next_look(scope, wait)

    def _report(self, scope: TeamScope, kind: str, true: bool, reason: str, message: str) -> None:
        scope.report(kind, "True" if true else "False", reason, message, rfc3339(self.clock.now()))


def _environment(tenant: TenantCluster) -> str:
    return tenant.metadata.labels.get(ENVIRONMENT_LABEL, "")


def _team_of(obj: Any) -> Iterable[Key]:
    return _present(obj.metadata.labels.get(TEAM_LABEL))


def _present(team: str | None) -> Iterable[Key]:
    return [Key("", team)] if team else []


def _made_or_gone(old: object, new: object) -> bool:
    return old is None or new is None


def _usage(used: Demand, percent: dict[str, int]) -> TeamUsage:
    return TeamUsage(
        clusters=used.clusters,
        total_nodes=used.nodes,
        total_cpu=str(used.cpu),
        total_memory=str(as_bytes(used.memory)),
        total_storage=str(as_bytes(used.storage)),
        cluster_utilization=percent.get("clusters"),
        node_utilization=percent.get("workers"),
        cpu_utilization=percent.get("CPUs"),
        memory_utilization=percent.get("memory"),
        storage_utilization=percent.get("disk space"),
    )


def _environments(team: TeamModel, held: Sequence[Held]) -> list[EnvironmentUsage]:
    return [
        EnvironmentUsage(name=name, clusters=sum(each.environment == name for each in held))
        for name in team.environments
    ]
