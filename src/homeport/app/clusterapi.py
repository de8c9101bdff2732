"""Cluster API and the infrastructure providers, wired together."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from importlib import resources
from typing import Any

import orjson

from homeport import bootstrap, controlplane, core, ipam
from homeport.app.ccm import deploy_to_clusters
from homeport.app.environment import Environment
from homeport.capi import conversion
from homeport.capi.capi import Capi
from homeport.capi.inventory import PROVIDERS, Listed
from homeport.infra import owner
from homeport.ipam.definition import LISTED as IPAM
from homeport.providers.nutanix import admission as nutanix_admission
from homeport.providers.nutanix.definition import LISTED as NUTANIX
from homeport.providers.nutanix.install import install as install_nutanix
from homeport.runtime.manager import Manager
from homeport.runtime.webhook.hook import Hooks


def definitions() -> Iterable[Mapping[str, Any]]:
    """Made from the types by `make gen`: reading them takes a tenth of the time of making them."""
    packed = resources.files("homeport.app").joinpath("definitions.json").read_bytes()
    found: list[Mapping[str, Any]] = orjson.loads(packed)
    return found


def providers() -> Iterable[Listed]:
    """For clusterctl's inventory."""
    return (*PROVIDERS, NUTANIX, IPAM)


def register(hooks: Hooks, environment: Environment) -> None:
    conversion.register(hooks)
    core.register(hooks, environment.client)
    bootstrap.register(hooks)
    controlplane.register(hooks)
    ipam.register(hooks, environment.client)
    nutanix_admission.register(hooks)
    owner.register(hooks, environment.client, nutanix_admission.KINDS)


def install(manager: Manager, environment: Environment) -> None:
    capi = Capi.make(manager, proxy=environment.reach.proxy)
    core.install(manager, capi)
    bootstrap.install(manager, capi)
    controlplane.install(manager, capi)
    ipam.install(manager)
    install_nutanix(manager, environment.reach)
    deploy_to_clusters(manager, capi)
