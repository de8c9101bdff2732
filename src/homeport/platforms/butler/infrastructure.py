"""Installs what talks to providers: ProviderConfig, MachineRequest and ImageSync share their connections."""

from __future__ import annotations

from homeport.capi.component import Setup
from homeport.platforms.butler.image.reconciler import ImageSyncReconciler
from homeport.platforms.butler.machine.reconciler import MachineRequestReconciler
from homeport.platforms.butler.machine.record import Search
from homeport.platforms.butler.provider.access import Accesses
from homeport.platforms.butler.provider.reconciler import ProviderConfigReconciler

CONTROLLERS = ("butler-providerconfig", "butler-machinerequest", "butler-imagesync")


def install(setup: Setup) -> None:
    accesses = Accesses(setup)
    setup.manager.add(ProviderConfigReconciler(setup, accesses).controller)
    setup.manager.add(MachineRequestReconciler(setup, accesses).controller)
    Search(setup, accesses)
    setup.manager.add(ImageSyncReconciler(setup, accesses).controller)
