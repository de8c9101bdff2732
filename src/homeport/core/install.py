"""The core controllers of Cluster API, put together."""

from __future__ import annotations

from homeport.capi.capi import Capi
from homeport.core import (
    cluster,
    clusterresourceset,
    drainrule,
    machine,
    machinedeployment,
    machinehealthcheck,
    machineset,
)
from homeport.runtime.manager import Manager
from homeport.runtime.webhook.hook import Hooks


def install(manager: Manager, capi: Capi) -> None:
    cluster.install(manager, capi)
    machine.install(manager, capi)
    machineset.install(manager, capi)
    machinedeployment.install(manager, capi)
    machinehealthcheck.install(manager, capi)
    clusterresourceset.install(manager, capi)


def register(hooks: Hooks) -> None:
    """Defaulting and validation."""
    cluster.register(hooks)
    machine.register(hooks)
    machineset.register(hooks)
    machinedeployment.register(hooks)
    machinehealthcheck.register(hooks)
    drainrule.register(hooks)
    clusterresourceset.register(hooks)
