"""Access of a team's members in its clusters themselves."""

from __future__ import annotations

from collections.abc import Sequence

from homeport.api.butler.v1alpha1 import ButlerConfig, Team, TenantCluster, User
from homeport.capi.capi import Capi
from homeport.client.errors import ApiError
from homeport.client.protocol import Key
from homeport.platforms.butler.name import ENVIRONMENT_LABEL, TEAM_LABEL
from homeport.platforms.butler.normal.team import normal_team
from homeport.platforms.butler.reconciler import ButlerReconciler
from homeport.platforms.butler.team.apply import keep
from homeport.platforms.butler.team.binding import tenant_cluster_objects
from homeport.platforms.butler.team.member import resolve
from homeport.platforms.butler.team.role import CLUSTER_ROLE_BINDING
from homeport.platforms.butler.team.tenancy import find_team
from homeport.platforms.butler.team.world import WorldView
from homeport.platforms.butler.tenant.shard import tenant_shard
from homeport.runtime.cache import key_of
from homeport.runtime.outcome import Wait
from homeport.runtime.reconciler import Phase, Scope

_RETRY_SECONDS = 30.0
_LOOK_SECONDS = 300.0


class AccessReconciler(ButlerReconciler[TenantCluster, Scope[TenantCluster]]):
    """Writes into tenant clusters alone: the TenantCluster and its status belong to its own controller."""

    controller_name = "butler-access"
    kind = TenantCluster
    condition = ""
    waits_are_events = False
    workers = 4
    status_wakes = True

    def __init__(self, capi: Capi) -> None:
        super().__init__(capi.manager)
        self._remotes = capi.remotes
        self._world = WorldView(capi.manager)
        self._users = capi.manager.informers.get(User).cache
        self.objects.add_index(_NAMESPACE_INDEX, lambda tenant: [tenant.status.tenant_namespace])

        self.controller.map(User, self.all_keys).map(ButlerConfig, self.all_keys)
        self.controller.map(Team, lambda team: [key_of(each) for each in self.objects.list(team.metadata.name)])
        capi.remotes.follow(self._connection_changed)

    def shard_of(self, key: Key, obj: TenantCluster | None) -> str | None:
        return tenant_shard(obj)

    def _connection_changed(self, cluster: Key) -> None:
        for each in self.objects.by(_NAMESPACE_INDEX, cluster.namespace):
            self.controller.wake(key_of(each))

    def load(self, obj: TenantCluster) -> Scope[TenantCluster] | None:
        return None if obj.metadata.deletion_timestamp or not obj.status.tenant_namespace else Scope(obj)

    def pause(self, scope: Scope[TenantCluster]) -> bool:
        return super().pause(scope) or scope.object.spec.paused

    def phases(self, scope: Scope[TenantCluster]) -> Sequence[Phase[Scope[TenantCluster]]]:
        return [self._give_access]

    async def _give_access(self, scope: Scope[TenantCluster]) -> Wait | None:
        tenant = scope.object
        remote = self._remotes.get(Key(tenant.status.tenant_namespace, tenant.metadata.name))
        if remote is None:
            return None  # the connection wakes us
        world = self._world.look()
        found, _ = find_team(tenant, world.settings.mode, world.teams)
        model = normal_team(found).model if found is not None else None
        members = resolve(model.members, self._users.list()) if model else []
        wanted = tenant_cluster_objects(members, tenant.metadata.labels.get(ENVIRONMENT_LABEL, ""))
        for each in wanted:
            each["metadata"]["labels"][TEAM_LABEL] = tenant.metadata.namespace
        try:
            await keep(remote.client, wanted, TEAM_LABEL, (CLUSTER_ROLE_BINDING,))
        except ApiError as error:
            return Wait("AccessNotWritten", f"access of the team: {error}", after=_RETRY_SECONDS, quiet=True)
        return Wait("Watching", "access is checked periodically", after=_LOOK_SECONDS, quiet=True)


_NAMESPACE_INDEX = "butler.tenant-namespace"
