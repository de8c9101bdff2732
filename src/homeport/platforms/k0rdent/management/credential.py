"""Credential: ready when its identity exists. The identity belongs to the user: it is read, never owned."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from homeport.api.k0rdent.v1beta1 import Credential
from homeport.api.meta import Resource
from homeport.capi.component import Setup
from homeport.capi.resolution import plural
from homeport.client.errors import ApiError, NotFound
from homeport.client.protocol import Key
from homeport.machinery.gvk import parse_api_version
from homeport.platforms.k0rdent.name import SYSTEM_NAMESPACE
from homeport.platforms.k0rdent.reconciler import K0rdentReconciler
from homeport.runtime.informer import metadata_only
from homeport.runtime.outcome import Wait
from homeport.runtime.reconciler import Phase, Scope

SECRET = Resource("", "v1", "Secret", "secrets")
CONDITION = "CredentialReady"
_RETRY_SECONDS = 30.0
_RESYNC_SECONDS = 900.0


def identity_key(credential: Credential) -> Key:
    ref = credential.spec.identity_ref
    return Key(ref.namespace or credential.metadata.namespace, ref.name)


def identity_error(credential: Credential) -> str:
    """What is wrong with the reference itself; '' if it can be followed."""
    ref, own = credential.spec.identity_ref, credential.metadata.namespace
    if not ref.kind or not ref.name:
        return "spec.identityRef: kind and name are required"
    if ref.namespace and ref.namespace != own and own != SYSTEM_NAMESPACE:
        return (
            f'spec.identityRef.namespace: "{ref.namespace}" is not the namespace of the Credential ({own}): only '
            f"Credentials in {SYSTEM_NAMESPACE} may use identities of other namespaces"
        )
    return ""


class CredentialScope(Scope[Credential]):
    def report(self, kind: str, status: Any, reason: str, message: str, now: str) -> bool | None:
        self.object.status.ready = status == "True"
        if status == "True":
            reason, message = "Succeeded", "Credential is ready"
        return super().report(kind, status, reason, message, now)


class CredentialReconciler(K0rdentReconciler[Credential, CredentialScope]):
    controller_name = "k0rdent-credential"
    kind = Credential
    condition = CONDITION
    workers = 2

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup.manager)
        self.controller.map(metadata_only(SECRET), self._users)

    def _users(self, secret: Any) -> Iterable[Key]:
        at = Key(secret.metadata.namespace, secret.metadata.name)
        return [Key(each.metadata.namespace, each.metadata.name) for each in self.objects if identity_key(each) == at]

    def load(self, obj: Credential) -> CredentialScope | None:
        return None if obj.metadata.deletion_timestamp else CredentialScope(obj)

    def phases(self, scope: CredentialScope) -> Sequence[Phase[CredentialScope]]:
        return [self._find_identity]

    async def _find_identity(self, scope: CredentialScope) -> Wait | None:
        obj = scope.object
        obj.status.observed_generation = obj.metadata.generation
        if wrong := identity_error(obj):
            return Wait("Failed", wrong, warning=True)
        if obj.spec.region:
            text = "spec.region: Homeport has no regions: leave it out, and create another Credential"
            return Wait("Failed", text, warning=True)
        ref, key = obj.spec.identity_ref, identity_key(obj)
        at = parse_api_version(ref.api_version or "v1")
        kind = Resource(at.group, at.version, ref.kind, plural(ref.kind))
        try:
            await self.client.get(kind, key)
        except NotFound:
            text = (
                f"{ref.kind} {key} of spec.identityRef does not exist: create it; reconciliation resumes automatically"
            )
            return Wait("Failed", text, after=_RETRY_SECONDS, warning=True)
        except ApiError as error:
            return Wait("Failed", f"{ref.kind} {key} of spec.identityRef: {error}", after=_RETRY_SECONDS, warning=True)
        scope.timer = Wait("Resync", after=_RESYNC_SECONDS, quiet=True)
        return None


def install(setup: Setup) -> None:
    setup.manager.add(CredentialReconciler(setup).controller)
