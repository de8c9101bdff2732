"""The core controllers of Cluster API, put together."""

from __future__ import annotations

from homeport.capi import conversion
from homeport.capi.capi import Capi
from homeport.capi.component import Component, LogDeployment, Setup
from homeport.capi.definition import inventory
from homeport.capi.definition.kind import definitions_of
from homeport.capi.environment import Environment
from homeport.capi.name import BOOTSTRAP_GROUP, CONTROL_PLANE_GROUP, INFRASTRUCTURE_GROUP
from homeport.capi.rule import CONTRACT, DEFINED, OWN, Rule
from homeport.client.protocol import Client
from homeport.core import (
    cluster,
    clusterclass,
    clusterresourceset,
    drainrule,
    machine,
    machinedeployment,
    machinehealthcheck,
    machinepool,
    machineset,
)
from homeport.core.topology import install as topology
from homeport.runtime.manager import Manager
from homeport.runtime.webhook.hook import Hooks


def install(manager: Manager, capi: Capi) -> None:
    cluster.install(manager, capi)
    clusterclass.install(manager, capi)
    topology.install(manager, capi)
    machine.install(manager, capi)
    machineset.install(manager, capi)
    machinedeployment.install(manager, capi)
    machinehealthcheck.install(manager, capi)
    clusterresourceset.install(manager, capi)


def register(hooks: Hooks, client: Client) -> None:
    """Defaulting and validation. `client` looks other objects up; it must be able to read them wherever this runs."""
    cluster.register(hooks, client)
    clusterclass.register(hooks, client)
    machine.register(hooks)
    machineset.register(hooks)
    machinedeployment.register(hooks)
    machinehealthcheck.register(hooks)
    machinepool.register(hooks)
    drainrule.register(hooks)
    clusterresourceset.register(hooks)


def _register(hooks: Hooks, environment: Environment) -> None:
    conversion.register(hooks)
    register(hooks, environment.client)


def _install(setup: Setup) -> None:
    install(setup.manager, setup.capi)


COMPONENT = Component(
    name="core",
    definitions=lambda: definitions_of(inventory.CORE),
    register=_register,
    install=_install,
    inventory=(inventory.CORE,),
    rules=(
        Rule(BOOTSTRAP_GROUP, DEFINED, CONTRACT),
        Rule(CONTROL_PLANE_GROUP, DEFINED, CONTRACT),
        Rule(INFRASTRUCTURE_GROUP, DEFINED, CONTRACT),
        Rule("cluster.x-k8s.io", ("machinedeployments", "machinesets", "machines", "machinehealthchecks"), OWN),
        Rule("cluster.x-k8s.io", ("machinepools",), OWN),
        Rule("addons.cluster.x-k8s.io", ("clusterresourcesetbindings",), OWN),
        Rule("", ("secrets",), ("get", "create", "patch")),
    ),
    # Claims and addresses are those of IPAM providers; nothing here calls runtime extensions.
    unwritten=frozenset({"machinedrainrules", "extensionconfigs", "ipaddressclaims", "ipaddresses"}),
    places=(LogDeployment("capi-system", "capi-controller-manager"),),
)
