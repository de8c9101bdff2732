"""Machines of platforms: one VM that belongs to no Cluster, through the same driver as those of clusters."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Generic, TypeVar

import msgspec

from homeport.api.meta import Object, ObjectMeta, wire
from homeport.capi.platform import ImageFact, MachineFact, MachineOrder, MachineOutcome, Problem, Resolved, Shape
from homeport.infra.error import Ambiguous, Denied, ProviderError, Throttled, Unreachable, policy_of
from homeport.infra.preflight.fit import system_of
from homeport.infra.protocol import Instance, MachineDriver, MachineScope, Session
from homeport.runtime.outcome import Wait

M = TypeVar("M", bound=Object)
S = TypeVar("S", bound=Session)
T = TypeVar("T")

_MISSING_SECONDS = 30.0
# What a driver does not need in its next call, or what the order says.
_NOT_KEPT = ("conditions", "initialization", "ready", "addresses", "v1beta2", "failureReason", "failureMessage")


class DriverMachines(Generic[M, S]):
    """The Machines of a provider. `render` gives an object of the provider's machine kind that is never stored."""

    def __init__(
        self,
        driver: MachineDriver[Any, M, S],
        connect: Callable[[Any], Awaitable[S]],
        render: Callable[[Any, Shape], M],
        fence: Callable[[], object],
    ) -> None:
        self._driver = driver
        self._connect = connect
        self._render = render
        self._fence = fence

    def stop_watching(self, uid: str) -> None:
        self._driver.stop_watching(uid)

    async def converge(self, site: Any, order: MachineOrder) -> MachineOutcome:
        scope = self._scope(order, self._render(site, order.shape), await self._connect(site))
        try:
            instance = await self._driver.observe(scope)
            if instance is None and order.has_run:
                return MachineOutcome(wait=_vanished(order), kept=_kept(scope.infra))
            self._fence()
            wait = await self._driver.converge(scope, instance)
        finally:
            order.kept = _kept(scope.infra)
        return MachineOutcome(wait=wait, machine=_fact(instance), kept=order.kept)

    async def release(self, site: Any, order: MachineOrder) -> MachineOutcome:
        scope = self._scope(order, self._render(site, order.shape), await self._connect(site))
        try:
            instance = await self._driver.observe(scope)
            self._fence()
            wait = await self._driver.release(scope, instance)
        finally:
            order.kept = _kept(scope.infra)
        return MachineOutcome(wait=wait, machine=_fact(instance), kept=order.kept)

    async def observe(self, site: Any, order: MachineOrder) -> MachineFact | None:
        """None: the vendor was asked, and has no machine with this mark. Nothing is changed."""
        scope = self._scope(order, self._render(site, order.shape), await self._connect(site))
        return _fact(await self._driver.observe(scope))

    def _scope(self, order: MachineOrder, infra: M, session: S) -> MachineScope[Any, M, S]:
        held: Any = infra
        infra.metadata = ObjectMeta(
            name=order.object_name,
            namespace=order.namespace,
            uid=order.uid,
            annotations=dict(order.annotations),
            deletion_timestamp="now" if order.deleting else None,
        )
        held.spec.provider_id = order.provider_id
        held.status = msgspec.convert(dict(order.kept), type(held.status), strict=False)
        held.status.initialization.provisioned = order.has_run

        async def record(annotations: Mapping[str, str]) -> None:
            await order.record(annotations)
            infra.metadata.annotations.update(annotations)

        return MachineScope(
            infra=infra,
            session=session,
            name=order.name,
            control_plane=order.control_plane,
            has_run=order.has_run,
            user_data=order.user_data,
            bare=not order.user_data,
            record=record,
            wake=order.wake,
        )


def _kept(infra: Object) -> dict[str, Any]:
    found: dict[str, Any] = wire(getattr(infra, "status", None))
    return {name: value for name, value in found.items() if name not in _NOT_KEPT}


def _vanished(order: MachineOrder) -> Wait:
    text = f"VM {order.name} ({order.provider_id}) was not found; delete this object to replace the VM"
    return Wait("InstanceNotFound", text, after=_MISSING_SECONDS, warning=True)


def _fact(instance: Instance | None) -> MachineFact | None:
    if instance is None:
        return None
    return MachineFact(
        id=instance.id,
        provider_id=instance.provider_id,
        name=instance.name,
        power=instance.power,
        addresses=tuple(each.address for each in instance.addresses if each.type == "InternalIP"),
    )


# -- probes ----------------------------------------------------------------------------------------------------------


class Findings:
    """What a probe finds wrong with the references of a site, each reported on its field."""

    def __init__(self) -> None:
        self.problems: list[Problem] = []
        self.resolved: list[Resolved] = []

    def add(self, reason: str, message: str, *, advisory: bool = False) -> None:
        self.problems.append(Problem(reason, message, advisory))

    async def tried(self, work: Awaitable[T], field: str = "", name: str = "") -> T | None:
        """None: something is wrong with what was looked up. Raises if the vendor could not be asked."""
        try:
            return await work
        except (Unreachable, Throttled, Denied):
            raise
        except Ambiguous as error:
            self.add("Ambiguous", error.message)
            if field:
                self.resolved.append(Resolved(field, name, "", error.candidates))
            return None
        except ProviderError as error:
            self.add(policy_of(error).reason, error.message)
            return None


def image_facts(
    images: Sequence[tuple[str, str, bool, int]], systems: Mapping[str, str] | None = None
) -> tuple[ImageFact, ...]:
    """From (id, name, usable, size), sorted by name. `systems`: by id, of images that say what is in them."""
    known = systems or {}
    made = [ImageFact(id_, name, known.get(id_) or system_of(name), usable, size) for id_, name, usable, size in images]
    return tuple(sorted(made, key=lambda each: (each.name, each.id)))
