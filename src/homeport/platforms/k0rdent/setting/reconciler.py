"""ClusterAuthentication and ClusterAuditPolicy: whether API servers would accept them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from homeport.api.k0rdent.v1beta1 import ClusterAuditPolicy, ClusterAuthentication
from homeport.capi.component import Setup
from homeport.client.protocol import Key
from homeport.platforms.k0rdent.management.credential import SECRET
from homeport.platforms.k0rdent.reconciler import KindReconciler
from homeport.platforms.k0rdent.setting.audit import audit_error
from homeport.platforms.k0rdent.setting.authentication import authentication_error, authority_key
from homeport.platforms.k0rdent.setting.find import read_authority
from homeport.runtime.cache import key_of
from homeport.runtime.informer import metadata_only
from homeport.runtime.outcome import Wait
from homeport.runtime.reconciler import Phase, Scope


class SettingReconciler(KindReconciler[Any]):
    workers = 1

    def __init__(self, setup: Setup, kind: type[Any]) -> None:
        super().__init__(setup.manager, kind)
        if kind is ClusterAuthentication:
            self.controller.map(metadata_only(SECRET), self._of_secret)

    def _of_secret(self, secret: Any) -> Iterable[Key]:
        at = key_of(secret)
        return [key_of(each) for each in self.objects if authority_key(each) == at]

    def phases(self, scope: Scope[Any]) -> Sequence[Phase[Scope[Any]]]:
        return [self._judge]

    async def _judge(self, scope: Scope[Any]) -> Wait | None:
        obj = scope.object
        obj.status.observed_generation = obj.metadata.generation
        wrong = await self._error(obj)
        return Wait("Failed", wrong, warning=True) if wrong else None

    async def _error(self, obj: Any) -> str:
        if isinstance(obj, ClusterAuditPolicy):
            return audit_error(obj)
        if wrong := authentication_error(obj):
            return wrong
        try:
            await read_authority(self.client, obj)
        except ValueError as error:
            return str(error)
        return ""


def install(setup: Setup) -> None:
    for kind in (ClusterAuthentication, ClusterAuditPolicy):
        setup.manager.add(SettingReconciler(setup, kind).controller)
