"""Failure domains: how InfraClusters publish them, and what keeps objects that define them from being deleted."""

from __future__ import annotations

import typing
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from homeport.api.cluster.v1beta2 import Machine, MachineDeployment
from homeport.api.meta import Object
from homeport.client.protocol import Key
from homeport.infra.protocol import FailureDomain
from homeport.infra.reconciler import ProviderReconciler, ProviderScope
from homeport.runtime.controller import Controller
from homeport.runtime.manager import Manager
from homeport.runtime.outcome import Wait

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
    if not is_listed(status):
        return rendered
    return [{"name": name, **fields} for name, fields in rendered.items()]


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


class FailureDomainReconciler(ProviderReconciler[D], Generic[D]):
    """Objects that define failure domains stay while anything in their namespace is placed by them."""

    condition = SAFE

    def __init__(self, manager: Manager, provider: str, kind: type[D], finalizer: str, users: Sequence[User]) -> None:
        super().__init__(manager, provider, kind, finalizer)
        self._domains = manager.informers.get(kind).cache
        self._users = [(each, manager.informers.get(each.kind).cache) for each in users]

    async def reconcile(self, key: Key) -> Wait | None:
        domain = self._domains.get(key)
        if domain is None:
            return None
        scope = ProviderScope(domain)
        if not scope.deleting:
            await self._hold_finalizer(scope)
            return None
        return await self.reported(scope, self._release(scope))

    async def _release(self, scope: ProviderScope[D]) -> Wait | None:
        users = list(self._found(scope.key))
        if users:
            more = f" and {len(users) - _SHOWN} more" if len(users) > _SHOWN else ""
            return Wait("FailureDomainInUse", f"still used by {', '.join(users[:_SHOWN])}{more}", warning=True)
        await self._drop_finalizer(scope)
        return None

    def _found(self, key: Key) -> Iterator[str]:
        for user, cache in self._users:
            for each in cache.list(key.namespace):
                if key.name in user.names(each):
                    yield f"{user.kind.__resource__.kind} {each.metadata.name}"


def install(manager: Manager, provider: str, kind: type[D], finalizer: str, users: Sequence[User]) -> None:
    """`users`: kinds of the provider that refer to failure domains. Machines and MachineDeployments always do."""
    domains, everybody = manager.informers.get(kind).cache, (*users, *_USERS)

    def waiting(obj: Any) -> Iterator[Key]:
        """Those that are to be deleted may go when one of their users went."""
        for domain in domains.list(obj.metadata.namespace):
            if domain.metadata.deletion_timestamp:
                yield Key(domain.metadata.namespace, domain.metadata.name)

    reconciler = FailureDomainReconciler(manager, provider, kind, finalizer, everybody)
    controller = Controller(kind.__resource__.kind.lower(), kind, reconciler, workers=2)
    for user in everybody:
        controller.map(user.kind, waiting)
    manager.add(controller)
