"""The controller of ClusterClasses and what wakes it."""

from __future__ import annotations

from homeport.capi.capi import Capi
from homeport.core.clusterclass.reconciler import ClassReconciler
from homeport.runtime.controller import Controller
from homeport.runtime.manager import Manager


def install(manager: Manager, capi: Capi) -> Controller:
    return manager.add(ClassReconciler(capi).controller)
