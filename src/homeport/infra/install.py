"""The controllers of a provider on a manager."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from itertools import chain
from typing import Any, TypeVar

from homeport.api.cluster.v1beta2 import Cluster, Machine, MachineDeployment
from homeport.api.ipam.v1beta2 import IPAddress, IPAddressClaim
from homeport.api.meta import Object, Resource
from homeport.capi import name as names
from homeport.capi.capi import Capi
from homeport.capi.cloud import Sources
from homeport.capi.object.ownership import owner_of_kind
from homeport.capi.sourceindex import SourceIndex
from homeport.client.protocol import Key
from homeport.infra.cluster.reconciler import BY_CLUSTER, ClusterReconciler
from homeport.infra.cluster.source import SourceReconciler
from homeport.infra.machine.address import machine_of, takes_addresses
from homeport.infra.machine.capacity import CapacityReconciler
from homeport.infra.machine.departure import Departures
from homeport.infra.machine.reconciler import MachineReconciler
from homeport.infra.protocol import Provider, Session
from homeport.infra.reconciler import edited
from homeport.runtime.cache import key_of
from homeport.runtime.controller import Controller
from homeport.runtime.informer import metadata_only
from homeport.runtime.manager import Manager

C = TypeVar("C", bound=Object)
M = TypeVar("M", bound=Object)
S = TypeVar("S", bound=Session)

_SECRET = Resource("", "v1", "Secret", "secrets")
_CONFIG_MAP = Resource("", "v1", "ConfigMap", "configmaps")
_OF_CLUSTER = "infra.cluster"  # InfraClusters by the Cluster that they belong to


def install(manager: Manager, provider: Provider[C, M, S], capi: Capi | None = None) -> None:
    """Without `capi` no workload cluster can be asked, and no machine without an object is removed."""
    if capi is not None and capi.rehearsal is not None:
        provider = capi.rehearsal.provider(provider)
    links, clusters = _Links(manager, provider), ClusterReconciler(manager, provider, capi)
    _add_clusters(manager, provider, links, clusters)
    _add_machines(manager, provider, links, clusters.departures)
    if provider.source_finalizer:
        _add_sources(manager, provider, links)
    if provider.template_kind is not None and provider.capacity is not None:
        manager.add(CapacityReconciler(manager, provider.template_kind, provider.capacity, provider.name).controller)
    manager.job(lambda: _until_the_end(provider))


def _add_clusters(
    manager: Manager,
    provider: Provider[Any, Any, Any],
    links: _Links,
    reconciler: ClusterReconciler[Any, Any, Any],
) -> None:
    controller, plans = reconciler.controller, reconciler.plans
    if plans is not None and provider.template_kind is not None:
        controller.map(provider.template_kind, plans.users_of_template, predicate=edited)
        controller.map(MachineDeployment, plans.infra_of_deployment, predicate=edited)
    controller.map(Cluster, links.infra_of_cluster, predicate=_cluster_news)
    controller.map(provider.machine_kind, links.waiting_for_machine, predicate=_went)
    for kind in (_SECRET, _CONFIG_MAP):
        controller.map(metadata_only(kind), links.users_of)
    for trigger in provider.triggers:
        controller.map(trigger.kind, trigger.keys, predicate=edited)
    manager.add(controller)


def _add_machines(manager: Manager, provider: Provider[Any, Any, Any], links: _Links, departures: Departures) -> None:
    reconciler: MachineReconciler[Any, Any, Any] = MachineReconciler(manager, provider, departures)
    controller = reconciler.controller
    controller.map(Machine, links.infra_of_machine, predicate=_machine_news)
    controller.map(Cluster, links.machines_of_cluster, predicate=_progress)
    controller.map(provider.cluster_kind, links.machines_of_infra, predicate=_joined)
    for kind in (_SECRET, _CONFIG_MAP):
        controller.map(metadata_only(kind), links.machines_of_users)
    for trigger in provider.machine_triggers:
        controller.map(trigger.kind, trigger.keys)
    if takes_addresses(provider.machine_kind):
        controller.map(IPAddressClaim, machine_of(provider.machine_kind))
        controller.map(IPAddress, links.machine_of_address)
    manager.add(controller)


def _add_sources(manager: Manager, provider: Provider[Any, Any, Any], links: _Links) -> None:
    for kind in (_SECRET, _CONFIG_MAP):
        field = "secrets" if kind is _SECRET else "config_maps"

        def sources_of(infra: Any, field: str = field) -> Iterable[Key]:
            found: Iterable[Key] = getattr(provider.connector.sources(infra), field)
            return found

        def machine_sources_of(infra: Any, field: str = field) -> Iterable[Key]:
            found: Iterable[Key] = getattr(links.machine_sources(infra), field)
            return found

        def users_of(key: Key, field: str = field) -> Iterable[Key]:
            return chain(links.users(key, field), links.machine_users(key, field))

        finalizers = (provider.source_finalizer, provider.former_finalizers)
        reconciler = SourceReconciler(manager, kind, *finalizers, users_of, provider.name)
        name, kept = f"{provider.name}{kind.kind.lower()}", metadata_only(kind)
        controller = Controller(name, kept, reconciler, workers=2, predicate=reconciler.concerns)
        controller.map(provider.cluster_kind, sources_of, predicate=edited)
        if provider.machine_sources is not None:
            controller.map(provider.machine_kind, machine_sources_of, predicate=edited)
        manager.add(controller)


class _Links:
    """The watches: which change enqueues which object."""

    def __init__(self, manager: Manager, provider: Provider[Any, Any, Any]) -> None:
        self._provider = provider
        self._clusters = manager.informers.get(provider.cluster_kind).cache
        self._machines = manager.informers.get(provider.machine_kind).cache
        self._clusters.add_index(_OF_CLUSTER, lambda infra: (f"{infra.metadata.namespace}/{_cluster_name(infra)}",))
        self._users = SourceIndex(self._clusters, "infra.sources", provider.connector.sources)
        of_machine = provider.machine_sources
        self._machine_users = SourceIndex(self._machines, "infra.sources", of_machine) if of_machine else None
        claimed = takes_addresses(provider.machine_kind)
        self._claims = manager.informers.get(IPAddressClaim).cache if claimed else None

    def users(self, key: Key, *fields: str) -> Iterable[Key]:
        """InfraClusters whose connection is made of this Secret or ConfigMap."""
        return self._users.users(key, *fields)

    def users_of(self, obj: Any) -> Iterable[Key]:
        return self.users(key_of(obj))

    def machine_sources(self, infra: Any) -> Sources:
        of_machine = self._provider.machine_sources
        return of_machine(infra) if of_machine is not None else Sources()

    def machine_users(self, key: Key, *fields: str) -> Iterable[Key]:
        """InfraMachines that name this Secret or ConfigMap themselves."""
        return () if self._machine_users is None else self._machine_users.users(key, *fields)

    def machines_of_users(self, obj: Any) -> Iterable[Key]:
        yield from self.machine_users(key_of(obj))
        for key in self.users_of(obj):
            yield from self._machines_of(key.namespace, _cluster_name(self._clusters.get(key)))

    def machines_of_cluster(self, cluster: Cluster) -> Iterable[Key]:
        return self._machines_of(cluster.metadata.namespace, cluster.metadata.name)

    def machines_of_infra(self, infra: Any) -> Iterable[Key]:
        return self._machines_of(infra.metadata.namespace, _cluster_name(infra))

    def _machines_of(self, namespace: str, cluster: str) -> Iterable[Key]:
        return (key_of(each) for each in self._machines.by(BY_CLUSTER, f"{namespace}/{cluster}"))

    def machine_of_address(self, address: IPAddress) -> Iterable[Key]:
        """By the claim, which may have said so before the address was seen."""
        claim = self._claims.get(key_of(address)) if self._claims is not None else None
        return machine_of(self._provider.machine_kind)(claim) if claim is not None else ()

    def infra_of_cluster(self, cluster: Cluster) -> Iterable[Key]:
        ref = cluster.spec.infrastructure_ref
        if ref is not None and ref.kind == self._provider.cluster_kind.__resource__.kind:
            yield Key(cluster.metadata.namespace, ref.name)

    def infra_of_machine(self, machine: Machine) -> Iterable[Key]:
        ref = machine.spec.infrastructure_ref
        if ref is not None and ref.kind == self._provider.machine_kind.__resource__.kind:
            yield Key(machine.metadata.namespace, ref.name)

    def waiting_for_machine(self, machine: Any) -> Iterable[Key]:
        """A cluster goes when its last machine has gone."""
        name = machine.metadata.labels.get(names.CLUSTER_NAME_LABEL, "")
        for infra in self._clusters.by(_OF_CLUSTER, f"{machine.metadata.namespace}/{name}"):
            if infra.metadata.deletion_timestamp:
                yield key_of(infra)


async def _until_the_end(provider: Provider[Any, Any, Any]) -> None:
    try:
        await asyncio.Event().wait()
    finally:
        await provider.connector.close()


def _cluster_name(infra: Any) -> str:
    if infra is None:
        return ""
    owner = owner_of_kind(infra, Cluster.__resource__)
    return str(owner["name"] if owner is not None else infra.metadata.labels.get(names.CLUSTER_NAME_LABEL, ""))


# -- what is worth a look ----------------------------------------------------------------------------------------


def _joined(old: Any, new: Any) -> bool:
    """It belongs to a Cluster from now on: machines may wait for one that was created again."""
    return new is not None and _cluster_name(old) != _cluster_name(new)


def _went(old: Any, new: Any) -> bool:
    del old
    return new is None


def _cluster_news(old: Any, new: Any) -> bool:
    """Only what our reconcilers read of a Cluster."""
    return old is None or new is None or _read_of_cluster(old) != _read_of_cluster(new)


def _read_of_cluster(cluster: Cluster) -> tuple[Any, ...]:
    return (
        cluster.spec.paused,
        cluster.spec.infrastructure_ref,
        cluster.spec.control_plane_ref,
        cluster.status.initialization.infrastructure_provisioned,
        cluster.metadata.deletion_timestamp,
    )


def _progress(old: Any, new: Any) -> bool:
    """What machines wait for of their Cluster."""
    if old is None or new is None:
        return True
    before, after = old.status.initialization, new.status.initialization
    return bool(before != after or old.spec.paused != new.spec.paused)


def _machine_news(old: Any, new: Any) -> bool:
    return old is None or new is None or _read_of_machine(old) != _read_of_machine(new)


def _read_of_machine(machine: Machine) -> tuple[Any, ...]:
    return (
        machine.spec.bootstrap.data_secret_name,
        machine.spec.infrastructure_ref,
        machine.spec.failure_domain,
        names.CONTROL_PLANE_LABEL in machine.metadata.labels,
    )
