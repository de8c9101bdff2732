"""The ServiceSet of a cluster, made and kept by what the services are written in: a ClusterDeployment, or a
MultiClusterService."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from homeport.api.k0rdent.v1beta1 import (
    ClusterDeployment,
    MultiClusterService,
    ServiceSet,
    ServiceTemplate,
    ServiceTemplateChain,
)
from homeport.api.k0rdent.v1beta1.service import ServiceSpec, ServiceState
from homeport.api.meta import wire
from homeport.capi.name import CLUSTER_NAME_LABEL
from homeport.capi.object.ownership import owner_reference
from homeport.client.errors import NotFound
from homeport.client.protocol import Client, Key
from homeport.platforms.k0rdent.name import COMPONENT, COMPONENT_LABEL, MANAGED
from homeport.platforms.k0rdent.service.name import set_key
from homeport.platforms.k0rdent.service.plan import Plan, Shelf, place_of, plan
from homeport.platforms.k0rdent.service.settings import provider_config
from homeport.runtime.applier import Applier
from homeport.runtime.cache import Cache
from homeport.runtime.informers import Informers

Json = dict[str, Any]
Owner = ClusterDeployment | MultiClusterService


class SetHolder:
    def __init__(self, client: Client, informers: Informers, applier: Applier) -> None:
        self._client = client
        self._applier = applier
        self.sets: Cache[ServiceSet] = informers.get(ServiceSet).cache
        self._templates = informers.get(ServiceTemplate).cache
        self._chains = informers.get(ServiceTemplateChain).cache

    def shelf(self, namespace: str) -> Shelf:
        return Shelf(
            {each.metadata.name: each for each in self._templates.list(namespace)},
            {each.metadata.name: each for each in self._chains.list(namespace)},
        )

    def plan(self, spec: ServiceSpec, key: Key, shelf: Shelf, now: str) -> Plan:
        return plan(spec.services, self.sets.get(key), shelf, now)

    async def hold(self, owner: Owner, cluster: Key, spec: ServiceSpec, made: Plan, memory: Key) -> None:
        """The ServiceSet as planned; none if there are no services. `memory`: whose loop this is."""
        multi = owner.metadata.name if isinstance(owner, MultiClusterService) else ""
        key = set_key(cluster.namespace, cluster.name, multi)
        held = self.sets.get(key)
        if held is not None and not is_owned(held, owner):
            return
        if not spec.services:
            await self.drop(held)
            return
        if held is None and not made.services:
            return
        body = render_set(owner, cluster, spec, made)
        await self._applier.hold(memory, body, ServiceSet.__resource__, cached=held, watched=True)

    async def drop(self, held: ServiceSet | None) -> None:
        if held is None or held.metadata.deletion_timestamp:
            return
        try:
            key = Key(held.metadata.namespace, held.metadata.name)
            await self._client.delete(ServiceSet, key, uid=held.metadata.uid)
        except NotFound:
            return


def is_owned(held: ServiceSet, owner: Owner) -> bool:
    return any(ref.uid == owner.metadata.uid for ref in held.metadata.owner_references)


def render_set(owner: Owner, cluster: Key, spec: ServiceSpec, made: Plan) -> Json:
    multi = owner.metadata.name if isinstance(owner, MultiClusterService) else ""
    key = set_key(cluster.namespace, cluster.name, multi)
    at = ServiceSet.__resource__
    provider = {**wire(spec.provider), "config": provider_config(spec)}
    return {
        **at.type_meta,
        "metadata": {
            "name": key.name,
            "namespace": key.namespace,
            "labels": {**MANAGED, COMPONENT_LABEL: COMPONENT, CLUSTER_NAME_LABEL: cluster.name},
            "ownerReferences": [owner_reference(owner, controller=True)],
        },
        "spec": {
            "cluster": cluster.name,
            **({"multiClusterService": multi} if multi else {}),
            "provider": provider,
            "services": [wire(each) for each in made.services],
        },
    }


def states_of(held: ServiceSet | None, made: Plan, now: str) -> list[ServiceState]:
    """Of all services: those of the ServiceSet, as far as it reports on them, and those that wait."""
    reported = list(held.status.services) if held is not None else []
    known = {place_of(each) for each in reported}
    fresh = [
        ServiceState(
            type="Helm",
            name=each.name,
            namespace=each.namespace,
            template=each.template,
            state="Pending",
            last_state_transition_time=now,
        )
        for each in made.services
        if place_of(each) not in known
    ]
    return [*reported, *fresh, *(each for each in made.pending if place_of(each) not in known)]


def current(held: ServiceSet | None, made: Plan) -> bool:
    """Whether the ServiceSet in the cache is the one that was planned, and reports on that."""
    if held is None:
        return not made.services
    planned = [wire(each) for each in made.services]
    return [wire(each) for each in held.spec.services] == planned and (
        held.status.observed_generation == held.metadata.generation
    )


def of_cluster(sets: Iterable[ServiceSet], cluster: Key) -> list[ServiceSet]:
    return [each for each in sets if each.metadata.namespace == cluster.namespace and each.spec.cluster == cluster.name]
