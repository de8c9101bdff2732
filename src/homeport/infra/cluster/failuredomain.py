"""Failure domains: how InfraClusters publish them, and what keeps objects that define them from being deleted."""

from __future__ import annotations

import functools
import typing
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from homeport.api.cluster.v1beta2 import Machine, MachineDeployment
from homeport.api.meta import Object
from homeport.client.protocol import Key
from homeport.infra.protocol import FailureDomain
from homeport.machinery import condition
from homeport.runtime.manager import Manager
from homeport.runtime.outcome import Wait
from homeport.runtime.reconciler import Phase, Scope
from homeport.runtime.skeleton import ObjectReconciler

D = TypeVar("D", bound=Object)
SAFE = "FailureDomainSafeForDeletion"
_SHOWN = 5


def render_failure_domains(domains: Sequence[FailureDomain], status: type[Any]) -> Any:
    """In the form of the kind: a map by name as in contract v1beta1, or a list as in v1beta2."""
    rendered = {
        each.name: {
            "controlPlane": each.control_plane,
            **({"attributes": dict(each.attributes)} if each.attributes else {}),
        }
        for each in domains
    }
    if not is_listed(status):  # type: ignore[arg-type]  # a type is hashable
        return rendered
    return [{"name": name, **fields} for name, fields in rendered.items()]


@functools.cache
def is_listed(status: type[Any]) -> bool:
    """Whether `status.failureDomains` of a kind is a list."""
    field = typing.get_type_hints(status, include_extras=False)["failure_domains"]
    return any((typing.get_origin(each) or each) is list for each in (field, *typing.get_args(field)))


@dataclass(frozen=True, slots=True)
class User:
    """A kind of objects that may refer to failure domains. `names`: those that one of them refers to."""

    kind: type[Any]
    names: Callable[[Any], Iterable[str]]


_USERS = (
    User(MachineDeployment, lambda each: (each.spec.template.spec.failure_domain,)),
    User(Machine, lambda each: (each.spec.failure_domain,)),
)


class DomainScope(Scope[D]):
    def report(self, kind: str, status: condition.Status, reason: str, message: str, now: str) -> bool | None:
        """The condition is about deletion."""
        return super().report(kind, status, reason, message, now) if self.deleting else False


class FailureDomainReconciler(ObjectReconciler[D, DomainScope[D]], Generic[D]):
    """Objects that define failure domains stay while anything in their namespace is placed by them."""

    condition = SAFE
    drop_empty_messages = True
    workers = 2

    def __init__(self, manager: Manager, provider: str, kind: type[D], finalizer: str, users: Sequence[User]) -> None:
        self.controller_name = kind.__resource__.kind.lower()
        self.kind = kind
        self.field_manager = f"homeport-{provider}"
        self.finalizer = finalizer
        super().__init__(manager)
        self._users = [(each, manager.informers.get(each.kind).cache) for each in users]

    def load(self, obj: D) -> DomainScope[D]:
        return DomainScope(obj)

    def phases(self, scope: DomainScope[D]) -> Sequence[Phase[DomainScope[D]]]:
        return [self._await_users, self.drop_finalizer] if scope.deleting else [self.hold_finalizer]

    async def _await_users(self, scope: DomainScope[D]) -> Wait | None:
        users = list(self._found(scope.key))
        if not users:
            return None
        more = f" and {len(users) - _SHOWN} more" if len(users) > _SHOWN else ""
        return Wait("FailureDomainInUse", f"still used by {', '.join(users[:_SHOWN])}{more}", warning=True)

    def _found(self, key: Key) -> Iterator[str]:
        for user, cache in self._users:
            for each in cache.list(key.namespace):
                if key.name in user.names(each):
                    yield f"{user.kind.__resource__.kind} {each.metadata.name}"


def install(manager: Manager, provider: str, kind: type[D], finalizer: str, users: Sequence[User]) -> None:
    """`users`: kinds of the provider that refer to failure domains. Machines and MachineDeployments always do."""
    everybody = (*users, *_USERS)
    reconciler = FailureDomainReconciler(manager, provider, kind, finalizer, everybody)

    def waiting(obj: Any) -> Iterator[Key]:
        """Those that are to be deleted may go when one of their users went."""
        for domain in reconciler.objects.list(obj.metadata.namespace):
            if domain.metadata.deletion_timestamp:
                yield Key(domain.metadata.namespace, domain.metadata.name)

    for user in everybody:
        reconciler.controller.map(user.kind, waiting)
    manager.add(reconciler.controller)
