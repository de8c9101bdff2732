"""Puts k0smotron's controllers into a manager."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from homeport.api.cluster.v1beta2 import Cluster as CapiCluster
from homeport.api.k0smotron.v1beta2 import Cluster, K0smotronControlPlane
from homeport.api.meta import Unstructured
from homeport.capi.capi import Capi
from homeport.capi.component import Component, LogDeployment
from homeport.capi.k0s import place
from homeport.capi.name import CONTROL_PLANE_GROUP, INFRASTRUCTURE_GROUP
from homeport.capi.remote import kubeconfig
from homeport.capi.remote.pki import SECRET
from homeport.capi.rule import CLUSTER_STATUS, DEFINED, OWN, Rule
from homeport.client.protocol import Key, Query
from homeport.hosted.k0smotron.admission import register
from homeport.hosted.k0smotron.cluster import ClusterReconciler
from homeport.hosted.k0smotron.controlplane import K0smotronControlPlaneReconciler
from homeport.hosted.k0smotron.definition import LISTED, definitions
from homeport.hosted.k0smotron.tokenrequest import JoinTokenRequestReconciler
from homeport.runtime.informer import metadata_only
from homeport.runtime.manager import Manager
from homeport.runtime.workload.kind import POD, SERVICE, STATEFUL_SET

OURS = Query(labels="app=k0smotron")


def install(manager: Manager, capi: Capi) -> ClusterReconciler:
    clusters = ClusterReconciler(capi)
    control_planes = K0smotronControlPlaneReconciler(capi, clusters.hosts)
    tokens = JoinTokenRequestReconciler(capi)

    def of_pod(pod: Unstructured) -> Iterable[Key]:
        name = (pod.metadata.get("labels") or {}).get("cluster", "")
        return (Key(pod.namespace, name),) if name else ()

    def of_kubeconfig(secret: Any) -> Iterable[Key]:
        key = kubeconfig.cluster_of(Key(secret.metadata.namespace, secret.metadata.name))
        return () if key is None else (key,)

    manager.add(
        clusters.controller.own(STATEFUL_SET, query=OURS)
        .own(SERVICE, query=OURS)
        .map(POD, of_pod, query=OURS, predicate=_gone)
        .map(metadata_only(SECRET), of_kubeconfig, query=Query(labels="cluster.x-k8s.io/cluster-name"), predicate=_lost)
    )
    manager.add(control_planes.controller.own(Cluster).map(CapiCluster, control_plane_keys, predicate=_cluster_matters))
    manager.add(tokens.controller.map(Cluster, tokens.requests_of))
    capi.remotes.follow(lambda key: clusters.controller.wake(key) if clusters.controller.knows(key) else None)
    return clusters


def control_plane_keys(cluster: CapiCluster) -> Iterable[Key]:
    ref = cluster.spec.control_plane_ref
    kind = K0smotronControlPlane.__resource__.kind
    if ref is None or (ref.api_group, ref.kind) != (CONTROL_PLANE_GROUP, kind):
        return ()
    return (Key(cluster.metadata.namespace, ref.name),)


def _gone(old: Any, new: Any) -> bool:
    """Only deletions wait for Pods; what runs is the StatefulSet's to say."""
    return new is None


def _lost(old: Any, new: Any) -> bool:
    return new is None


def _cluster_matters(old: CapiCluster | None, new: CapiCluster | None) -> bool:
    """Conditions are left out: every step changes them."""
    if old is None or new is None:
        return True
    return (old.metadata.generation, old.metadata.deletion_timestamp, old.metadata.annotations) != (
        new.metadata.generation,
        new.metadata.deletion_timestamp,
        new.metadata.annotations,
    )


COMPONENT = Component(
    name="k0smotron",
    requires=("core",),
    definitions=definitions,
    register=lambda hooks, _: register(hooks),
    install=lambda setup: install(setup.manager, setup.capi),
    inventory=(LISTED,),
    rules=(
        Rule("k0smotron.io", DEFINED, OWN),
        Rule("", ("configmaps", "secrets", "services"), OWN),
        Rule("", ("pods",), ("get", "list")),
        Rule("", ("persistentvolumeclaims",), ("get", "list", "delete")),
        Rule("", ("namespaces",), ("create",)),
        Rule("", ("nodes",), ("list",)),  # whose addresses lead to a Service of type NodePort
        Rule("apps", ("statefulsets",), OWN),
        Rule("batch", ("cronjobs",), OWN),
        Rule("networking.k8s.io", ("ingresses",), OWN),
        Rule("cluster.x-k8s.io", ("clusters",), ("patch",)),
        Rule(INFRASTRUCTURE_GROUP, DEFINED, ("patch",)),
        Rule(INFRASTRUCTURE_GROUP, CLUSTER_STATUS, ("patch",)),
    ),
    places=(
        place.MANAGER,
        place.CONTROL_PLANE,
        LogDeployment(place.SYSTEM, "k0smotron-controller-manager-infrastructure", alias=True),
    ),
)
