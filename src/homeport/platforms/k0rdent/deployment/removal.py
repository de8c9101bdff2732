"""A ClusterDeployment goes: first what is installed in its cluster, then the Cluster with all machines.

Objects of users - the Secret, the ConfigMap, the Credential - are never touched.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from homeport.api.addon.v1alpha1 import ClusterAddon
from homeport.api.cluster.v1beta2 import Cluster
from homeport.api.k0rdent.v1beta1 import ServiceSet
from homeport.client.absence import drop_object
from homeport.client.protocol import Client, Key, Query
from homeport.helm.errors import HelmError
from homeport.machinery import condition
from homeport.platforms.k0rdent.deployment.cleanup import REASON, Cleanup
from homeport.platforms.k0rdent.deployment.neighbour import owns
from homeport.platforms.k0rdent.deployment.own import OwnTemplates
from homeport.platforms.k0rdent.deployment.scope import DeploymentScope
from homeport.platforms.k0rdent.deployment.state import DELETING, Finding
from homeport.platforms.k0rdent.name import RELEASE_NAME_LABEL
from homeport.runtime.cache import Cache
from homeport.runtime.clock import Clock, parse_time, rfc3339
from homeport.runtime.informers import Informers
from homeport.runtime.outcome import Wait

_LOOK_SECONDS = 5.0
_SHOWN = 5
_SERVICE_SECONDS = 120.0  # how long a cluster stays for its services to be removed
SETS = "WaitingForServiceSetsDeletion"


@dataclass(frozen=True, slots=True)
class Caches:
    """What belongs to ClusterDeployments. The API, whose lists grow with every cluster, is asked for the rest."""

    clusters: Cache[Cluster]
    sets: Cache[ServiceSet]
    addons: Cache[ClusterAddon]

    @classmethod
    def of(cls, informers: Informers) -> Caches:
        return cls(informers.get(Cluster).cache, informers.get(ServiceSet).cache, informers.get(ClusterAddon).cache)


class Removal:
    def __init__(
        self, client: Client, clock: Clock, own: OwnTemplates, cleanup: Cleanup, caches: Caches | None = None
    ) -> None:
        self._cleanup = cleanup
        self._client = client
        self._caches = caches or Caches(Cache(), Cache(), Cache())
        self._clock = clock
        self._own = own

    async def drop_sets(self, scope: DeploymentScope) -> Wait | None:
        """Services are removed while the cluster still runs: they may have disks and load balancers elsewhere.

        A cluster that does not answer is not waited for: its services go with it.
        """
        sets = await self._sets(scope)
        for each in sets:
            if not each.metadata.deletion_timestamp:
                await self._delete(ServiceSet, each)
        clusters = await self._clusters(scope)
        left = self._patience(scope)
        if not sets or not clusters or clusters[0].metadata.deletion_timestamp or left <= 0:
            return None
        return self._waits(scope, SETS, _progress(sets), after=min(left, _LOOK_SECONDS))

    async def await_sets(self, scope: DeploymentScope) -> Wait | None:
        sets = await self._sets(scope)
        return self._waits(scope, SETS, _progress(sets)) if sets else None

    async def _sets(self, scope: DeploymentScope) -> list[ServiceSet]:
        """Those that were made for this cluster; a ServiceSet that a user wrote is left alone."""
        cached = [each for each in self._caches.sets.list(scope.namespace) if _is_for(scope, each)]
        if cached or self._known(scope):
            return cached
        found = (await self._client.list(ServiceSet, Query(namespace=scope.namespace))).items
        return [each for each in found if _is_for(scope, each)]

    def _patience(self, scope: DeploymentScope) -> float:
        """Seconds that services still have."""
        began = scope.object.metadata.deletion_timestamp
        return (parse_time(began) if began else self._clock.now()) + _SERVICE_SECONDS - self._clock.now()

    async def drop_services(self, scope: DeploymentScope) -> Wait | None:
        """Add-ons go with their cluster: nothing is uninstalled from machines that are about to be deleted."""
        ours = await self._addons(scope)
        for each in ours:
            if not each.metadata.deletion_timestamp:
                await self._delete(ClusterAddon, each)
        if ours and not await self._clusters(scope):
            return self._waits(scope, SETS, f"{len(ours)} add-ons are being removed")
        return None

    async def drop_cloud_resources(self, scope: DeploymentScope) -> Wait | None:
        clusters = [each for each in await self._clusters(scope) if not each.metadata.deletion_timestamp]
        if not scope.object.spec.cleanup_on_deletion or not clusters:
            return None
        found = await self._cleanup.run(scope, clusters[0])
        scope.note(found, self._now())
        return self._waits(scope, REASON, found.message) if found.reason == REASON else None

    async def drop_cluster(self, scope: DeploymentScope) -> Wait | None:
        """The Cluster goes before everything else of a chart: its machines need templates and credentials to go."""
        clusters = await self._clusters(scope)
        if not clusters:
            return None
        cluster = clusters[0]
        name = f"Cluster {scope.namespace}/{cluster.metadata.name}"
        fresh = [each for each in clusters if not each.metadata.deletion_timestamp]
        for each in fresh:
            await self._delete(Cluster, each)
        if fresh:
            return self._waits(scope, "WaitingForHelmReleaseDeletion", f"{name} is being deleted")
        found = condition.find(cluster.status.conditions, "Deleting") or {}
        why = " ".join(str(found.get("message") or "").split())
        text = f"{name} is being deleted" + (f": {why}" if why else "")
        return self._waits(scope, "WaitingForClusterDeletion", text)

    async def drop_release(self, scope: DeploymentScope) -> Wait | None:
        try:
            wait = await self._own.drop_release(scope)
        except HelmError as error:
            wait = Wait("Failed", str(error), after=60.0, warning=True)
        if wait is None:
            return None
        return self._waits(scope, "WaitingForHelmReleaseDeletion", wait.message)

    async def finish(self, scope: DeploymentScope) -> Wait | None:
        scope.note(Finding(DELETING, "True", "DeletionCompleted", "everything is deleted"), self._now())
        return None

    def _waits(self, scope: DeploymentScope, reason: str, message: str, after: float = _LOOK_SECONDS) -> Wait:
        scope.note(Finding(DELETING, "True", reason, message), self._now())
        return Wait("Deleting", message, after=after)

    def _now(self) -> str:
        return rfc3339(self._clock.now())

    async def _clusters(self, scope: DeploymentScope) -> list[Cluster]:
        """That belong to the ClusterDeployment. A cache may be late: absence is observed at the API."""
        if cached := self._known(scope):
            return cached
        found = (await self._client.list(Cluster, Query(namespace=scope.namespace))).items
        return [each for each in found if owns(scope.object, each)]

    def _known(self, scope: DeploymentScope) -> list[Cluster]:
        return [each for each in self._caches.clusters.list(scope.namespace) if owns(scope.object, each)]

    async def _addons(self, scope: DeploymentScope) -> list[ClusterAddon]:
        cached = [each for each in self._caches.addons.list(scope.namespace) if _is_own(scope, each)]
        if cached or self._known(scope):
            return cached
        query = Query(namespace=scope.namespace, labels=f"{RELEASE_NAME_LABEL}={scope.name}")
        return [each for each in (await self._client.list(ClusterAddon, query)).items if _is_own(scope, each)]

    async def _delete(self, kind: Any, obj: Any) -> None:
        key = Key(obj.metadata.namespace, obj.metadata.name)
        await drop_object(self._client, kind, key, uid=obj.metadata.uid)


def _is_own(scope: DeploymentScope, addon: ClusterAddon) -> bool:
    labelled = addon.metadata.labels.get(RELEASE_NAME_LABEL) == scope.name
    return labelled and any(ref.uid == scope.object.metadata.uid for ref in addon.metadata.owner_references)


def _is_for(scope: DeploymentScope, found: ServiceSet) -> bool:
    return found.spec.cluster == scope.name and any(
        ref.uid == scope.object.metadata.uid or ref.kind == "MultiClusterService"
        for ref in found.metadata.owner_references
    )


def _progress(sets: Sequence[ServiceSet]) -> str:
    """What is being removed, and what holds it up."""
    said = [
        f"{one.namespace}/{one.name}: {' '.join(one.failure_message.split()) or one.state}"
        for each in sets
        for one in each.status.services
    ]
    names = ", ".join(each.metadata.name for each in sets)
    return f"ServiceSets are being deleted: {names}" + (f" ({'; '.join(said[:_SHOWN])})" if said else "")
