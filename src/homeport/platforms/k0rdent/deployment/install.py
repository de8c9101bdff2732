"""The controller of ClusterDeployments, and what wakes it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from homeport.api.addon.v1alpha1 import ClusterAddon
from homeport.api.cluster.v1beta2 import Cluster
from homeport.api.k0rdent.v1beta1 import (
    ClusterAuthentication,
    ClusterDeployment,
    ClusterTemplate,
    Credential,
    Management,
    ServiceSet,
    ServiceTemplate,
    ServiceTemplateChain,
)
from homeport.api.meta import Object
from homeport.capi.component import Setup
from homeport.client.protocol import Key
from homeport.platforms.k0rdent.catalogue import VENDORS
from homeport.platforms.k0rdent.deployment import neighbour
from homeport.platforms.k0rdent.deployment.access import CONFIG_MAP
from homeport.platforms.k0rdent.deployment.reconciler import ClusterDeploymentReconciler
from homeport.platforms.k0rdent.management.credential import SECRET, identity_key
from homeport.platforms.k0rdent.name import RELEASE_NAME_LABEL
from homeport.platforms.k0rdent.setting.authentication import authority_key
from homeport.runtime.cache import key_of
from homeport.runtime.informer import metadata_only


def install(setup: Setup) -> ClusterDeploymentReconciler:
    reconciler = ClusterDeploymentReconciler(setup)
    controller, wakes = reconciler.controller, _Wakes(reconciler)
    controller.map(Cluster, wakes.of_cluster)
    controller.map(ServiceSet, lambda obj: (Key(obj.metadata.namespace, obj.spec.cluster),))
    controller.map(ServiceTemplate, wakes.of_service_template)
    controller.map(ServiceTemplateChain, wakes.of_service_template)
    controller.map(ClusterAddon, lambda obj: (Key(obj.metadata.namespace, obj.spec.cluster_name),))
    for kind in neighbour.KINDS:
        controller.map(kind, wakes.of_namespace)
    controller.map(Management, reconciler.all_keys, predicate=_offers_changed)
    controller.map(metadata_only(SECRET), wakes.of_secret)
    controller.map(metadata_only(CONFIG_MAP), wakes.of_config_map)
    setup.capi.remotes.on_node(wakes.node_changed)
    setup.manager.add(controller)
    return reconciler


class _Wakes:
    """Which ClusterDeployments a change of another object concerns."""

    def __init__(self, reconciler: ClusterDeploymentReconciler) -> None:
        self._controller = reconciler.controller
        self._deployments = reconciler.objects
        self._credentials = reconciler.informers.get(Credential).cache
        self._templates = reconciler.informers.get(ClusterTemplate).cache
        self._authentications = reconciler.informers.get(ClusterAuthentication).cache

    def of_cluster(self, cluster: Cluster) -> Iterable[Key]:
        """Most Clusters have no ClusterDeployment. One that is not in the cache yet wakes itself when it comes."""
        meta = cluster.metadata
        keys = {key_of(cluster), Key(meta.namespace, meta.labels.get(RELEASE_NAME_LABEL, ""))}
        return [key for key in keys if key in self._deployments]

    def of_namespace(self, obj: Object) -> Iterable[Key]:
        return [key_of(each) for each in self._deployments.list(obj.metadata.namespace)]

    def of_service_template(self, obj: Object) -> Iterable[Key]:
        namespace = obj.metadata.namespace
        return [key_of(each) for each in self._deployments.list(namespace) if each.spec.service_spec.services]

    def of_secret(self, secret: Object) -> Iterable[Key]:
        at = key_of(secret)
        if any(at in vendor.secrets for vendor in VENDORS):
            return [key_of(each) for each in self._deployments]
        using = {key_of(each) for each in self._credentials if identity_key(each) == at}
        trusting = {key_of(each) for each in self._authentications if authority_key(each) == at}
        return [
            key_of(each)
            for each in self._deployments
            if Key(each.metadata.namespace, each.spec.credential) in using
            or Key(each.metadata.namespace, each.spec.cluster_auth) in trusting
            or _named(each, at, "credential_field")
        ]

    def of_config_map(self, found: Object) -> Iterable[Key]:
        at = key_of(found)
        holding = {key_of(each) for each in self._templates if _holder(each) == at}
        return [
            key_of(each)
            for each in self._deployments
            if _named(each, at, "bundle_field") or Key(each.metadata.namespace, each.spec.template) in holding
        ]

    def node_changed(self, cluster: Key, old: Any, new: Any) -> None:
        if self._deployments.get(cluster) is not None and _taints(old) != _taints(new):
            self._controller.wake(cluster)


def _taints(node: Any) -> set[str]:
    return {str(each.get("key")) for each in ((node or {}).get("spec") or {}).get("taints") or ()}


def _named(deployment: ClusterDeployment, at: Key, attribute: str) -> bool:
    """Whether the values name it, in the field that the vendor has for it."""
    for vendor in VENDORS:
        field: str = getattr(vendor, attribute)
        found: Any = (deployment.spec.config or {}).get(vendor.name)
        for step in field.split("."):
            found = found.get(step) if isinstance(found, dict) else None
        if found and at == Key(deployment.metadata.namespace, str(found)):
            return True
    return False


def _holder(template: ClusterTemplate) -> Key | None:
    """The ConfigMap that holds its chart."""
    source = template.spec.helm.chart_source
    local = source.local_source_ref if source is not None else None
    return None if local is None or local.kind != "ConfigMap" else Key(template.metadata.namespace, local.name)


def _offers_changed(old: Management | None, new: Management | None) -> bool:
    return old is None or new is None or old.status.available_providers != new.status.available_providers
