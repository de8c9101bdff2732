"""Metro availability: its objects are validated and kept while they are used, but have no effect yet.

Homeport neither places machines by a NutanixMetro nor creates protection policies and recovery plans. A machine that
asks for that gets an error; it is never placed without its failure domain.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, ClassVar, Generic, TypeVar

from homeport.api.cluster.v1beta2 import Machine, MachineDeployment
from homeport.api.meta import Object
from homeport.api.nutanix.metro import NutanixMetro, NutanixMetroSite, NutanixVirtualHADomain
from homeport.api.nutanix.v1beta1 import NutanixCluster, NutanixFailureDomain
from homeport.client.protocol import Key
from homeport.runtime.cache import key_of
from homeport.runtime.clock import rfc3339
from homeport.runtime.manager import Manager
from homeport.runtime.outcome import Wait
from homeport.runtime.reconciler import Phase, Scope
from homeport.runtime.skeleton import ObjectReconciler

O = TypeVar("O", bound=Object)

UNSUPPORTED = "MetroNotSupported"
_GROUP = "infrastructure.cluster.x-k8s.io"
_KINDS = ("NutanixMetro", "NutanixMetroSite")
_ADVICE = "name one of the two NutanixFailureDomains instead"


def refusal(domain: str) -> str:
    """Why nothing is placed by this failure domain, if it is a metro's: `NutanixMetro/<name>`. '' for all others."""
    kind, slash, _ = domain.partition("/")
    if not slash or kind not in _KINDS:
        return ""
    return f"failure domain {domain!r}: Homeport does not support placement by metro availability yet: {_ADVICE}"


class MetroReconciler(ObjectReconciler[O, Scope[O]], Generic[O]):
    """What the three kinds have in common. `validated` and `safe` are conditions as upstream spells them."""

    field_manager = "homeport-nutanix"
    validated: ClassVar[tuple[str, str, str]]  # its type, and its reasons when it holds and when not
    safe: ClassVar[tuple[str, str]]  # its type, and its reason when it doesn't hold

    def __init__(self, manager: Manager) -> None:
        self.controller_name = self.kind.__resource__.kind.lower()
        self.finalizer = f"{_GROUP}/{self.controller_name}"
        super().__init__(manager)
        informers = manager.informers
        self._domains = informers.get(NutanixFailureDomain).cache
        self._metros = informers.get(NutanixMetro).cache
        self._sites = informers.get(NutanixMetroSite).cache
        self._recoveries = informers.get(NutanixVirtualHADomain).cache
        self._clusters = informers.get(NutanixCluster).cache
        self._machines = informers.get(Machine).cache
        self._deployments = informers.get(MachineDeployment).cache

    def load(self, obj: O) -> Scope[O]:
        return Scope(obj)

    def phases(self, scope: Scope[O]) -> Sequence[Phase[Scope[O]]]:
        return [self._release, self.drop_finalizer] if scope.deleting else [self.hold_finalizer, self._normal]

    def _condition(self, scope: Scope[O], kind: str, ok: bool, reason: str, message: str) -> None:
        scope.report(kind, "True" if ok else "False", reason, message, rfc3339(self.clock.now()))

    async def _normal(self, scope: Scope[O]) -> Wait:
        wrong = list(self._wrong(scope.object))
        condition, valid, invalid = self.validated
        self._condition(scope, condition, not wrong, invalid if wrong else valid, "; ".join(wrong))
        if wrong:
            return Wait(invalid, "; ".join(wrong), warning=True)
        return Wait(UNSUPPORTED, f"Homeport does not support metro availability yet: {_ADVICE}", warning=True)

    async def _release(self, scope: Scope[O]) -> Wait | None:
        users = list(self._users(scope.key))
        if users:
            condition, reason = self.safe
            text = f"still used by {', '.join(users[:5])}" + (f" and {len(users) - 5} more" if len(users) > 5 else "")
            self._condition(scope, condition, False, reason, text)
            return Wait(reason, text, warning=True)
        return None

    @abstractmethod
    def _wrong(self, obj: Any) -> Iterator[str]:
        """What can't be right, each with its field."""

    def _users(self, key: Key) -> Iterator[str]:
        """Whatever places machines by it."""
        name = f"{self.kind.__resource__.kind}/{key.name}"
        for cluster in self._clusters.list(key.namespace):
            if name in (ref.name for ref in cluster.spec.control_plane_failure_domains):
                yield f"NutanixCluster {cluster.metadata.name}"
        for deployment in self._deployments.list(key.namespace):
            if deployment.spec.template.spec.failure_domain == name:
                yield f"MachineDeployment {deployment.metadata.name}"
        for machine in self._machines.list(key.namespace):
            if machine.spec.failure_domain == name:
                yield f"Machine {machine.metadata.name}"

    # -- references ----------------------------------------------------------------------------------------------

    def _missing_domain(self, namespace: str, name: str, field: str) -> Iterator[str]:
        if self._domains.get(Key(namespace, name)) is None:
            yield f"{field}: NutanixFailureDomain {name} does not exist: create it"

    def _domains_of_metro(self, namespace: str, name: str) -> list[str] | None:
        metro = self._metros.get(Key(namespace, name))
        return None if metro is None else [ref.name for ref in metro.spec.failure_domains]


