"""AccessManagement: gives namespaces copies of objects of kcm-system, and takes them back when access ends.

Only copies are written or deleted: objects with our label that the AccessManagement owns. What a ClusterDeployment uses
stays until it no longer does: without its credentials a cluster could not even be deleted.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from homeport.api.k0rdent.v1beta1 import (
    AccessManagement,
    ClusterDeployment,
)
from homeport.api.k0rdent.v1beta1.access import ResourceOutcome
from homeport.api.meta import Resource
from homeport.capi.component import Setup
from homeport.client.protocol import Key
from homeport.platforms.k0rdent.access.copier import Copier
from homeport.platforms.k0rdent.access.copy import is_copy
from homeport.platforms.k0rdent.access.rule import (
    CONFIG_MAP,
    SHARED,
    SHARED_TYPES,
    Granted,
    Labelled,
    Target,
    add_secrets,
    add_templates,
    granted,
)
from homeport.platforms.k0rdent.access.use import users_of
from homeport.platforms.k0rdent.management.credential import SECRET, identity_key
from homeport.platforms.k0rdent.name import MANAGED_LABEL, MANAGEMENT, SYSTEM_NAMESPACE
from homeport.platforms.k0rdent.reconciler import K0rdentReconciler, management_key
from homeport.platforms.k0rdent.setting.authentication import authority_key
from homeport.runtime.cache import key_of
from homeport.runtime.informer import metadata_only
from homeport.runtime.outcome import Wait
from homeport.runtime.reconciler import Phase, Scope

NAMESPACE = Resource("", "v1", "Namespace", "namespaces", namespaced=False)
_RETRY_SECONDS = 60.0
_RESYNC_SECONDS = 600.0


class AccessReconciler(K0rdentReconciler[AccessManagement, Scope[AccessManagement]]):
    controller_name = "k0rdent-accessmanagement"
    kind = AccessManagement
    condition = ""  # status.error and status.resources say what others have conditions for
    workers = 1

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup.manager)
        self._namespaces: Any = self.informers.get(metadata_only(NAMESPACE)).cache
        self._deployments = self.informers.get(ClusterDeployment).cache
        kinds: list[Any] = [*SHARED_TYPES, metadata_only(SECRET), metadata_only(CONFIG_MAP)]
        self._caches: dict[str, Any] = {each.__resource__.kind: self.informers.get(each).cache for each in kinds}
        self._copier = Copier(self.client, self._write)
        for each in kinds:
            self.controller.map(each, management_key, predicate=self._concerns_us)
        self.controller.map(metadata_only(NAMESPACE), management_key)
        self.controller.map(ClusterDeployment, management_key, predicate=_uses_changed)

    def load(self, obj: AccessManagement) -> Scope[AccessManagement] | None:
        return None if obj.metadata.deletion_timestamp or obj.metadata.name != MANAGEMENT else Scope(obj)

    def phases(self, scope: Scope[AccessManagement]) -> Sequence[Phase[Scope[AccessManagement]]]:
        return [self._hold]

    async def _hold(self, scope: Scope[AccessManagement]) -> Wait | None:
        obj, status = scope.object, scope.object.status
        status.observed_generation = obj.metadata.generation
        if blind := self.informers.unreadable(SYSTEM_NAMESPACE, *SHARED):
            status.error = blind
            return Wait("Failed", blind, after=_RETRY_SECONDS, warning=True)
        made = self._granted(obj)
        await self._write_copies(obj, made)
        await self._drop_copies(obj, made)
        status.current = list(obj.spec.access_rules)
        groups = {each.kind: each.group for each in SHARED}
        status.resources = [
            ResourceOutcome(api_group=groups.get(kind, ""), kind=kind, error="; ".join(said))
            for kind, said in sorted(made.errors.items())
            if kind
        ]
        status.error = "; ".join(text for _, said in sorted(made.errors.items()) for text in said)
        if status.error:
            return Wait("Failed", status.error, after=_RETRY_SECONDS, warning=True)
        scope.timer = Wait("Resync", after=_RESYNC_SECONDS, quiet=True)
        return None

    def _granted(self, obj: AccessManagement) -> Granted:
        alive = {
            each.metadata.name: each.metadata.labels
            for each in self._namespaces
            if not each.metadata.deletion_timestamp
        }
        sources = {kind.kind: self._originals(kind.kind) for kind in SHARED}
        made = granted(obj.spec.access_rules, alive, sources)
        for chain, template in (
            ("ClusterTemplateChain", "ClusterTemplate"),
            ("ServiceTemplateChain", "ServiceTemplate"),
        ):
            listed = {
                each.metadata.name: [one.name for one in each.spec.supported_templates]
                for each in self._caches[chain].list(SYSTEM_NAMESPACE)
            }
            add_templates(made, chain, template, listed, sources[template])
        identities = {
            each.metadata.name: identity_key(each)
            for each in self._caches["Credential"].list(SYSTEM_NAMESPACE)
            if each.spec.identity_ref.kind == "Secret"
        }
        add_secrets(made, "Credential", identities)
        authentications = self._caches["ClusterAuthentication"].list(SYSTEM_NAMESPACE)
        authorities = {each.metadata.name: key for each in authentications if (key := authority_key(each))}
        add_secrets(made, "ClusterAuthentication", authorities)
        return made

    def _originals(self, kind: str) -> Labelled:
        held = self._caches[kind].list(SYSTEM_NAMESPACE)
        return {each.metadata.name: each.metadata.labels for each in held if not each.metadata.deletion_timestamp}

    async def _write_copies(self, obj: AccessManagement, made: Granted) -> None:
        order = [each.kind for each in SHARED]
        for target, source in sorted(made.targets.items(), key=lambda each: (order.index(each[0].kind), each[0])):
            kind = SHARED[order.index(target.kind)]
            cache = self._caches[target.kind]
            seen = (cache.get(source), cache.get(Key(target.namespace, target.name)))
            if wrong := await self._copier.hold(obj, kind, target, source, seen, self._users(target)):
                made.fault(target.kind, wrong)

    async def _drop_copies(self, obj: AccessManagement, made: Granted) -> None:
        """Last made, first deleted."""
        for kind in reversed(SHARED):
            for each in list(self._caches[kind.kind]):
                target = Target(kind.kind, each.metadata.namespace, each.metadata.name)
                if target in made.targets or each.metadata.deletion_timestamp or not is_copy(each, obj):
                    continue
                if users := self._users(target):
                    text = (
                        f"{kind.kind} {key_of(each)} is kept though no rule gives access to it: "
                        f"ClusterDeployments use it: {', '.join(users[:3])}"
                    )
                    made.fault(kind.kind, text)
                else:
                    said = await self._copier.drop(obj, kind, target)
                    if said:
                        made.fault(kind.kind, said)

    def _concerns_us(self, old: Any, new: Any) -> bool:
        """An original or a copy. Secrets of Credentials may be anywhere."""
        found = new or old
        if found.metadata.namespace != SYSTEM_NAMESPACE and found.metadata.labels.get(MANAGED_LABEL) != "true":
            at = key_of(found)
            if hasattr(found, "spec") or at not in self._secrets():
                return False
        return old is None or new is None or _content(old) != _content(new)

    def _secrets(self) -> set[Key | None]:
        """That originals name."""
        credentials = self._caches["Credential"].list(SYSTEM_NAMESPACE)
        authentications = self._caches["ClusterAuthentication"].list(SYSTEM_NAMESPACE)
        return {*map(identity_key, credentials), *map(authority_key, authentications)}

    def _users(self, target: Target) -> list[str]:
        deployments = self._deployments.list(target.namespace)
        if target.kind != SECRET.kind:
            return users_of(target.kind, target.name, deployments)
        at = Key(target.namespace, target.name)
        found: set[str] = set()
        for kind, secret_of in (("Credential", identity_key), ("ClusterAuthentication", authority_key)):
            naming = [each for each in self._caches[kind].list(target.namespace) if secret_of(each) == at]
            found |= {name for each in naming for name in users_of(kind, each.metadata.name, deployments)}
        return sorted(found)


def _content(obj: Any) -> tuple[Any, ...]:
    meta = obj.metadata
    changing = None if hasattr(obj, "spec") else meta.resource_version  # Secrets and ConfigMaps have no generation
    return meta.generation, meta.labels, meta.annotations, meta.deletion_timestamp, meta.owner_references, changing


def _uses_changed(old: ClusterDeployment | None, new: ClusterDeployment | None) -> bool:
    return old is None or new is None or old.metadata.generation != new.metadata.generation


def install(setup: Setup) -> None:
    setup.manager.add(AccessReconciler(setup).controller)
