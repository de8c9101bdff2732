"""All loops of workloads on one manager."""

from __future__ import annotations

from typing import Any

from homeport.api.meta import Unstructured
from homeport.apiserver.embedded import EmbeddedServer
from homeport.apiserver.kinds.install import leave_protection
from homeport.apiserver.kinds.pod.log import LogSources
from homeport.builtin.workload.address import ServiceOptions
from homeport.builtin.workload.claim import ClaimReconciler, mounted
from homeport.builtin.workload.endpoint import EndpointReconciler
from homeport.builtin.workload.pod import PodReconciler, PodServices
from homeport.builtin.workload.service import ServiceReconciler
from homeport.client.protocol import Key
from homeport.runtime.cache import Cache
from homeport.runtime.controller import Controller
from homeport.runtime.manager import Manager
from homeport.runtime.workload.deployment import DeploymentReconciler
from homeport.runtime.workload.job import JobReconciler
from homeport.runtime.workload.kind import (
    BY_OWNER,
    CLAIM,
    DEPLOYMENT,
    JOB,
    POD,
    REPLICA_SET,
    REVISION,
    SERVICE,
    STATEFUL_SET,
    controller_uid,
    spec_of,
)
from homeport.runtime.workload.namespace import NamespaceAware
from homeport.runtime.workload.replicaset import ReplicaSetReconciler
from homeport.runtime.workload.runner import Runners
from homeport.runtime.workload.statefulset import StatefulSetReconciler


def install(server: EmbeddedServer, manager: Manager, runners: Runners, options: ServiceOptions | None = None) -> None:
    """For the embedded server alone: on a real cluster kubelets and its controllers do all this."""
    leave_protection(server.registry, ("persistentvolumeclaims",))
    install_workloads(manager, runners, server.builtin.logs, options or ServiceOptions())
    pods, services = (manager.informers.get(kind).cache for kind in (POD, SERVICE))
    reconciler = NamespaceAware(EndpointReconciler(server, manager.client, pods))
    endpoints = Controller("endpoints", SERVICE, reconciler, clock=manager.clock)
    manager.add(endpoints.map(POD, lambda pod: _services_of(services, pod)))


def install_workloads(manager: Manager, runners: Runners, logs: LogSources, options: ServiceOptions) -> None:
    """Everything that a node and its cluster do for Pods. Any API server will do that has neither."""
    client, clock = manager.client, manager.clock
    pods, sets, revisions = (_cache(manager, kind) for kind in (POD, REPLICA_SET, REVISION))

    def controller(name: str, kind: Any, reconciler: Any) -> Controller:
        return Controller(name, kind, NamespaceAware(reconciler), clock=clock)

    deployments = controller("deployment", DEPLOYMENT, DeploymentReconciler(client, sets, pods, clock))
    deployments.own(REPLICA_SET).map(POD, lambda pod: _deployments_of(sets, pod), predicate=_went)
    manager.add(deployments)
    manager.add(controller("replicaset", REPLICA_SET, ReplicaSetReconciler(client, pods, clock)).own(POD))
    stateful = StatefulSetReconciler(client, pods, revisions, clock)
    manager.add(controller("statefulset", STATEFUL_SET, stateful).own(POD).own(REVISION))
    manager.add(controller("job", JOB, JobReconciler(client, pods, clock)).own(POD))
    manager.add(controller("claim", CLAIM, ClaimReconciler(client, runners)).map(POD, mounted))
    services = manager.informers.get(SERVICE).cache
    addresses = ServiceReconciler(client, services, pods, manager.recorder, options, manager.clock)
    balancing = controller("service", SERVICE, addresses)
    manager.add(balancing.map(POD, lambda pod: _services_of(services, pod)))
    manager.job(addresses.close)
    _install_pods(manager, runners, logs, options)


def _install_pods(manager: Manager, runners: Runners, logs: LogSources, options: ServiceOptions) -> None:
    services = PodServices(manager.client, runners, logs, manager.clock, manager.recorder, options.node_host)
    reconciler = PodReconciler(services, lambda key: running.queue.add(key))
    running = Controller("pod", POD, reconciler, clock=manager.clock)
    manager.add(running)
    manager.job(reconciler.close)


def _cache(manager: Manager, kind: Any) -> Cache[Unstructured]:
    cache: Cache[Unstructured] = manager.informers.get(kind).cache
    cache.add_index(BY_OWNER, controller_uid)
    return cache


def _went(old: Any, new: Any) -> bool:
    return new is None


def _deployments_of(sets: Cache[Unstructured], pod: Unstructured) -> list[Key]:
    """By way of the ReplicaSet: a rollout may wait for the last old Pod to be gone."""
    owners = [ref for ref in pod.metadata.get("ownerReferences") or () if ref.get("kind") == REPLICA_SET.kind]
    found = [sets.get(Key(pod.namespace, ref["name"])) for ref in owners]
    return [
        Key(each.namespace, ref["name"])
        for each in found
        if each is not None
        for ref in each.metadata.get("ownerReferences") or ()
        if ref.get("controller") and ref["kind"] == DEPLOYMENT.kind
    ]


def _services_of(services: Cache[Unstructured], pod: Unstructured) -> list[Key]:
    labels = pod.metadata.get("labels") or {}
    return [
        Key(service.namespace, service.name)
        for service in services.list(pod.namespace)
        if (selector := spec_of(service).get("selector")) and selector.items() <= labels.items()
    ]
