"""Adds the controllers of Butler's kinds to a manager. Each part brings an `install(setup)` of its own."""

from __future__ import annotations

from collections.abc import Callable

from homeport.capi.component import Setup
from homeport.platforms.butler import infrastructure, kubeconfig, stored
from homeport.platforms.butler.addon.install import install as install_addons
from homeport.platforms.butler.author.install import install as install_author
from homeport.platforms.butler.bootstrap.install import install as install_bootstrap
from homeport.platforms.butler.network.install import install as install_network
from homeport.platforms.butler.team.install import install as install_team
from homeport.platforms.butler.tenant.install import install as install_tenants

PARTS: tuple[Callable[[Setup], object], ...] = (
    stored.install,
    infrastructure.install,
    install_network,
    install_team,
    kubeconfig.install,
    install_tenants,
    install_addons,
    install_bootstrap,
    install_author,
)


def install(setup: Setup) -> None:
    for part in PARTS:
        part(setup)
