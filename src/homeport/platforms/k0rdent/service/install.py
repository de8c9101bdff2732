"""The controllers of services, and what wakes them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from homeport.addons.source import WATCHED
from homeport.api.addon.v1alpha1 import ClusterAddon
from homeport.api.cluster.v1beta2 import Cluster
from homeport.api.k0rdent.v1beta1 import ClusterDeployment, ServiceSet, ServiceTemplate, StateManagementProvider
from homeport.capi.component import Setup
from homeport.client.protocol import Key
from homeport.platforms.k0rdent.service.content import home_of, sources_read, values_read
from homeport.platforms.k0rdent.service.multicluster import MultiClusterServiceReconciler
from homeport.platforms.k0rdent.service.provider import ProviderReconciler
from homeport.platforms.k0rdent.service.reconciler import ServiceSetReconciler
from homeport.platforms.k0rdent.service.template import ServiceTemplateReconciler
from homeport.platforms.k0rdent.source import Sources
from homeport.runtime.cache import key_of

_VALUES = "k0rdent.values"
_SOURCES = "k0rdent.sources"


def install(setup: Setup) -> None:
    sources = Sources(setup.manager.client, setup.environment.charts)
    setup.manager.add(ServiceTemplateReconciler(setup, sources).controller)
    setup.manager.add(ProviderReconciler(setup).controller)
    setup.manager.add(MultiClusterServiceReconciler(setup).controller)
    _install_sets(setup, sources)


def _install_sets(setup: Setup, sources: Sources) -> None:
    reconciler = ServiceSetReconciler(setup, sources)
    controller, sets = reconciler.controller, reconciler.objects
    templates = reconciler.informers.get(ServiceTemplate).cache
    sets.add_index(_VALUES, values_read)
    templates.add_index(_SOURCES, sources_read)

    def of_addon(addon: ClusterAddon) -> Iterable[Key]:
        owners = [ref.name for ref in addon.metadata.owner_references if ref.kind == "ServiceSet"]
        return [Key(addon.metadata.namespace, name) for name in owners]

    def of_template(template: ServiceTemplate) -> Iterable[Key]:
        home, name = template.metadata.namespace, template.metadata.name
        return [
            key_of(each)
            for each in sets
            if home_of(each) == home and any(one.template == name for one in each.spec.services)
        ]

    def of_peer(other: ServiceSet) -> Iterable[Key]:
        """The other ServiceSets of the cluster: they may have the same service."""
        return [
            key_of(each)
            for each in sets.list(other.metadata.namespace)
            if each.spec.cluster == other.spec.cluster and each.metadata.uid != other.metadata.uid
        ]

    def of_deployment(deployment: ClusterDeployment) -> Iterable[Key]:
        at = key_of(deployment)
        return [key_of(each) for each in sets.list(at.namespace) if each.spec.cluster == at.name]

    def of_cluster(cluster: Cluster) -> Iterable[Key]:
        names = {ref.name for ref in cluster.metadata.owner_references if ref.kind == "ClusterDeployment"}
        return [key_of(each) for each in sets.list(cluster.metadata.namespace) if each.spec.cluster in names]

    def of_provider(provider: StateManagementProvider) -> Iterable[Key]:
        return [key_of(each) for each in sets if each.spec.provider.name == provider.metadata.name]

    def of_content(kind: str) -> Callable[[Any], Iterable[Key]]:
        def found(obj: Any) -> Iterable[Key]:
            name = f"{kind} {key_of(obj)}"
            yield from (key_of(each) for each in sets.by(_VALUES, name))
            for template in templates.by(_SOURCES, name):
                yield from of_template(template)

        return found

    controller.map(ClusterAddon, of_addon)
    controller.map(ServiceTemplate, of_template)
    controller.map(ServiceSet, of_peer, predicate=_spec_matters)
    controller.map(ClusterDeployment, of_deployment, predicate=_version_matters)
    controller.map(StateManagementProvider, of_provider)
    controller.map(Cluster, of_cluster, predicate=_came_or_went)
    for kind, metadata in WATCHED.items():
        controller.map(metadata, of_content(kind))
    setup.manager.add(controller)


def _came_or_went(old: Cluster | None, new: Cluster | None) -> bool:
    return old is None or new is None or old.metadata.owner_references != new.metadata.owner_references


def _spec_matters(old: ServiceSet | None, new: ServiceSet | None) -> bool:
    if old is None or new is None:
        return True
    return (old.metadata.generation, old.metadata.deletion_timestamp) != (
        new.metadata.generation,
        new.metadata.deletion_timestamp,
    )


def _version_matters(old: ClusterDeployment | None, new: ClusterDeployment | None) -> bool:
    return old is None or new is None or old.status.k8s_version != new.status.k8s_version
