"""The controllers of K0sWorkerConfigs and K0sControllerConfigs on a manager."""

from __future__ import annotations

from typing import Any

from homeport.api.cluster.v1beta2 import Machine
from homeport.api.meta import Unstructured
from homeport.bootstrap.k0s.controller import K0sControllerConfigReconciler
from homeport.bootstrap.k0s.worker import K0sWorkerConfigReconciler
from homeport.bootstrap.wiring import ConfigKeys, connect, connect_lock
from homeport.capi.capi import Capi
from homeport.capi.k0s.argument import MACHINE_NAME_LABEL
from homeport.capi.remote.pki import GENERATED
from homeport.client.protocol import Key
from homeport.runtime.controller import Controller
from homeport.runtime.manager import Manager


def install(manager: Manager, capi: Capi) -> None:
    workers = K0sWorkerConfigReconciler(manager, capi)
    keys = ConfigKeys(workers.objects, workers.kind)
    connect(capi, workers.controller, keys, GENERATED)
    connect_nodes(capi, workers.controller, keys)
    manager.add(workers.controller)
    controllers = K0sControllerConfigReconciler(manager, capi)
    keys = ConfigKeys(controllers.objects, controllers.kind)
    connect(capi, controllers.controller, keys, GENERATED)
    connect_nodes(capi, controllers.controller, keys)
    connect_lock(controllers.controller, keys)
    manager.add(controllers.controller)


def connect_nodes(capi: Capi, controller: Controller, keys: ConfigKeys) -> None:
    machines = capi.manager.informers.get(Machine).cache

    def node_changed(cluster: Key, old: Unstructured | None, new: Unstructured | None) -> None:
        if new is None or (old is not None and _view(old) == _view(new)):
            return  # a heartbeat
        name = (new.metadata.get("labels") or {}).get(MACHINE_NAME_LABEL) or new.name
        machine = machines.get(Key(cluster.namespace, name))
        if machine is not None and machine.spec.cluster_name == cluster.name:
            for key in keys.of_machine(machine):
                controller.wake(key)

    capi.remotes.on_node(node_changed)


def _view(node: Unstructured) -> tuple[Any, ...]:
    spec = node.get("spec") or {}
    return node.metadata.get("labels"), node.metadata.get("annotations"), spec.get("providerID"), spec.get("taints")
