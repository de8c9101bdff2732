"""The controller of TenantClusters, and what wakes it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from homeport.api.addon.v1alpha1 import ClusterAddon
from homeport.api.butler.v1alpha1 import (
    AddonDefinition,
    ButlerConfig,
    ClusterCreationPolicy,
    IPAllocation,
    NetworkPool,
    ProviderConfig,
    Team,
    TenantAddon,
    TenantCluster,
)
from homeport.api.cluster.v1beta2 import Cluster, Machine, MachineDeployment
from homeport.api.controlplane.v1beta2 import KubeadmControlPlane
from homeport.api.steward.controlplane import StewardControlPlane
from homeport.capi.component import Setup
from homeport.client.protocol import Key, Write
from homeport.platforms.butler.addon.offer import is_built_in
from homeport.platforms.butler.name import CONFIG_NAME, FIELD_MANAGER
from homeport.platforms.butler.network.claim import Claims
from homeport.platforms.butler.normal.config import ConfigModel
from homeport.platforms.butler.team.existing import ExistingView
from homeport.platforms.butler.team.verdict import Verdict, World, judge
from homeport.platforms.butler.tenant.addresses import Addresses
from homeport.platforms.butler.tenant.composition import Composition
from homeport.platforms.butler.tenant.name import source_of
from homeport.platforms.butler.tenant.preparation import Preparation
from homeport.platforms.butler.tenant.provider import Providers
from homeport.platforms.butler.tenant.reconciler import TenantClusterReconciler
from homeport.platforms.butler.tenant.removal import NAMESPACE
from homeport.platforms.butler.tenant.selection import Selection
from homeport.runtime.applier import Applier
from homeport.runtime.cache import key_of
from homeport.runtime.informers import Informers
from homeport.runtime.wake import spec_changed

_CHILDREN = (Cluster, StewardControlPlane, KubeadmControlPlane, MachineDeployment, ClusterAddon)


def install(setup: Setup) -> TenantClusterReconciler:
    manager = setup.manager
    providers = Providers(manager.client, setup.platforms)
    write, informers, judgement = Write(field_manager=FIELD_MANAGER), manager.informers, Judgement(manager.informers)
    applier = Applier(manager.client, write, manager.clock)
    claims = Claims(manager.client, write, informers.get(IPAllocation).cache, informers.get(NetworkPool).cache)
    addresses = Addresses(claims, applier, judgement.settings, setup.environment.ranges, manager.clock)
    composition = Composition(manager.client, applier)
    selection = Selection(informers.get(AddonDefinition).cache, informers.get(TenantAddon).cache)
    preparation = Preparation(judgement, providers, composition, addresses, selection, manager.clock)
    reconciler = TenantClusterReconciler(manager, composition, preparation, addresses)
    _watch(reconciler)
    manager.add(reconciler.controller)
    return reconciler


class Judgement:
    """What the platform has to say about a tenant cluster, from all objects that have a say."""

    def __init__(self, informers: Informers) -> None:
        self._configs = informers.get(ButlerConfig).cache
        self._teams = informers.get(Team).cache
        self._tenants = informers.get(TenantCluster).cache
        self._providers = informers.get(ProviderConfig).cache
        self._policies = informers.get(ClusterCreationPolicy).cache
        self._existing = ExistingView(informers)

    def settings(self) -> ConfigModel:
        return World(config=self._config()).settings

    def _config(self) -> ButlerConfig | None:
        return self._configs.get(Key("", CONFIG_NAME))

    def __call__(self, tenant: TenantCluster) -> Verdict:
        world = World(
            config=self._config(),
            teams=list(self._teams),
            tenants=list(self._tenants),
            providers=list(self._providers),
            policies=list(self._policies),
            existing=self._existing.of,
        )
        return judge(tenant, world, earlier=True)


def _watch(reconciler: TenantClusterReconciler) -> None:
    controller, tenants = reconciler.controller, reconciler.objects

    def everyone(obj: Any) -> Iterable[Key]:
        del obj
        return [key_of(each) for each in tenants]

    def rivals(tenant: TenantCluster) -> Iterable[Key]:
        """Those that were refused may fit now."""
        return [key_of(each) for each in tenants if each.status.phase == "Failed" and key_of(each) != key_of(tenant)]

    def hopeful(obj: Any) -> Iterable[Key]:
        """What is gone no longer counts against a limit."""
        del obj
        return [key_of(each) for each in tenants if each.status.phase == "Failed"]

    for kind in _CHILDREN:
        controller.map(kind, _source)
    for gone in (Cluster, Machine):
        controller.map(gone, hopeful, predicate=_is_gone)
    controller.map(NAMESPACE, lambda obj: _present(source_of(obj.metadata.get("labels") or {})))
    controller.map(ProviderConfig, everyone, predicate=_provider_matters)
    for setting in (ButlerConfig, Team, ClusterCreationPolicy):
        controller.map(setting, everyone, predicate=spec_changed)
    controller.map(AddonDefinition, everyone, predicate=_own_definition_changed)
    controller.map(TenantAddon, _cluster_of, predicate=spec_changed)
    controller.map(IPAllocation, _claimant)
    controller.map(TenantCluster, rivals, predicate=_demand_changed)


def _claimant(allocation: IPAllocation) -> Iterable[Key]:
    ref = allocation.spec.tenant_cluster_ref
    yield Key(ref.namespace, ref.name)


def _cluster_of(addon: TenantAddon) -> Iterable[Key]:
    """Add-ons of the cluster may depend on it."""
    yield Key(addon.metadata.namespace, addon.spec.cluster_ref.name)


def _own_definition_changed(old: AddonDefinition | None, new: AddonDefinition | None) -> bool:
    return spec_changed(old, new) and not all(each is None or is_built_in(each) for each in (old, new))


def _source(obj: Any) -> Iterable[Key]:
    return _present(source_of(obj.metadata.labels))


def _present(key: Key | None) -> Iterable[Key]:
    return () if key is None else (key,)


def _provider_matters(old: ProviderConfig | None, new: ProviderConfig | None) -> bool:
    return old is None or new is None or _found_out(old) != _found_out(new)


def _found_out(config: ProviderConfig) -> Any:
    status = config.status
    said = [(each["type"], each["status"], each["reason"], each["message"]) for each in status.conditions]
    return config.metadata.generation, said, status.images, status.resolved, status.credentials_version


def _demand_changed(old: TenantCluster | None, new: TenantCluster | None) -> bool:
    return old is not None and (new is None or old.metadata.generation != new.metadata.generation)


def _is_gone(old: object, new: object) -> bool:
    return new is None
