"""Connections to providers, and who may use a ProviderConfig."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping

from homeport.api.butler.v1alpha1 import ProviderConfig, Team
from homeport.api.butler.v1alpha1.part import ProviderRef
from homeport.capi.component import Setup
from homeport.capi.platform import PlatformAccess, PlatformSupport
from homeport.client.protocol import Key
from homeport.infra.error import Missing, Unreachable
from homeport.platforms.butler.name import SYSTEM_NAMESPACE
from homeport.platforms.butler.normal.lookup import find_provider
from homeport.platforms.butler.normal.provider import ProviderModel
from homeport.platforms.butler.provider.attempt import AccessDenied


class Accesses:
    """One for each type of provider, on one manager. Closed when the manager ends."""

    def __init__(self, setup: Setup) -> None:
        self._setup = setup
        self._opened: dict[str, PlatformAccess] = {}
        self._stopped = False
        self._teams = setup.manager.informers.get(Team).cache
        self.supports: Mapping[str, PlatformSupport] = setup.platforms
        setup.manager.job(self._until_the_end)

    def of(self, support: PlatformSupport) -> PlatformAccess:
        """Raises Unreachable when the manager has ended: no one would close what is opened then."""
        if self._stopped:
            raise Unreachable(f"no connection to {support.type} is opened: this manager has stopped")
        if support.type not in self._opened:
            self._opened[support.type] = support.open(self._setup.manager, self._setup.environment.dial)
        return self._opened[support.type]

    def check_namespace(self, config: ProviderConfig, namespace: str, field: str) -> None:
        """What a team brings is for its own namespace, and for the platform. Raises AccessDenied."""
        home = config.metadata.namespace
        if home in (namespace, SYSTEM_NAMESPACE) or namespace == SYSTEM_NAMESPACE:
            return
        if self._teams.get(Key("", home)) is not None:
            raise AccessDenied(
                f'{field}: ProviderConfig {home}/{config.metadata.name} belongs to team "{home}": use one of namespace '
                f"{namespace} or {SYSTEM_NAMESPACE}"
            )

    def stop_watching(self, uid: str) -> None:
        """The object of this UID is paused: nothing at its provider wakes it."""
        for each in self._opened.values():
            each.machines.stop_watching(uid)
            if each.images is not None:
                each.images.forget(uid)

    async def _until_the_end(self) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            self._stopped = True
            await asyncio.gather(*(each.close() for each in self._opened.values()))


def find_config(ref: ProviderRef, namespace: str, configs: Iterable[ProviderConfig], field: str) -> ProviderConfig:
    """Raises Missing that names the field."""
    found = find_provider(ref, namespace, configs)
    if found.config is None:
        raise Missing(f"{field}: {found.message}")
    return found.config


def check_access(model: ProviderModel, namespace: str, config: str, field: str) -> None:
    """The namespace of a team has its name; what belongs to the platform itself is in butler-system."""
    refused = "" if namespace == SYSTEM_NAMESPACE else denial(model, namespace, config)
    if refused:
        raise AccessDenied(f"{field}: {refused}")


def denial(model: ProviderModel, team: str, config: str) -> str:
    """Why a team may not use a ProviderConfig; '' if it may."""
    if not model.team or model.team == team:
        return ""
    who = f'team "{team}"' if team else "objects without a team"
    return (
        f'ProviderConfig {config} is for team "{model.team}" alone (spec.scope), not for {who}: use another '
        "ProviderConfig, or ask a platform administrator"
    )


def probed(old: ProviderConfig | None, new: ProviderConfig | None) -> bool:
    """A ProviderConfig changed in a way that matters to those who use it: it was edited, or a probe found out more."""
    return old is None or new is None or _answer(old) != _answer(new)


def _answer(config: ProviderConfig) -> tuple[object, ...]:
    return config.metadata.generation, config.status.credentials_version, config.status.ready
