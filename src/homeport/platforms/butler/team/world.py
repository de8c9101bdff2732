"""The objects that have a say about clusters and teams, from the caches of a manager."""

from __future__ import annotations

from homeport.api.butler.v1alpha1 import (
    ButlerConfig,
    ClusterCreationPolicy,
    NetworkPool,
    ProviderConfig,
    Team,
    TenantCluster,
)
from homeport.client.protocol import Key
from homeport.platforms.butler.name import CONFIG_NAME
from homeport.platforms.butler.team.existing import ExistingView
from homeport.platforms.butler.team.verdict import World
from homeport.runtime.manager import Manager


class WorldView:
    """Caches that are shared with all controllers of the manager."""

    def __init__(self, manager: Manager) -> None:
        informers = manager.informers
        self._configs = informers.get(ButlerConfig).cache
        self._teams = informers.get(Team).cache
        self._tenants = informers.get(TenantCluster).cache
        self._providers = informers.get(ProviderConfig).cache
        self._policies = informers.get(ClusterCreationPolicy).cache
        self._pools = informers.get(NetworkPool).cache
        self._existing = ExistingView(informers)

    def look(self) -> World:
        return World(
            config=self._configs.get(Key("", CONFIG_NAME)),
            teams=self._teams.list(),
            tenants=self._tenants.list(),
            providers=self._providers.list(),
            policies=self._policies.list(),
            pools=self._pools.list(),
            existing=self._existing.of,
        )
