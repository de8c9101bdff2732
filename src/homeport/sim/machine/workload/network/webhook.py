"""How the API server of a simulated cluster reaches webhooks: from a control plane, over the simulated network."""

from __future__ import annotations

import errno
from typing import TYPE_CHECKING

from homeport.apiserver.webhook.endpoint import Address
from homeport.sim.network import Proxy

if TYPE_CHECKING:
    from homeport.sim.machine.workload.cluster import WorkloadCluster


class WebhookRoute:
    """Started with the first webhook that is called. `close` it with the cluster."""

    def __init__(self, cluster: WorkloadCluster) -> None:
        self._cluster = cluster
        self._proxy: Proxy | None = None

    async def reach(self, endpoint: Address) -> str:
        """The URL of a proxy that leads to the endpoint. Raises OSError as connecting would."""
        pods = self._cluster.pods
        source = next((plane.guest.host.name for plane in self._cluster.serving()), None)
        if source is None:
            raise OSError(errno.ENETUNREACH, "network is unreachable: no control plane runs")
        await pods.locate(source, endpoint.host, endpoint.port)
        if self._proxy is None:
            self._proxy = Proxy(pods)
            await self._proxy.start()
        return self._proxy.url(source)

    async def close(self) -> None:
        if self._proxy is not None:
            await self._proxy.close()
