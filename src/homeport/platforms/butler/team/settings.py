"""ButlerConfig and ClusterCreationPolicy: whether they are read, and what the platform has."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence

from homeport.api.butler.v1alpha1 import ButlerConfig, ClusterCreationPolicy, Team, TenantCluster
from homeport.api.meta import Unstructured
from homeport.client.errors import AlreadyExists
from homeport.client.protocol import Key
from homeport.platforms.butler.name import CONFIG_NAME
from homeport.platforms.butler.normal.config import normal_butler_config
from homeport.platforms.butler.normal.policy import normal_cluster_creation_policy
from homeport.platforms.butler.reconciler import ButlerReconciler
from homeport.platforms.butler.team.reconciler import NAMESPACE
from homeport.runtime.manager import Manager
from homeport.runtime.outcome import Wait
from homeport.runtime.reconciler import Phase, Scope


class ConfigReconciler(ButlerReconciler[ButlerConfig, Scope[ButlerConfig]]):
    controller_name = "butler-config"
    kind = ButlerConfig
    workers = 1

    def __init__(self, manager: Manager) -> None:
        super().__init__(manager)
        self._teams = manager.informers.get(Team).cache
        self._tenants = manager.informers.get(TenantCluster).cache
        for kind in (Team, TenantCluster):
            self.controller.map(kind, lambda obj: [Key("", CONFIG_NAME)], predicate=_comes_or_goes)

    def load(self, obj: ButlerConfig) -> Scope[ButlerConfig]:
        return Scope(obj)

    def phases(self, scope: Scope[ButlerConfig]) -> Sequence[Phase[Scope[ButlerConfig]]]:
        return [] if scope.deleting else [self._read]

    async def _read(self, scope: Scope[ButlerConfig]) -> Wait | None:
        status, config = scope.object.status, scope.object
        status.observed_generation = config.metadata.generation
        if config.metadata.name != CONFIG_NAME:
            return Wait("NotRead", f"only the ButlerConfig with the name {CONFIG_NAME} is read", quiet=True)
        status.team_count, status.cluster_count = len(self._teams), len(self._tenants)
        found = normal_butler_config(config)
        if found.model is None:
            return Wait("InvalidConfiguration", f"{found.text}; until then built-in settings apply", warning=True)
        status.mode = found.model.mode
        status.control_plane_exposure_mode = found.model.exposure.mode or "LoadBalancer"
        body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": found.model.namespace}}
        with contextlib.suppress(AlreadyExists):
            await self.client.create(Unstructured(body), self._write, kind=NAMESPACE)
        return None


def _comes_or_goes(old: object, new: object) -> bool:
    return old is None or new is None


class PolicyReconciler(ButlerReconciler[ClusterCreationPolicy, Scope[ClusterCreationPolicy]]):
    controller_name = "butler-clustercreationpolicy"
    kind = ClusterCreationPolicy
    workers = 1

    def __init__(self, manager: Manager) -> None:
        super().__init__(manager)
        self._teams = manager.informers.get(Team).cache
        self.controller.map(Team, self.all_keys)

    def load(self, obj: ClusterCreationPolicy) -> Scope[ClusterCreationPolicy]:
        return Scope(obj)

    def phases(self, scope: Scope[ClusterCreationPolicy]) -> Sequence[Phase[Scope[ClusterCreationPolicy]]]:
        return [] if scope.deleting else [self._read]

    async def _read(self, scope: Scope[ClusterCreationPolicy]) -> Wait | None:
        scope.object.status.observed_generation = scope.object.metadata.generation
        found = normal_cluster_creation_policy(scope.object)
        if found.model is None:
            return Wait("InvalidConfiguration", found.text, warning=True)
        team = self._teams.get(Key("", found.model.team)) if found.model.team else None
        if found.model.team and team is None:
            return Wait("TeamNotFound", f'Team "{found.model.team}" not found: the policy applies to no cluster')
        environment = found.model.environment
        if team is not None and environment and environment not in {each.name for each in team.spec.environments}:
            message = f'team {found.model.team} has no environment "{environment}": the policy applies to no cluster'
            return Wait("EnvironmentNotFound", message)
        return None
