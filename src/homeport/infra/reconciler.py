"""What the reconcilers of InfraClusters and InfraMachines have in common: pauses, finalizers, and vendors' failures."""

from __future__ import annotations

from collections.abc import Awaitable, Mapping
from typing import Any, Generic, TypeVar

from homeport.api.cluster.v1beta2 import Cluster, Machine
from homeport.api.meta import Object
from homeport.capi.name import Condition
from homeport.capi.object.paused import is_paused, paused_condition
from homeport.client.errors import NotFound
from homeport.client.protocol import Key, MergePatch
from homeport.infra.error import ProviderError, Throttled, can_not_ask, delay_of, policy_of
from homeport.machinery import condition
from homeport.runtime.clock import rfc3339
from homeport.runtime.controller import Controller
from homeport.runtime.manager import Manager
from homeport.runtime.outcome import Wait
from homeport.runtime.reconciler import Reporting, Scope

O = TypeVar("O", bound=Object)
S = TypeVar("S")


class ProviderScope(Scope[O]):
    """An object in work. `asked`: a connection was made. `unasked`: the vendor could not be asked in this loop."""

    def __init__(self, obj: O) -> None:
        super().__init__(obj)
        self.asked = False
        self.unasked = False


class ProviderReconciler(Reporting[ProviderScope[Any]], Generic[O]):
    drop_empty_messages = (
        True  # definitions of providers that are about refuse conditions whose message is there and empty
    )

    def __init__(
        self, manager: Manager, provider: str, kind: type[O], finalizer: str, former: frozenset[str] = frozenset()
    ) -> None:
        super().__init__(manager.client, manager.recorder, manager=f"homeport-{provider}", clock=manager.clock)
        self._kind = kind
        self._finalizer = finalizer
        self._finalizers = former | {finalizer}
        self._fence = manager.fence
        self._failures: dict[Key, int] = {}
        self._controller: Controller | None = None

    def attach(self, controller: Controller) -> None:
        """Whom to wake when a vendor's task ends, and when it is time for another look."""
        self._controller = controller

    def _wake(self, key: Key, after: float = 0.0) -> None:
        if self._controller is not None:
            self._controller.queue.add(key, after=after)

    # -- reports -----------------------------------------------------------------------------------------------

    def _condition(self, scope: ProviderScope[O], kind: str, ok: bool, reason: str, message: str = "") -> None:
        status: condition.Status = "True" if ok else "False"
        scope.report(kind, status, reason, message, rfc3339(self.clock.now()))

    async def _rests(self, scope: ProviderScope[O], cluster: Cluster | None) -> bool:
        """Whether it is paused; the object says so, and says when it is no longer."""
        self._say_paused(scope, cluster)
        if not is_paused(cluster, scope.object):
            return False
        await self._store(scope)
        return True

    def _say_paused(self, scope: ProviderScope[O], cluster: Cluster | None) -> None:
        status: Any = getattr(scope.object, "status", None)
        now, generation = rfc3339(self.clock.now()), scope.object.metadata.generation
        status.conditions = paused_condition(status.conditions, cluster, scope.object, now=now, generation=generation)

    def _failed(self, key: Key, error: ProviderError) -> Wait:
        """Vendors' failures become a reason to wait: said on the object, tried again at the right time."""
        count = self._failures[key] = self._failures.get(key, 0) + 1
        policy = policy_of(error)
        return Wait(policy.reason, error.message, after=delay_of(error, count), warning=policy.warning)

    def _went_well(self, key: Key) -> None:
        self._failures.pop(key, None)

    # -- whether the vendor can be asked -----------------------------------------------------------------------
    # What runs goes on running while its vendor is away: that we can't manage it is a condition of its own.

    async def _session(self, scope: ProviderScope[O], connecting: Awaitable[S]) -> S:
        try:
            session = await connecting
        except ProviderError as error:
            error.connecting = True
            raise
        scope.asked = True
        return session

    def _report_reachable(self, scope: ProviderScope[O], error: ProviderError | None = None) -> None:
        kind = Condition.INFRASTRUCTURE_REACHABLE
        if error is not None and can_not_ask(error):
            scope.unasked = is_provisioned(scope.object) and not scope.deleting
            if isinstance(error, Throttled):
                return  # it answers, and does so again in a moment
            news = scope.report(kind, "False", policy_of(error).reason, error.message, rfc3339(self.clock.now()))
            if news and scope.unasked:
                self.recorder.record(scope.object, policy_of(error).reason, error.message, warning=True)
        elif scope.asked:
            self._condition(scope, kind, True, "Succeeded")

    def _report_wait(
        self, scope: ProviderScope[Any], reason: str, message: str, *, warn: bool, quiet: bool = False
    ) -> None:
        """Of a machine that could not be looked at, what was last known stays."""
        if not scope.unasked:
            super()._report_wait(scope, reason, message, warn=warn, quiet=quiet)

    async def _store(self, scope: ProviderScope[O]) -> None:
        status: Any = getattr(scope.object, "status", None)
        if self.drop_empty_messages and status is not None:
            status.conditions = [_without_empty_message(each) for each in status.conditions]
        await super()._store(scope)

    # -- finalizers --------------------------------------------------------------------------------------------

    async def _hold_finalizer(self, scope: ProviderScope[O]) -> None:
        held = scope.object.metadata.finalizers
        if self._finalizers.intersection(held) != {self._finalizer}:
            others = [each for each in held if each not in self._finalizers]
            await self._write_finalizers(scope, [*others, self._finalizer], self._marks(scope.object))

    def _marks(self, obj: O) -> dict[str, str]:
        """Annotations that an object gets together with its finalizer."""
        del obj
        return {}

    def _holds(self, scope: ProviderScope[O]) -> bool:
        return not self._finalizers.isdisjoint(scope.object.metadata.finalizers)

    async def _drop_finalizer(self, scope: ProviderScope[O]) -> None:
        left = [each for each in scope.object.metadata.finalizers if each not in self._finalizers]
        try:
            await self._write_finalizers(scope, left)
        except NotFound:
            return

    async def _write_finalizers(
        self, scope: ProviderScope[O], finalizers: list[str], annotations: Mapping[str, str] | None = None
    ) -> None:
        meta = scope.object.metadata
        own = {"annotations": dict(annotations)} if annotations else {}
        body = {"finalizers": finalizers, "uid": meta.uid, "resourceVersion": meta.resource_version, **own}
        scope.update_metadata(
            await self.client.patch(self._kind, scope.key, MergePatch({"metadata": body}), self._write)
        )


def _without_empty_message(found: dict[str, Any]) -> dict[str, Any]:
    return found if found.get("message", "?") else {key: value for key, value in found.items() if key != "message"}


def is_provisioned(obj: Any) -> bool:
    return bool(obj.status.initialization.provisioned or obj.status.ready)


def has_run(obj: Any, machine: Machine) -> bool:
    """The status is lost when objects move to another plane; a Machine is told the id of what it runs on only once it
    is provisioned, and keeps it."""
    return is_provisioned(obj) or bool(machine.spec.provider_id and machine.spec.provider_id == obj.spec.provider_id)
