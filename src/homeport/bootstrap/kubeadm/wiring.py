"""The controller of KubeadmConfigs on a manager."""

from __future__ import annotations

from homeport.bootstrap.kubeadm.reconciler import KubeadmConfigReconciler
from homeport.bootstrap.wiring import ConfigKeys, connect, connect_lock
from homeport.capi.capi import Capi
from homeport.capi.remote.pki import EXTERNAL_ETCD
from homeport.runtime.manager import Manager


def install(manager: Manager, capi: Capi) -> None:
    reconciler = KubeadmConfigReconciler(manager, capi)
    keys = ConfigKeys(reconciler.objects, reconciler.kind, waits=reconciler.waits)
    connect(capi, reconciler.controller, keys, EXTERNAL_ETCD)
    connect_lock(reconciler.controller, keys)
    manager.add(reconciler.controller)
