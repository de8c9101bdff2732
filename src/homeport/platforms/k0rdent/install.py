"""Adds the controllers of k0rdent's kinds to a manager. Each part brings an `install(setup)` of its own."""

from __future__ import annotations

from collections.abc import Callable

from homeport.capi.component import Setup
from homeport.platforms.k0rdent import stored
from homeport.platforms.k0rdent.access.reconciler import install as install_access
from homeport.platforms.k0rdent.backup.reconciler import install as install_backups
from homeport.platforms.k0rdent.deployment.install import install as install_deployments
from homeport.platforms.k0rdent.ipam import claim, reconciler
from homeport.platforms.k0rdent.management import chain, credential, management, release, template
from homeport.platforms.k0rdent.service.install import install as install_services
from homeport.platforms.k0rdent.setting.reconciler import install as install_settings

PARTS: tuple[Callable[[Setup], object], ...] = (
    stored.install,
    template.install,
    chain.install,
    release.install,
    management.install,
    credential.install,
    install_access,
    install_settings,
    install_backups,
    claim.install,
    reconciler.install,
    install_services,
    install_deployments,
)


def install(setup: Setup) -> None:
    for part in PARTS:
        part(setup)
