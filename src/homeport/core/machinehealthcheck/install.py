"""The controller of MachineHealthChecks and what wakes it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from homeport.api.cluster.v1beta2 import Cluster, Machine
from homeport.capi.capi import Capi
from homeport.capi.name import Condition
from homeport.client.protocol import Key
from homeport.core.index import keys_of
from homeport.core.machinehealthcheck.reconciler import CheckReconciler
from homeport.core.machineset.install import machine_matters
from homeport.machinery import condition
from homeport.machinery.selector import from_label_selector
from homeport.runtime.cache import key_of
from homeport.runtime.controller import Controller
from homeport.runtime.manager import Manager


def install(manager: Manager, capi: Capi) -> Controller:
    reconciler = CheckReconciler(capi)

    def of_cluster(cluster: Cluster) -> Iterable[Key]:
        return keys_of(reconciler.of_cluster(key_of(cluster)))

    def of_machine(machine: Machine) -> Iterable[Key]:
        checks = reconciler.of_cluster(Key(machine.metadata.namespace, machine.spec.cluster_name))
        return keys_of(c for c in checks if from_label_selector(c.spec.selector).matches(machine.metadata.labels))

    controller = reconciler.controller
    controller.map(Machine, of_machine, predicate=machine_matters)
    controller.map(Cluster, of_cluster, predicate=_cluster_matters)

    def connection_changed(cluster: Key) -> None:
        reconciler.connection_changed(cluster)
        wake(cluster)

    def node_changed(cluster: Key, old: Any, new: Any) -> None:
        if old is None or new is None or _states(old) != _states(new):
            wake(cluster)

    def wake(cluster: Key) -> None:
        for key in keys_of(reconciler.of_cluster(cluster)):
            controller.wake(key)

    capi.remotes.follow(connection_changed)
    capi.remotes.on_node(node_changed)
    return manager.add(controller)


def _states(node: Mapping[str, Any]) -> dict[str, str]:
    """A Node's conditions without their heartbeats."""
    found = (node.get("status") or {}).get("conditions") or ()
    return {str(each.get("type")): str(each.get("status")) for each in found}


def _cluster_matters(old: Cluster | None, new: Cluster | None) -> bool:
    """It came or went, was paused or resumed, or got as far as Machines can be judged."""
    return old is None or new is None or _cluster(old) != _cluster(new)


def _cluster(cluster: Cluster) -> Any:
    conditions = cluster.status.conditions
    begun = [
        condition.is_true(conditions, kind)
        for kind in (Condition.CONTROL_PLANE_INITIALIZED, Condition.INFRASTRUCTURE_READY)
    ]
    return bool(cluster.spec.paused), cluster.status.initialization, begun
