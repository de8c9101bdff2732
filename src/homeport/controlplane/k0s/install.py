"""The k0s control plane provider on a manager, and its hooks."""

from __future__ import annotations

from homeport.capi.capi import Capi
from homeport.capi.component import Component
from homeport.capi.k0s import place
from homeport.capi.k0s.definition import definitions
from homeport.capi.name import BOOTSTRAP_GROUP, CONTROL_PLANE_GROUP, INFRASTRUCTURE_GROUP
from homeport.capi.rule import CONTRACT, DEFINED, OWN, Rule
from homeport.client.protocol import Key
from homeport.controlplane.k0s.admission import register
from homeport.controlplane.k0s.reconciler import K0sControlPlaneReconciler
from homeport.controlplane.watch import connect
from homeport.runtime.manager import Manager


def install(manager: Manager, capi: Capi) -> K0sControlPlaneReconciler:
    reconciler = K0sControlPlaneReconciler(capi)
    # Of a kubeconfig or an authority that is gone.
    connect(reconciler, secret_matters=lambda old, new: new is None)
    manager.add(reconciler.controller)

    def connection_changed(cluster: Key) -> None:
        key = reconciler.key_of(cluster)
        if key is not None:
            reconciler.controller.wake(key)

    capi.remotes.follow(connection_changed)
    return reconciler


# clusterctl's inventory lists k0smotron once: with the hosted control planes.
COMPONENT = Component(
    name="k0s-control-plane",
    requires=("core", "k0s-bootstrap", "k0smotron"),
    definitions=lambda: definitions(CONTROL_PLANE_GROUP),
    register=lambda hooks, _: register(hooks),
    install=lambda setup: install(setup.manager, setup.capi),
    rules=(
        Rule(BOOTSTRAP_GROUP, ("k0scontrollerconfigs",), OWN),
        Rule(INFRASTRUCTURE_GROUP, DEFINED, CONTRACT),
        Rule("cluster.x-k8s.io", ("machines",), OWN),
        Rule("cluster.x-k8s.io", ("machines/status",), ("patch",)),
        Rule("", ("secrets",), ("get", "create", "patch")),
    ),
    places=(place.MANAGER, place.CONTROL_PLANE),
)
