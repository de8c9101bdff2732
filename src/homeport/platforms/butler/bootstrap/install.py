"""The controller of ClusterBootstraps, and what wakes it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from homeport.api.addon.v1alpha1 import ClusterAddon
from homeport.api.butler.v1alpha1 import ButlerConfig, MachineRequest, ProviderConfig, Team
from homeport.api.cluster.v1beta2 import Cluster
from homeport.capi.component import Setup
from homeport.client.protocol import Key, Write
from homeport.platforms.butler.bootstrap.composition import Composition
from homeport.platforms.butler.bootstrap.name import BOOTSTRAP_LABEL
from homeport.platforms.butler.bootstrap.node import Nodes
from homeport.platforms.butler.bootstrap.preparation import Preparation
from homeport.platforms.butler.bootstrap.reconciler import ClusterBootstrapReconciler, cluster_name
from homeport.platforms.butler.bootstrap.renewal import install_renewal
from homeport.platforms.butler.bootstrap.secret import Secrets
from homeport.platforms.butler.bootstrap.talos import Talos
from homeport.platforms.butler.name import CONFIG_NAME, FIELD_MANAGER
from homeport.platforms.butler.team.verdict import World
from homeport.platforms.butler.tenant.provider import Providers
from homeport.runtime.applier import Applier
from homeport.runtime.cache import key_of
from homeport.runtime.wake import spec_changed


def install(setup: Setup) -> ClusterBootstrapReconciler:
    manager, environment = setup.manager, setup.environment
    client, clock, write = manager.client, manager.clock, Write(field_manager=FIELD_MANAGER)
    informers = manager.informers
    configs, teams = informers.get(ProviderConfig).cache, informers.get(Team).cache
    settings = informers.get(ButlerConfig).cache

    def world() -> World:
        return World(config=settings.get(Key("", CONFIG_NAME)), teams=list(teams), providers=list(configs))

    secrets = Secrets(client, write, clock)
    nodes = Nodes(client, write, setup.capi.remotes)
    reconciler = ClusterBootstrapReconciler(
        setup.capi,
        Preparation(Providers(client, setup.platforms), world, clock),
        Composition(client, write, Applier(client, write, clock), secrets, nodes, clock),
        secrets,
        Talos(client, write, clock, environment.dial),
        environment.prepare,
        nodes,
    )
    _watch(setup, reconciler)
    manager.add(reconciler.controller)
    install_renewal(manager)
    return reconciler


def _watch(setup: Setup, reconciler: ClusterBootstrapReconciler) -> None:
    controller, bootstraps = reconciler.controller, reconciler.objects

    def everyone(obj: Any) -> Iterable[Key]:
        del obj
        return [key_of(each) for each in bootstraps]

    def wake(cluster: Key) -> None:
        for each in bootstraps.list(cluster.namespace):
            if cluster_name(each) == cluster.name:
                controller.wake(key_of(each))

    controller.own(MachineRequest)
    controller.own(Cluster)
    controller.map(ClusterAddon, _installed_by)
    controller.map(ProviderConfig, everyone)
    controller.map(ButlerConfig, everyone, predicate=spec_changed)
    setup.capi.remotes.follow(wake)
    setup.capi.remotes.on_node(lambda cluster, old, new: wake(cluster))


def _installed_by(addon: ClusterAddon) -> Iterable[Key]:
    name = addon.metadata.labels.get(BOOTSTRAP_LABEL)
    return (Key(addon.metadata.namespace, name),) if name else ()
