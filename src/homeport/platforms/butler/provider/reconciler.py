"""ProviderConfig: probed at its provider when it or its Secret changes, and on a schedule."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Literal

from homeport.api.butler.v1alpha1 import ImageSync, ProviderConfig
from homeport.capi.component import Setup
from homeport.capi.platform import PlatformAccess
from homeport.client.protocol import Key
from homeport.infra.error import ProviderError, can_not_ask, delay_of
from homeport.infra.reconciler import edited
from homeport.platforms.butler.name import finalizer
from homeport.platforms.butler.normal.provider import normal_provider_config
from homeport.platforms.butler.provider.access import Accesses
from homeport.platforms.butler.provider.report import put_failure, put_findings, put_report, reason_of
from homeport.platforms.butler.provider.site import SECRET, SiteOf, read_site
from homeport.platforms.butler.provider.usage import KINDS, Users
from homeport.platforms.butler.reconciler import ButlerReconciler
from homeport.runtime.cache import key_of
from homeport.runtime.clock import rfc3339
from homeport.runtime.informer import metadata_only
from homeport.runtime.outcome import Wait
from homeport.runtime.reconciler import Phase, Scope

PROBE_SECONDS = 300.0
_PROBLEM_SECONDS = 60.0  # what is missing at the provider is often created next


class ProviderConfigReconciler(ButlerReconciler[ProviderConfig, Scope[ProviderConfig]]):
    controller_name = "butler-providerconfig"
    kind = ProviderConfig
    finalizer = finalizer("ProviderConfig")
    waits_are_events = False

    def __init__(self, setup: Setup, accesses: Accesses) -> None:
        super().__init__(setup.manager)
        self._accesses = accesses
        self._users = Users(setup.manager)
        self._failures: dict[Key, int] = {}
        self.controller.map(metadata_only(SECRET), self._users_of_secret)
        for kind in KINDS:
            self.controller.map(kind, self._waiting_for, predicate=_went)
        self.controller.map(ImageSync, self._users.used_by, predicate=_image_changed)

    def predicate(self, old: ProviderConfig | None, new: ProviderConfig | None) -> bool:
        return edited(old, new)

    def forget(self, key: Key) -> None:
        super().forget(key)
        self._failures.pop(key, None)

    def load(self, obj: ProviderConfig) -> Scope[ProviderConfig]:
        return Scope(obj)

    def phases(self, scope: Scope[ProviderConfig]) -> Sequence[Phase[Scope[ProviderConfig]]]:
        if scope.deleting:
            return [self._await_unused, self.drop_finalizer]
        return [self.hold_finalizer, self._probe]

    # -- the probe ---------------------------------------------------------------------------------------------

    async def _probe(self, scope: Scope[ProviderConfig]) -> Wait | None:
        status = scope.object.status
        status.observed_generation = scope.object.metadata.generation
        try:
            wait = await self._probed(scope)
        except ProviderError as error:
            put_failure(self._put(scope), error)
            status.ready = False
            status.validated = status.validated and can_not_ask(error)  # an outage does not make the spec wrong
            count = self._failures[scope.key] = self._failures.get(scope.key, 0) + 1
            after = min(delay_of(error, count), PROBE_SECONDS)
            return Wait(reason_of(error), error.message, after=after, warning=True)
        self._failures.pop(scope.key, None)
        status.ready = status.validated = wait is None
        after = PROBE_SECONDS if wait is None else _PROBLEM_SECONDS
        scope.timer = Wait("ProbeAgain", after=after, quiet=True)
        return wait

    async def _probed(self, scope: Scope[ProviderConfig]) -> Wait | None:
        status, now = scope.object.status, rfc3339(self.clock.now())
        found = await self._read(scope)
        access: PlatformAccess = self._accesses.of(found.support)
        status.last_probe_time = now
        report = await access.probe(found.site)
        status.last_validation_time = now
        put_findings(status, report)
        return put_report(self._put(scope), report)

    async def _read(self, scope: Scope[ProviderConfig]) -> SiteOf:
        status = scope.object.status
        status.provider = scope.object.spec.provider or scope.object.spec.type
        found = await read_site(self.client, self._accesses.supports, scope.object)
        status.endpoint = str(found.site.server)
        status.credentials_version = found.secret_version
        return found

    def _put(self, scope: Scope[ProviderConfig]) -> Any:
        now = rfc3339(self.clock.now())

        def put(kind: str, status: Literal["True", "False", "Unknown"], reason: str, message: str) -> None:
            scope.report(kind, status, reason, message, now)

        return put

    # -- the end -----------------------------------------------------------------------------------------------

    async def _await_unused(self, scope: Scope[ProviderConfig]) -> Wait | None:
        users = self._users.of(scope.key)
        if not users:
            return None
        more = f" and {len(users) - 5} more" if len(users) > 5 else ""
        text = f"it is used by {', '.join(users[:5])}{more}: delete them first, or wait until they are gone"
        return Wait("InUse", text, after=60.0, warning=True)

    # -- whom a change concerns --------------------------------------------------------------------------------

    def _users_of_secret(self, secret: Any) -> Iterable[Key]:
        key = key_of(secret)
        for each in self.objects:
            model = normal_provider_config(each).model
            at = model.credentials if model is not None else None
            if at is not None and Key(at.namespace, at.name) == key:
                yield key_of(each)

    def _waiting_for(self, obj: Any) -> Iterable[Key]:
        del obj
        return [key_of(each) for each in self.objects if each.metadata.deletion_timestamp]


def _image_changed(old: ImageSync | None, new: ImageSync | None) -> bool:
    """Machines can use another image, or one less."""
    return _usable(old) != _usable(new)


def _usable(sync: ImageSync | None) -> str:
    return sync.status.provider_image_ref if sync is not None and sync.status.phase == "Ready" else ""


def _went(old: Any, new: Any) -> bool:
    del old
    return new is None
