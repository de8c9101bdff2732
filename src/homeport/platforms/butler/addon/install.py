"""The controllers of AddonDefinitions, TenantAddons and ManagementAddons."""

from __future__ import annotations

from homeport.capi.component import Setup
from homeport.platforms.butler.addon.definition import AddonDefinitionReconciler
from homeport.platforms.butler.addon.management import ManagementAddonReconciler
from homeport.platforms.butler.addon.tenant import TenantAddonReconciler


def install(setup: Setup) -> None:
    setup.manager.add(AddonDefinitionReconciler(setup.manager).controller)
    setup.manager.add(TenantAddonReconciler(setup).controller)
    setup.manager.add(ManagementAddonReconciler(setup).controller)
