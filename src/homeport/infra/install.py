"""The controllers of a provider on a manager."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any, TypeVar

from homeport.api.cluster.v1beta2 import Cluster, Machine
from homeport.api.meta import Object, Resource
from homeport.capi import name as names
from homeport.capi.capi import Capi
from homeport.client.protocol import Key
from homeport.infra.cluster import BY_CLUSTER, ClusterReconciler
from homeport.infra.machine import MachineReconciler
from homeport.infra.protocol import Provider, Session
from homeport.runtime.cache import key_of
from homeport.runtime.controller import Controller
from homeport.runtime.informer import metadata_only
from homeport.runtime.manager import Manager

C = TypeVar("C", bound=Object)
M = TypeVar("M", bound=Object)
S = TypeVar("S", bound=Session)

_SECRET = metadata_only(Resource("", "v1", "Secret", "secrets"))
_CONFIG_MAP = metadata_only(Resource("", "v1", "ConfigMap", "configmaps"))


def install(manager: Manager, capi: Capi, provider: Provider[C, M, S]) -> None:
    clusters = Controller(f"{provider.name}cluster", provider.cluster_kind, ClusterReconciler(manager, provider))
    reconciler = MachineReconciler(manager, capi, provider)
    machines = Controller(f"{provider.name}machine", provider.machine_kind, reconciler, workers=32)
    reconciler.attach(machines)
    infra_clusters = manager.informers.get(provider.cluster_kind).cache
    infra_machines = manager.informers.get(provider.machine_kind).cache
    kind = provider.machine_kind.__resource__.kind

    def users_of(obj: Any) -> Iterable[Key]:
        """InfraClusters whose connection is made of this Secret or ConfigMap."""
        key = key_of(obj)
        for infra in infra_clusters:
            sources = provider.connector.sources(infra)
            if key in (*sources.secrets, *sources.config_maps):
                yield key_of(infra)

    def machines_of_users(obj: Any) -> Iterable[Key]:
        for key in users_of(obj):
            yield from machines_of(key.namespace, _cluster_name(infra_clusters.get(key)))

    def machines_of(namespace: str, cluster: str) -> Iterable[Key]:
        return (key_of(each) for each in infra_machines.by(BY_CLUSTER, f"{namespace}/{cluster}"))

    def infra_of_cluster(cluster: Cluster) -> Iterable[Key]:
        ref = cluster.spec.infrastructure_ref
        if ref is not None and ref.kind == provider.cluster_kind.__resource__.kind:
            yield Key(cluster.metadata.namespace, ref.name)

    def infra_of_machine(machine: Machine) -> Iterable[Key]:
        ref = machine.spec.infrastructure_ref
        if ref is not None and ref.kind == kind:
            yield Key(machine.metadata.namespace, ref.name)

    clusters.map(Cluster, infra_of_cluster, predicate=_cluster_news)
    clusters.map(provider.machine_kind, lambda m: _cluster_of(m, infra_clusters), predicate=_came_or_went)
    clusters.map(_SECRET, users_of).map(_CONFIG_MAP, users_of)
    machines.map(Machine, infra_of_machine, predicate=_machine_news)
    machines.map(Cluster, lambda c: machines_of(c.metadata.namespace, c.metadata.name), predicate=_cluster_news)
    machines.map(_SECRET, machines_of_users).map(_CONFIG_MAP, machines_of_users)
    manager.add(clusters)
    manager.add(machines)
    manager.job(lambda: _until_the_end(provider))


async def _until_the_end(provider: Provider[Any, Any, Any]) -> None:
    try:
        await asyncio.Event().wait()
    finally:
        await provider.connector.close()


def _cluster_of(infra_machine: Any, infra_clusters: Any) -> Iterable[Key]:
    name = infra_machine.metadata.labels.get(names.CLUSTER_NAME_LABEL, "")
    for infra in infra_clusters.list(infra_machine.metadata.namespace):
        if _cluster_name(infra) == name:
            yield key_of(infra)


def _cluster_name(infra: Any) -> str:
    if infra is None:
        return ""
    owners = [o.name for o in infra.metadata.owner_references if o.kind == "Cluster"]
    return str(owners[0] if owners else infra.metadata.labels.get(names.CLUSTER_NAME_LABEL, ""))


def _came_or_went(old: Any, new: Any) -> bool:
    return old is None or new is None


def _cluster_news(old: Any, new: Any) -> bool:
    """Only what our reconcilers read of a Cluster."""
    return old is None or new is None or _read_of_cluster(old) != _read_of_cluster(new)


def _read_of_cluster(cluster: Cluster) -> tuple[Any, ...]:
    return (
        cluster.spec.paused,
        cluster.spec.infrastructure_ref,
        cluster.status.initialization.infrastructure_provisioned,
        cluster.metadata.deletion_timestamp,
    )


def _machine_news(old: Any, new: Any) -> bool:
    return old is None or new is None or _read_of_machine(old) != _read_of_machine(new)


def _read_of_machine(machine: Machine) -> tuple[Any, ...]:
    return (
        machine.spec.bootstrap.data_secret_name,
        machine.spec.infrastructure_ref,
        machine.spec.failure_domain,
        machine.metadata.annotations,
        machine.metadata.deletion_timestamp,
    )