class NutanixMetroReconciler(MetroReconciler[NutanixMetro]):
    kind = NutanixMetro
    validated = ("metroValidated", "metroSpecValid", "metroMisconfigured")
    safe = ("metroSafeForDeletion", "metroInUse")

    def _wrong(self, obj: NutanixMetro) -> Iterator[str]:
        namespace, names = obj.metadata.namespace, [ref.name for ref in obj.spec.failure_domains]
        for number, name in enumerate(names):
            yield from self._missing_domain(namespace, name, f"spec.failureDomains[{number}]")
        found = [domain for name in names if (domain := self._domains.get(Key(namespace, name))) is not None]
        places = [str(each.spec.prism_element_cluster) for each in found]
        if len(places) == 2 and places[0] == places[1]:
            yield f"spec.failureDomains: both are on Prism Element {places[0]}: choose two different ones"

    def _users(self, key: Key) -> Iterator[str]:
        for site in self._sites.list(key.namespace):
            if site.spec.metro_ref.name == key.name:
                yield f"NutanixMetroSite {site.metadata.name}"
        for each in self._recoveries.list(key.namespace):
            if each.spec.metro_ref.name == key.name:
                yield f"NutanixVirtualHADomain {each.metadata.name}"
        yield from super()._users(key)


class NutanixMetroSiteReconciler(MetroReconciler[NutanixMetroSite]):
    kind = NutanixMetroSite
    validated = ("metroSiteValidated", "metroSiteSpecValid", "metroSiteMisconfigured")
    safe = ("metroSiteSafeForDeletion", "metroSiteInUse")

    def _wrong(self, obj: NutanixMetroSite) -> Iterator[str]:
        namespace, metro = obj.metadata.namespace, obj.spec.metro_ref.name
        preferred = obj.spec.preferred_failure_domain.name
        yield from self._missing_domain(namespace, preferred, "spec.preferredFailureDomain")
        domains = self._domains_of_metro(namespace, metro)
        if domains is None:
            yield f"spec.metroRef: NutanixMetro {metro} does not exist: create it"
        elif preferred not in domains:
            yield f"spec.preferredFailureDomain: NutanixMetro {metro} has {' and '.join(domains)}, not {preferred}"


class NutanixVirtualHADomainReconciler(MetroReconciler[NutanixVirtualHADomain]):
    kind = NutanixVirtualHADomain
    validated = ("VHADomainSpecValidated", "VHADomainSpecValid", "VHADomainMisconfigured")
    safe = ("VHADomainSafeForDeletion", "VHADomainOwnerNotInDeletion")

    def _wrong(self, obj: NutanixVirtualHADomain) -> Iterator[str]:
        metro = obj.spec.metro_ref.name
        domains = self._domains_of_metro(obj.metadata.namespace, metro)
        if domains is None:
            yield f"spec.metroRef: NutanixMetro {metro} does not exist: create it"
            return
        for group in obj.spec.movement_groups:
            for number, plan in enumerate(group.category_recovery_plans):
                name = plan.failure_domain_ref.name
                if name not in domains:
                    field = f"spec.movementGroups[{group.name}].categoryRecoveryPlans[{number}].failureDomainRef"
                    yield f"{field}: NutanixMetro {metro} has {' and '.join(domains)}, not {name}"

    def _users(self, key: Key) -> Iterator[str]:
        return iter(())

    async def _normal(self, scope: Scope[NutanixVirtualHADomain]) -> Wait:
        text = "Homeport does not check the protection policy and the recovery plans"
        self._condition(scope, "VHADomainPCResourcesValidated", False, UNSUPPORTED, text)
        return await super()._normal(scope)

    async def _release(self, scope: Scope[NutanixVirtualHADomain]) -> Wait | None:
        spec = scope.object.spec
        made = [str(plan.recovery_plan) for group in spec.movement_groups for plan in group.category_recovery_plans]
        made += [str(spec.protection_policy)] if spec.protection_policy else []
        if made:
            text = (
                "these objects were not created by Homeport and stay in Prism Central: "
                f"{', '.join(dict.fromkeys(made))}"
            )
            self.recorder.record(scope.object, "RecoveryPlansKept", text, warning=True)
        return await super()._release(scope)


RECONCILERS: tuple[type[MetroReconciler[Any]], ...] = (
    NutanixMetroReconciler,
    NutanixMetroSiteReconciler,
    NutanixVirtualHADomainReconciler,
)
_REFERENCES = (NutanixFailureDomain, NutanixMetro, NutanixMetroSite, NutanixVirtualHADomain)


def install(manager: Manager) -> None:
    for made in RECONCILERS:
        reconciler = made(manager)
        objects = reconciler.objects

        def beside(obj: Any, objects: Any = objects) -> Iterable[Key]:
            """They are few, and what they refer to is in their namespace."""
            return (key_of(each) for each in objects.list(obj.metadata.namespace))

        def leaving(obj: Any, objects: Any = objects) -> Iterable[Key]:
            """Those that are to be deleted may go when one of their users went."""
            found = objects.list(obj.metadata.namespace)
            return (key_of(each) for each in found if each.metadata.deletion_timestamp)

        controller = reconciler.controller
        for kind in _REFERENCES:
            if kind is not made.kind:
                controller.map(kind, beside)
        for user in (NutanixCluster, MachineDeployment, Machine):
            controller.map(user, leaving)
        manager.add(controller)
