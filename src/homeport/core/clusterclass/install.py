"""The controller of ClusterClasses and what wakes it."""

from __future__ import annotations

from homeport.api.cluster.v1beta2 import ClusterClass
from homeport.capi.capi import Capi
from homeport.core.clusterclass.reconciler import ClassReconciler
from homeport.runtime.controller import Controller
from homeport.runtime.manager import Manager


def install(manager: Manager, capi: Capi) -> Controller:
    reconciler = ClassReconciler(capi)
    controller = Controller("clusterclass", ClusterClass, reconciler, clock=manager.clock, status_wakes=False)
    reconciler.controller = controller
    return manager.add(controller)
