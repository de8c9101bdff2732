"""Puts the control plane provider into a manager."""

from __future__ import annotations

from typing import Any

from homeport.capi.capi import Capi
from homeport.capi.component import Component, LogDeployment
from homeport.capi.definition import inventory
from homeport.capi.definition.kind import definitions_of
from homeport.capi.name import BOOTSTRAP_GROUP, INFRASTRUCTURE_GROUP
from homeport.capi.rule import CONTRACT, DEFINED, OWN, Rule
from homeport.controlplane.kubeadm.admission import register
from homeport.controlplane.kubeadm.reconciler import KubeadmControlPlaneReconciler
from homeport.controlplane.watch import connect
from homeport.runtime.manager import Manager

_SECRETS = ("-ca", "-etcd", "-proxy", "-sa", "-kubeconfig", "-apiserver-etcd-client")


def install(manager: Manager, capi: Capi) -> KubeadmControlPlaneReconciler:
    reconciler = KubeadmControlPlaneReconciler(capi)

    connect(reconciler, secret_matters=_new_or_gone, wakes=_is_read)
    manager.add(reconciler.controller)
    return reconciler


def _is_read(name: str, cluster: str) -> bool:
    return any(name == cluster + suffix for suffix in _SECRETS)


def _new_or_gone(old: Any, new: Any) -> bool:
    return old is None or new is None or old.metadata.resource_version != new.metadata.resource_version


COMPONENT = Component(
    name="kubeadm-control-plane",
    requires=("core", "kubeadm-bootstrap"),
    definitions=lambda: definitions_of(inventory.CONTROL_PLANE),
    register=lambda hooks, _: register(hooks),
    install=lambda setup: install(setup.manager, setup.capi),
    inventory=(inventory.CONTROL_PLANE,),
    rules=(
        Rule(BOOTSTRAP_GROUP, ("kubeadmconfigs",), OWN),
        Rule(INFRASTRUCTURE_GROUP, DEFINED, CONTRACT),
        Rule("cluster.x-k8s.io", ("machines",), OWN),
        Rule("cluster.x-k8s.io", ("machines/status",), ("patch",)),
        Rule("", ("secrets",), ("get", "create", "patch")),
    ),
    places=(LogDeployment("capi-kubeadm-control-plane-system", "capi-kubeadm-control-plane-controller-manager"),),
)
