"""KubeconfigGenerator: the loop. One Secret `<generator>-<control plane>` beside each selected control plane."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import Any

from homeport.api.meta import Resource, wire
from homeport.api.steward.v1alpha1 import AnyKubeconfigGenerator, AnyTenantControlPlane, CompoundValue, GeneratorError
from homeport.capi.object.ownership import owner_reference
from homeport.capi.remote import kubeconfig as stored
from homeport.capi.remote.pki import SECRET, KeyPair
from homeport.client.config import ConfigError
from homeport.client.errors import Conflict, NotFound
from homeport.client.protocol import Key, Query
from homeport.hosted import kubeconfig
from homeport.hosted import name as names
from homeport.hosted.flavour import Flavour
from homeport.hosted.ownership import NameTaken, is_owned_by
from homeport.hosted.secret import Data, SecretKeeper, decoded
from homeport.machinery.selector import EVERYTHING, LabelSelector, from_label_selector
from homeport.runtime.cache import key_of
from homeport.runtime.manager import Manager
from homeport.runtime.outcome import Wait
from homeport.runtime.reconciler import Phase, Scope
from homeport.runtime.skeleton import ObjectReconciler

NAMESPACE = Resource("", "v1", "Namespace", "namespaces", namespaced=False)
_DAY_SECONDS = 86_400.0
_FILE = "value"


class KubeconfigGeneratorReconciler(ObjectReconciler[AnyKubeconfigGenerator, Scope[AnyKubeconfigGenerator]]):
    field_manager = "homeport-hosted"
    workers = 2

    def __init__(self, manager: Manager, flavour: Flavour) -> None:
        self.flavour = flavour
        self.kind = flavour.generator
        self.controller_name = f"{flavour.name}-kubeconfiggenerator"
        super().__init__(manager)
        self._tenants = manager.informers.get(flavour.tenant).cache
        self.controller.map(flavour.tenant, self.all_keys)

    def load(self, obj: AnyKubeconfigGenerator) -> Scope[AnyKubeconfigGenerator]:
        return Scope(obj)

    def phases(self, scope: Scope[AnyKubeconfigGenerator]) -> Sequence[Phase[Scope[AnyKubeconfigGenerator]]]:
        """A deletion needs nothing: the Secrets have owner references."""
        return [] if scope.deleting else [self._drop, self._hold]

    async def _drop(self, scope: Scope[AnyKubeconfigGenerator]) -> None:
        """The kubeconfigs of control planes that are deleted or no longer selected.

        The garbage collector leaves them: the generator is an owner, too.
        """
        owner, group = owner_reference(scope.object), self.flavour.group
        wanted = {self._name(scope.object, key_of(each)) for each in await self._chosen(scope.object)}
        ours = Query(labels=f"{group}/project={self.flavour.name}")
        for secret in (await self.client.list(SECRET, ours)).items:
            key, tenant = Key(secret.namespace, secret.name), str(secret.metadata["labels"].get(f"{group}/name"))
            made = key == self._name(scope.object, Key(key.namespace, tenant)) and is_owned_by(secret, owner)
            if made and key not in wanted:
                with contextlib.suppress(NotFound, Conflict):  # deleted meanwhile, or another one by now
                    await self.client.delete(SECRET, key, uid=secret.uid)

    def _name(self, generator: AnyKubeconfigGenerator, tenant: Key) -> Key:
        return Key(tenant.namespace, f"{generator.metadata.name}-{tenant.name}")

    async def _hold(self, scope: Scope[AnyKubeconfigGenerator]) -> Wait | None:
        status = scope.object.status
        chosen = await self._chosen(scope.object)
        errors = []
        for tenant in chosen:
            why = await self._hold_one(scope.object, tenant)
            if why:
                errors.append(GeneratorError(resource=str(key_of(tenant)), message=why))
        status.resources, status.errors = len(chosen), errors
        status.available_resources = len(chosen) - len(errors)
        if errors:
            text = f"{errors[0].resource}: {errors[0].message}"
            return Wait(
                "KubeconfigsMissing", f"{len(errors)} of {len(chosen)} kubeconfigs are missing: {text}", after=30.0
            )
        return None

    async def _chosen(self, generator: AnyKubeconfigGenerator) -> list[AnyTenantControlPlane]:
        spec = generator.spec
        tenants, namespaces = _selector(spec.tenant_control_plane_selector), _selector(spec.namespace_selector)
        found = [each for each in self._tenants if tenants.matches(each.metadata.labels)]
        if not namespaces.empty:
            listed = (await self.client.list(NAMESPACE, Query(labels=str(namespaces)))).items
            allowed = {each.name for each in listed}
            found = [each for each in found if each.metadata.namespace in allowed]
        return sorted(
            (each for each in found if not each.metadata.deletion_timestamp), key=lambda each: str(key_of(each))
        )

    async def _hold_one(self, generator: AnyKubeconfigGenerator, tenant: AnyTenantControlPlane) -> str:
        """'' or why there is no kubeconfig."""
        key, spec, now = key_of(tenant), generator.spec, self.clock.now()
        try:
            user = _value(spec.user, tenant)
            groups = tuple(_value(each, tenant) for each in spec.groups)
            admin = decoded(await self.client.get(SECRET, Key(key.namespace, names.part(key.name, names.ADMIN))))
            authority = decoded(await self.client.get(SECRET, Key(key.namespace, names.part(key.name, names.CA))))
            server = stored.parse(admin[spec.control_plane_endpoint_from]).server
        except NotFound:
            return "the control plane has no kubeconfig yet"
        except KeyError:
            return f"spec.controlPlaneEndpointFrom: its kubeconfig has no key {spec.control_plane_endpoint_from!r}"
        except (ValueError, ConfigError) as error:
            return str(error)
        ca = KeyPair(authority["ca.crt"], authority["ca.key"])
        metadata = {
            "labels": names.labels(self.flavour.group, key.name, self.flavour.name),
            "ownerReferences": [owner_reference(generator), owner_reference(tenant)],
        }

        def stale(data: Data) -> str:
            return kubeconfig.stale(data.get(_FILE, b""), server, ca, user, groups, now=now)

        def make(_: Data) -> Data:
            return {_FILE: kubeconfig.make(key.name, server, ca, user, groups, now=now)}

        keeper = SecretKeeper(self.client, self._write, key.namespace, metadata)
        try:
            await keeper.hold(self._name(generator, key).name, stale, make)
        except NameTaken as error:
            return str(error)
        return ""

    def next_look(self, scope: Scope[AnyKubeconfigGenerator], wait: Wait | None) -> Wait | None:
        if wait is None and not scope.deleting:
            wait = Wait("Renewal", "kubeconfigs are renewed before they expire", after=_DAY_SECONDS, quiet=True)
        return super().next_look(scope, wait)


def _selector(given: dict[str, Any]) -> LabelSelector:
    """Raises SelectorError, which is reported on the object."""
    return from_label_selector(given) if given else EVERYTHING


def _value(given: CompoundValue, tenant: AnyTenantControlPlane) -> str:
    """Raises ValueError."""
    if given.string_value:
        return given.string_value
    value: Any = wire(tenant)
    for step in given.from_definition.removeprefix(".").split("."):
        value = value.get(step) if isinstance(value, dict) else None
    if not isinstance(value, str | int) or value == "":
        raise ValueError(f"fromDefinition: the TenantControlPlane has no text at {given.from_definition!r}")
    return str(value)
