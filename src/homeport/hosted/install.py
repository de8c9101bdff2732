"""Puts hosted control planes of one spelling into a manager."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Any

from homeport.api.cluster.v1beta2 import Cluster
from homeport.capi.capi import Capi
from homeport.capi.component import Setup
from homeport.capi.environment import Environment
from homeport.capi.remote.pki import SECRET
from homeport.capi.remote.workload import Connect
from homeport.client.protocol import Key, Query, Write
from homeport.hosted import name as names
from homeport.hosted.clusterapi.reconciler import HostedControlPlaneReconciler
from homeport.hosted.datastore.driver import CanRun
from homeport.hosted.datastore.provision import DefaultDatastore
from homeport.hosted.datastore.reconciler import DataStoreReconciler
from homeport.hosted.etcd.dial import connect
from homeport.hosted.flavour import Flavour
from homeport.hosted.generator.reconciler import KubeconfigGeneratorReconciler
from homeport.hosted.tenant.reconciler import DEPLOYMENT, MANAGER, SERVICE, TenantControlPlaneReconciler
from homeport.hosted.tenant.setup import DEFAULT
from homeport.hosted.tenant.setup import Connect as DatastoreConnect
from homeport.machinery.condition import is_true
from homeport.runtime.informer import metadata_only
from homeport.runtime.manager import Manager


def install(setup: Setup, flavour: Flavour) -> TenantControlPlaneReconciler:
    install_control_planes(setup.capi, flavour)
    return install_tenants(
        setup.manager,
        flavour,
        proxy=setup.environment.dial.proxy,
        embedded=setup.environment.embedded,
        in_cluster=setup.environment.in_cluster,
        can_run=partial(_can_run, setup.environment),
    )


def _can_run(environment: Environment, image: str) -> bool:
    """A cluster runs every image; a plane on one machine those of its runners, which its workers do not know."""
    if environment.server is None:
        return True
    runners = environment.runners
    return runners is not None and runners.find({}, {"image": image}) is not None


def _runs_all(image: str) -> bool:
    del image
    return True


def install_control_planes(capi: Capi, flavour: Flavour) -> HostedControlPlaneReconciler:
    """The side of Cluster API."""
    reconciler = HostedControlPlaneReconciler(capi, flavour)
    kind = flavour.control_plane.__resource__

    def of_cluster(cluster: Cluster) -> Iterable[Key]:
        ref = cluster.spec.control_plane_ref
        if ref is None or (ref.api_group, ref.kind) != (kind.group, kind.kind):
            return ()
        return (Key(cluster.metadata.namespace, ref.name),)

    ours = Query(labels=flavour.project_label)
    controller = (
        reconciler.controller.own(flavour.tenant)
        .map(Cluster, of_cluster, predicate=_cluster_matters)
        .map(metadata_only(SECRET), _of_secret, query=ours, predicate=_changed)
    )
    capi.manager.add(controller)

    def connection_changed(key: Key) -> None:
        cluster = clusters.get(key)
        for each in of_cluster(cluster) if cluster is not None else ():
            controller.wake(each)

    clusters = capi.manager.informers.get(Cluster).cache
    capi.remotes.follow(connection_changed)
    return reconciler


def _of_secret(secret: Any) -> Iterable[Key]:
    """The TenantControlPlane's kubeconfig and CA are copied for the Cluster."""
    name = secret.metadata.name
    for suffix in (f"-{names.ADMIN}", f"-{names.CA}"):
        if name.endswith(suffix):
            return (Key(secret.metadata.namespace, name.removesuffix(suffix)),)
    return ()


def _cluster_matters(old: Cluster | None, new: Cluster | None) -> bool:
    if old is None or new is None:
        return True
    return (old.metadata.generation, old.metadata.annotations) != (new.metadata.generation, new.metadata.annotations)


def install_tenants(
    manager: Manager,
    flavour: Flavour,
    *,
    proxy: str = "",
    embedded: bool = False,
    in_cluster: bool = False,
    connect_tenant: Connect | None = None,
    connect_datastore: DatastoreConnect = connect,
    can_run: CanRun = _runs_all,
) -> TenantControlPlaneReconciler:
    """`embedded`: the plane runs Pods itself; `in_cluster`: we are a Pod of the cluster. In both cases we can run a
    datastore for those who bring none."""
    options = Write(field_manager=MANAGER)
    provision = None
    if embedded or in_cluster:
        provision = DefaultDatastore(manager.client, options, manager.clock, embedded=embedded)
    reconciler = TenantControlPlaneReconciler(
        manager,
        flavour,
        connect_tenant=connect_tenant,
        connect_datastore=connect_datastore,
        proxy=proxy,
        provision=provision,
        can_run=can_run,
    )
    tenants = manager.informers.get(flavour.tenant).cache

    def of_datastore(datastore: Any) -> Iterable[Key]:
        name = datastore.metadata.name
        return [
            Key(each.metadata.namespace, each.metadata.name)
            for each in tenants
            if name in (each.spec.data_store or DEFAULT, each.status.storage.data_store_name)
        ]

    ours = Query(labels=flavour.project_label)
    controller = (
        reconciler.controller.own(SERVICE, query=ours)
        .own(DEPLOYMENT, query=ours)
        .own(metadata_only(SECRET), query=ours, predicate=_changed)
        .map(flavour.datastore, of_datastore, predicate=_datastore_matters)
    )
    manager.add(controller)
    manager.add(DataStoreReconciler(manager, flavour, connect_datastore=connect_datastore, can_run=can_run).controller)
    manager.add(KubeconfigGeneratorReconciler(manager, flavour).controller)
    return reconciler


def _changed(old: Any, new: Any) -> bool:
    return old is None or new is None or old.metadata.resource_version != new.metadata.resource_version


def _datastore_matters(old: Any, new: Any) -> bool:
    """Other settings; or it can be used again, or no longer."""
    if old is None or new is None or old.metadata.generation != new.metadata.generation:
        return True
    return is_true(old.status.conditions, "Ready") != is_true(new.status.conditions, "Ready")
