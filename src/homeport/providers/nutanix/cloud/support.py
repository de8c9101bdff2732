"""How workload clusters on Nutanix get their cloud controller manager."""

from __future__ import annotations

from homeport.api.nutanix.v1beta1 import NutanixCluster
from homeport.capi.cloud import CloudConfig, CloudFile, CloudRequest, CloudSupport, Sources
from homeport.client.dial import DIRECT, DialOptions
from homeport.client.protocol import Client, Key
from homeport.machinery.address import is_address
from homeport.providers.nutanix.cloud import config as cloudconfig
from homeport.providers.nutanix.cloud.instance import NutanixCloud
from homeport.providers.nutanix.connection import Connector
from homeport.runtime.clock import Clock


class Configurator:
    """Renders nutanix_config.json from a NutanixCluster and what it refers to."""

    def __init__(self, client: Client, clock: Clock) -> None:
        self._connector = Connector(client, clock, DIRECT)  # only reads objects: nothing is dialled

    def sources(self, infra: NutanixCluster) -> Sources:
        return self._connector.sources(infra)

    async def render(self, infra: NutanixCluster, request: CloudRequest) -> CloudConfig:
        target, credentials, bundle = await self._connector.material(infra)
        host = request.cluster.spec.control_plane_endpoint.host or infra.spec.control_plane_endpoint.host
        place = Key(request.namespace, request.secret) if request.secret else target.secret
        text = cloudconfig.render_config(
            target,
            bundle,
            secret=place.name,
            namespace=place.namespace,
            ignored=[host] if is_address(host) else [],
            pools=request.pools,
        )
        given = {"credentials": cloudconfig.render_credentials(credentials)} if request.secret else {}
        return CloudConfig(cloudconfig.FILE, text, given)


def parse(text: str, namespace: str) -> CloudFile:
    config = cloudconfig.parse_config(text, namespace)

    def open_cloud(client: Client, clock: Clock, dial: DialOptions) -> NutanixCloud:
        return NutanixCloud(config, Connector(client, clock, dial), clock)

    return CloudFile(open_cloud, config.pools)


CLOUD = CloudSupport("nutanix", cloudconfig.FILE, NutanixCluster, parse, Configurator)
