"""The controller of topologies and what wakes it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from homeport.api.cluster.v1beta2 import (
    ClusterClass,
    Machine,
    MachineDeployment,
    MachineHealthCheck,
    MachineSet,
)
from homeport.capi.capi import Capi
from homeport.capi.name import CONTROL_PLANE_LABEL, TOPOLOGY_OWNED_LABEL
from homeport.client.protocol import Key
from homeport.core.topology.reconciler import TopologyReconciler, matters
from homeport.runtime.cache import key_of
from homeport.runtime.controller import Controller
from homeport.runtime.manager import Manager


def install(manager: Manager, capi: Capi) -> Controller:
    reconciler = TopologyReconciler(capi)
    controller = reconciler.controller
    controller.map(ClusterClass, lambda each: reconciler.users_of(key_of(each)), predicate=_class_matters)
    controller.map(MachineDeployment, _cluster_of, predicate=matters)
    controller.map(MachineHealthCheck, _cluster_of, predicate=matters)
    controller.map(MachineSet, _cluster_of, predicate=_goes)
    controller.map(Machine, _cluster_of, predicate=_machine_matters)
    return manager.add(controller)


def _cluster_of(obj: Any) -> Iterable[Key]:
    if TOPOLOGY_OWNED_LABEL not in obj.metadata.labels:
        return ()
    return (Key(obj.metadata.namespace, obj.spec.cluster_name),)


def _class_matters(old: Any, new: Any) -> bool:
    return old is None or new is None or _class_gist(old) != _class_gist(new)


def _class_gist(given: ClusterClass) -> tuple[Any, ...]:
    said = [(c["type"], c["status"], c.get("reason"), c.get("message")) for c in given.status.conditions]
    return (given.metadata.generation, given.status.observed_generation, said)


def _goes(old: Any, new: Any) -> bool:
    """What a MachineSet used may be left then."""
    return new is None or (old is not None and old.metadata.deletion_timestamp != new.metadata.deletion_timestamp)


def _machine_matters(old: Any, new: Any) -> bool:
    """Only versions do, of workers: they tell how far an upgrade is."""
    found = new if new is not None else old
    if CONTROL_PLANE_LABEL in found.metadata.labels:
        return False
    return old is None or new is None or _versions(old) != _versions(new)


def _versions(machine: Machine) -> tuple[str, str]:
    return machine.spec.version, machine.status.node_info.kubelet_version
