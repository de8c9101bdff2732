"""The controller of MachineDeployments and what wakes it."""

from __future__ import annotations

from collections.abc import Iterable

from homeport.api.cluster.v1beta2 import Cluster, Machine, MachineSet
from homeport.capi.capi import Capi
from homeport.capi.object.ownership import controller_of
from homeport.client.protocol import Key
from homeport.core.index import keys_of
from homeport.core.machinedeployment.reconciler import DeploymentReconciler, deployment_of
from homeport.core.machineset.install import machine_matters
from homeport.machinery.selector import from_label_selector
from homeport.runtime.cache import key_of
from homeport.runtime.controller import Controller
from homeport.runtime.manager import Manager


def install(manager: Manager, capi: Capi) -> Controller:
    reconciler = DeploymentReconciler(capi)

    def of_set(machine_set: MachineSet) -> Iterable[Key]:
        if controller_of(machine_set) is not None:
            return deployment_of(machine_set)
        return [
            key_of(each)
            for each in reconciler.objects.list(machine_set.metadata.namespace)
            if from_label_selector(each.spec.selector).matches(machine_set.metadata.labels)
        ]

    def of_machine(machine: Machine) -> Iterable[Key]:
        found = controller_of(machine)
        if found is None or found["kind"] != "MachineSet":
            return ()
        return deployment_of(reconciler.sets.get(Key(machine.metadata.namespace, found["name"])))

    def of_cluster(cluster: Cluster) -> Iterable[Key]:
        return keys_of(reconciler.of_cluster(key_of(cluster)))

    controller = reconciler.controller
    controller.map(MachineSet, of_set)
    controller.map(Machine, of_machine, predicate=machine_matters)
    controller.map(Cluster, of_cluster, predicate=cluster_matters)
    return manager.add(controller)


def cluster_matters(old: Cluster | None, new: Cluster | None) -> bool:
    """It came or went, or was paused or resumed."""
    return old is None or new is None or bool(old.spec.paused) != bool(new.spec.paused)
