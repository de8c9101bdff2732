"""What a cluster made outside of itself, removed before it goes: load balancers of Services, and disks of volumes.

Controllers inside of the cluster remove them, so that it must still run. A cluster that does not answer is waited for,
but not forever: then its ClusterDeployment says that something may be left.
"""

from __future__ import annotations

from collections.abc import Sequence

from homeport.api.cluster.v1beta2 import Cluster
from homeport.api.meta import Resource, Unstructured
from homeport.capi.remote.remotes import Remotes
from homeport.client.errors import ApiError, Conflict, NotFound
from homeport.client.protocol import Client, Key, Query
from homeport.platforms.k0rdent.deployment.scope import DeploymentScope
from homeport.platforms.k0rdent.deployment.state import CLOUD, FAILED, Finding, good
from homeport.runtime.clock import Clock, parse_time

SERVICE = Resource("", "v1", "Service", "services")
VOLUME_CLAIM = Resource("", "v1", "PersistentVolumeClaim", "persistentvolumeclaims")
REASON = "WaitingForCloudResourcesDeletion"
_PATIENCE_SECONDS = 600.0
_SHOWN = 3


class Cleanup:
    def __init__(self, remotes: Remotes, clock: Clock) -> None:
        self._remotes = remotes
        self._clock = clock

    async def run(self, scope: DeploymentScope, cluster: Cluster) -> Finding:
        """The condition that reports on it; not good as long as the cluster should stay."""
        remote = self._remotes.get(Key(cluster.metadata.namespace, cluster.metadata.name))
        if remote is None:
            key = Key(cluster.metadata.namespace, cluster.metadata.name)
            return self._waits(scope, f"the cluster can't be asked: {self._remotes.why(key)}")
        try:
            left = await _remove(remote.client)
        except ApiError as error:
            return self._waits(scope, f"the cluster can't be asked: {error}")
        if not left:
            return good(CLOUD, "no load balancers and no volumes are left")
        more = f" and {len(left) - _SHOWN} more" if len(left) > _SHOWN else ""
        return self._waits(scope, f"waiting for the deletion of {', '.join(left[:_SHOWN])}{more} in the cluster")

    def _waits(self, scope: DeploymentScope, why: str) -> Finding:
        began = scope.object.metadata.deletion_timestamp
        since = parse_time(began) if began else self._clock.now()
        if self._clock.now() - since < _PATIENCE_SECONDS:
            return Finding(CLOUD, "False", REASON, why)
        text = f"{why}; the cluster is deleted anyway, so load balancers and disks may be left"
        return Finding(CLOUD, "False", FAILED, text, error=True)


async def _remove(client: Client) -> list[str]:
    """What is left."""
    services = [
        each
        for each in (await client.list(SERVICE, Query())).items
        if (each.get("spec") or {}).get("type") == "LoadBalancer"
    ]
    claims = (await client.list(VOLUME_CLAIM, Query())).items
    for kind, found in ((SERVICE, services), (VOLUME_CLAIM, claims)):
        await _delete(client, kind, found)
    return [
        f"{kind} {each.namespace}/{each.name}"
        for kind, found in (("Service", services), ("PersistentVolumeClaim", claims))
        for each in found
    ]


async def _delete(client: Client, kind: Resource, found: Sequence[Unstructured]) -> None:
    for each in found:
        if each.metadata.get("deletionTimestamp"):
            continue
        try:
            await client.delete(kind, Key(each.namespace, each.name), uid=each.uid)
        except (NotFound, Conflict):
            continue
