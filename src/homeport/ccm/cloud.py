"""A component's cloud with the means to configure it for one workload cluster, there or here."""

from __future__ import annotations

from typing import Any

from homeport.api.cluster.v1beta2 import Cluster
from homeport.capi.cloud import CloudRequest, CloudSupport
from homeport.ccm.host import Hosted
from homeport.ccm.manifest import NAMESPACE, SECRET_NAME, Settings
from homeport.ccm.service import parse_pools
from homeport.client.dial import DialOptions
from homeport.runtime.manager import Manager

POOL = "ccm.homeport.dev/address-pool"  # addresses for Services of type LoadBalancer: FIRST-LAST or CIDR, by commas


class ConfiguredCloud:
    """A component's cloud with the means to configure it on this manager."""

    def __init__(self, manager: Manager, support: CloudSupport, dial: DialOptions) -> None:
        self.kind = support.kind
        self._name = support.name
        self._support = support
        self._manager = manager
        self._dial = dial
        self._configurator = support.configurator(manager.client, manager.clock)
        self.sources = self._configurator.sources

    async def settings(self, infra: Any, cluster: Cluster) -> Settings:
        """Raises ProviderError."""
        pools = pools_of(cluster)
        parse_pools(pools)
        request = CloudRequest(cluster, NAMESPACE, SECRET_NAME, pools)
        config = await self._configurator.render(infra, request)
        services = bool(pools) or config.balances
        return Settings(self._name, config.file, config.text, config.secret, services=services)

    async def hosted(self, infra: Any, cluster: Cluster) -> Hosted:
        """Raises ProviderError."""
        request = CloudRequest(cluster, pools=pools_of(cluster))
        config = await self._configurator.render(infra, request)
        file = self._support.parse(config.text, cluster.metadata.namespace)
        client, clock, dial = self._manager.client, self._manager.clock, self._dial
        return Hosted(config.text, lambda: file.open(client, clock, dial), parse_pools(file.pools))


def pools_of(cluster: Cluster) -> dict[str, str]:
    ranges = cluster.metadata.annotations.get(POOL, "")
    return {"default": ranges} if ranges else {}
