"""Adds the controllers of teams to a manager."""

from __future__ import annotations

from homeport.capi.component import Setup
from homeport.platforms.butler.team.access import AccessReconciler
from homeport.platforms.butler.team.reconciler import TeamReconciler
from homeport.platforms.butler.team.settings import ConfigReconciler, PolicyReconciler
from homeport.platforms.butler.team.user import UserReconciler


def install(setup: Setup) -> None:
    for make in (TeamReconciler, UserReconciler, ConfigReconciler, PolicyReconciler):
        setup.manager.add(make(setup.manager).controller)
    setup.manager.add(AccessReconciler(setup.capi).controller)
