"""The bootstrap provider on a manager, and its hooks."""

from __future__ import annotations

from homeport.bootstrap.kubeadm import admission, wiring
from homeport.capi.capi import Capi
from homeport.capi.component import Component, LogDeployment
from homeport.capi.definition import inventory
from homeport.capi.definition.kind import definitions_of
from homeport.capi.rule import Rule
from homeport.runtime.manager import Manager
from homeport.runtime.webhook.hook import Hooks


def install(manager: Manager, capi: Capi) -> None:
    wiring.install(manager, capi)


def register(hooks: Hooks) -> None:
    admission.register(hooks)


COMPONENT = Component(
    name="kubeadm-bootstrap",
    requires=("core",),
    definitions=lambda: definitions_of(inventory.BOOTSTRAP),
    register=lambda hooks, _: register(hooks),
    install=lambda setup: install(setup.manager, setup.capi),
    inventory=(inventory.BOOTSTRAP,),
    rules=(
        Rule("", ("secrets",), ("get", "create", "patch")),
        Rule("", ("configmaps",), ("get", "create", "delete")),  # only one machine of a cluster begins
    ),
    places=(LogDeployment("capi-kubeadm-bootstrap-system", "capi-kubeadm-bootstrap-controller-manager"),),
)
