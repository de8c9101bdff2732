"""Applies the objects of a ClusterDeployment: the Cluster, and the storage driver with its credentials."""

from __future__ import annotations

from typing import Any

from homeport.api.addon.v1alpha1 import ClusterAddon
from homeport.api.cluster.v1beta2 import Cluster
from homeport.api.meta import wire
from homeport.client.errors import NotFound
from homeport.client.protocol import Client, Key
from homeport.platforms.k0rdent.cluster.config import ClusterConfig
from homeport.platforms.k0rdent.cluster.vendor import Access
from homeport.platforms.k0rdent.deployment.access import CONFIG_MAP
from homeport.platforms.k0rdent.deployment.manager import (
    brings_driver,
    chart_namespace,
    manager_name,
    render_manager,
)
from homeport.platforms.k0rdent.deployment.render import (
    credentials_name,
    csi_name,
    diff,
    local_secret,
    network_name,
    render_cluster,
    render_credentials,
    render_csi,
    render_network,
)
from homeport.platforms.k0rdent.deployment.scope import DeploymentScope
from homeport.platforms.k0rdent.management.credential import SECRET
from homeport.platforms.k0rdent.name import SYSTEM_NAMESPACE
from homeport.platforms.k0rdent.setting.find import Settings
from homeport.platforms.k0rdent.setting.render import render_settings
from homeport.runtime.applier import Applier

Json = dict[str, Any]


class Composition:
    def __init__(self, client: Client, applier: Applier) -> None:
        self._client = client
        self._applier = applier

    def forget(self, key: Key) -> None:
        self._applier.forget(key)

    def diff(self, scope: DeploymentScope, config: ClusterConfig, access: Access) -> str:
        cluster = scope.near.cluster
        before = (
            None if cluster is None else {**wire(cluster), "kind": "Cluster", "apiVersion": "cluster.x-k8s.io/v1beta2"}
        )
        return diff(before, render_cluster(scope.object, config, access))

    async def hold_cluster(self, scope: DeploymentScope, config: ClusterConfig, access: Access) -> bool:
        """Whether the cache shows what was applied."""
        body = render_cluster(scope.object, config, access)
        kind = Cluster.__resource__
        return await self._applier.hold(scope.key, body, kind, cached=scope.near.cluster, watched=True)

    async def hold_settings(self, scope: DeploymentScope, settings: Settings) -> None:
        """Before the Cluster: Pods that mount a Secret wait for it."""
        kinds = {"Secret": SECRET, "ConfigMap": CONFIG_MAP}
        for body in render_settings(scope.object, settings):
            await self._applier.hold(scope.key, body, kinds[body["kind"]])

    async def hold_services(self, scope: DeploymentScope, config: ClusterConfig, access: Access) -> list[str]:
        """Names of the ClusterAddons that the cluster has."""
        return [
            *await self._hold_network(scope, config),
            *await self._hold_csi(scope, config, access),
            *await self._hold_manager(scope, config, access),
        ]

    async def _hold_network(self, scope: DeploymentScope, config: ClusterConfig) -> list[str]:
        if not config.network_addon:
            return []
        await self._hold_addon(scope, render_network(scope.object, config))
        return [network_name(scope.name, config)]

    async def _hold_addon(self, scope: DeploymentScope, body: Json) -> None:
        name = body["metadata"]["name"]
        cached = next((each for each in scope.near.addons if each.metadata.name == name), None)
        await self._applier.hold(scope.key, body, ClusterAddon.__resource__, cached=cached, watched=True)

    async def _hold_manager(self, scope: DeploymentScope, config: ClusterConfig, access: Access) -> list[str]:
        """Credentials of a cloud controller manager that the values install."""
        name, namespace = manager_name(scope.name), chart_namespace(config)
        how = local_secret(access.secret, scope.namespace, SYSTEM_NAMESPACE)
        if not namespace or scope.object.spec.propagate_credentials is False or not how:
            await self._drop(scope, name)
            return []
        source = await self._client.get(SECRET, access.secret)
        secret, addon = render_manager(scope.object, config, access, source.get("data") or {}, namespace)
        await self._applier.hold(scope.key, secret, SECRET)
        await self._hold_addon(scope, addon)
        return [name]

    async def _hold_csi(self, scope: DeploymentScope, config: ClusterConfig, access: Access) -> list[str]:
        deployment = scope.object
        name = csi_name(scope.name, config)
        how = local_secret(access.secret, scope.namespace, SYSTEM_NAMESPACE)
        unwanted = not config.csi or brings_driver(config)
        if unwanted or deployment.spec.propagate_credentials is False or not how:
            await self._drop(scope, name)
            return []
        secret = access.secret.name
        if how == "copy":
            secret = credentials_name(scope.name, config)
            source = await self._client.get(SECRET, access.secret)
            body = render_credentials(deployment, config, source.get("data") or {})
            await self._applier.hold(scope.key, body, SECRET)
        await self._hold_addon(scope, render_csi(deployment, config, secret))
        return [name]

    async def _drop(self, scope: DeploymentScope, name: str) -> None:
        found = next((each for each in scope.near.addons if each.metadata.name == name), None)
        if found is None or found.metadata.deletion_timestamp:
            return
        if any(ref.uid == scope.object.metadata.uid for ref in found.metadata.owner_references):
            try:
                await self._client.delete(ClusterAddon, Key(scope.namespace, name), uid=found.metadata.uid)
            except NotFound:
                return
