"""The controllers of services, and what wakes them."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

from homeport.addons.source import WATCHED
from homeport.api.addon.v1alpha1 import ClusterAddon
from homeport.api.cluster.v1beta2 import Cluster
from homeport.api.k0rdent.v1beta1 import ClusterDeployment, ServiceSet, ServiceTemplate, StateManagementProvider
from homeport.api.meta import Object
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
    controller, wakes = reconciler.controller, _Wakes(reconciler)
    controller.map(ClusterAddon, _of_addon)
    controller.map(ServiceTemplate, wakes.of_template)
    controller.map(ServiceSet, wakes.of_peer, predicate=_spec_matters)
    controller.map(ClusterDeployment, wakes.of_deployment, predicate=_version_matters)
    controller.map(StateManagementProvider, wakes.of_provider)
    controller.map(Cluster, wakes.of_cluster, predicate=_came_or_went)
    for kind, metadata in WATCHED.items():
        controller.map(metadata, partial(wakes.of_content, kind))
    setup.manager.add(controller)


class _Wakes:
    """Which ServiceSets a change of another object concerns."""

    def __init__(self, reconciler: ServiceSetReconciler) -> None:
        self._sets = reconciler.objects
        self._templates = reconciler.informers.get(ServiceTemplate).cache
        self._sets.add_index(_VALUES, values_read)
        self._templates.add_index(_SOURCES, sources_read)

    def of_template(self, template: ServiceTemplate) -> Iterable[Key]:
        home, name = template.metadata.namespace, template.metadata.name
        return [
            key_of(each)
            for each in self._sets
            if home_of(each) == home and any(one.template == name for one in each.spec.services)
        ]

    def of_peer(self, other: ServiceSet) -> Iterable[Key]:
        """The other ServiceSets of the cluster: they may have the same service."""
        return [
            key_of(each)
            for each in self._sets.list(other.metadata.namespace)
            if each.spec.cluster == other.spec.cluster and each.metadata.uid != other.metadata.uid
        ]

    def of_deployment(self, deployment: ClusterDeployment) -> Iterable[Key]:
        at = key_of(deployment)
        return [key_of(each) for each in self._sets.list(at.namespace) if each.spec.cluster == at.name]

    def of_cluster(self, cluster: Cluster) -> Iterable[Key]:
        names = {ref.name for ref in cluster.metadata.owner_references if ref.kind == "ClusterDeployment"}
        return [key_of(each) for each in self._sets.list(cluster.metadata.namespace) if each.spec.cluster in names]

    def of_provider(self, provider: StateManagementProvider) -> Iterable[Key]:
        return [key_of(each) for each in self._sets if each.spec.provider.name == provider.metadata.name]

    def of_content(self, kind: str, obj: Object) -> Iterable[Key]:
        name = f"{kind} {key_of(obj)}"
        yield from (key_of(each) for each in self._sets.by(_VALUES, name))
        for template in self._templates.by(_SOURCES, name):
            yield from self.of_template(template)


def _of_addon(addon: ClusterAddon) -> Iterable[Key]:
    owners = [ref.name for ref in addon.metadata.owner_references if ref.kind == "ServiceSet"]
    return [Key(addon.metadata.namespace, name) for name in owners]


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
