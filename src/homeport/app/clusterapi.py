"""Cluster API and the infrastructure providers, wired together."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from homeport import bootstrap, controlplane, core
from homeport.app.ccm import deploy_to_clusters
from homeport.app.environment import Environment
from homeport.capi import conversion
from homeport.capi import definition as capi_definition
from homeport.capi.capi import Capi
from homeport.infra import owner
from homeport.providers.nutanix import admission as nutanix_admission
from homeport.providers.nutanix import definition as nutanix_definition
from homeport.providers.nutanix.install import install as install_nutanix
from homeport.runtime.manager import Manager
from homeport.runtime.webhook.hook import Hooks


def definitions() -> Iterable[Mapping[str, Any]]:
    return [*capi_definition.definitions(), *nutanix_definition.definitions()]


def register(hooks: Hooks, environment: Environment) -> None:
    conversion.register(hooks)
    core.register(hooks)
    bootstrap.register(hooks)
    controlplane.register(hooks)
    nutanix_admission.register(hooks)
    owner.register(hooks, environment.client, nutanix_admission.KINDS)


def install(manager: Manager, environment: Environment) -> None:
    capi = Capi.make(manager, proxy=environment.reach.proxy)
    core.install(manager, capi)
    bootstrap.install(manager, capi)
    controlplane.install(manager, capi)
    install_nutanix(manager, environment.reach)
    deploy_to_clusters(manager, capi)
