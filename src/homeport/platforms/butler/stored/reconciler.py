"""The kinds that Homeport does not act on, and what to do instead."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from homeport.api.butler.v1alpha1 import (
    IdentityProvider,
    LoadBalancerRequest,
    Workspace,
    WorkspaceTemplate,
)
from homeport.capi.component import Setup
from homeport.capi.stored import install_stored
from homeport.platforms.butler.name import FIELD_MANAGER

ADVICE: Mapping[type[Any], str] = {
    IdentityProvider: "to let its users in, issue kubeconfigs to them or configure OpenID Connect of the API server",
    LoadBalancerRequest: "set a virtual address (spec.network.vip of the ClusterBootstrap) instead",
    Workspace: "run the development environment as a workload of the tenant cluster instead",
    WorkspaceTemplate: "Homeport makes no workspaces from it",
}


def install(setup: Setup) -> None:
    install_stored(setup.manager, ADVICE, platform="butler", field_manager=FIELD_MANAGER)
