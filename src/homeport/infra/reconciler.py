"""What the reconcilers of InfraClusters and InfraMachines have in common: pauses, finalizers, and vendors' failures."""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import Awaitable
from typing import Any, Generic, TypeVar

import msgspec

from homeport.api.cluster.v1beta2 import Cluster, Machine
from homeport.api.meta import Object
from homeport.capi.cloud import Sources
from homeport.capi.name import BLOCK_MOVE, Condition
from homeport.capi.reconciler import CapiReconciler
from homeport.client.protocol import Key
from homeport.infra.error import Denied, ProviderError, Throttled, can_not_ask, delay_of, policy_of, seen_from
from homeport.machinery import condition
from homeport.runtime.clock import rfc3339
from homeport.runtime.manager import Manager
from homeport.runtime.outcome import Wait
from homeport.runtime.pace import Pace
from homeport.runtime.reconciler import Scope

O = TypeVar("O", bound=Object)
S = TypeVar("S")
T = TypeVar("T")

LATE = "WaitingForAnswer"
LATE_SECONDS = 3.0


class ProviderScope(Scope[O]):
    """An object in work. `asked`: a connection was made. `unasked`: the vendor could not be asked in this loop."""

    def __init__(self, obj: O, cluster: Cluster | None, machine: Machine | None = None) -> None:
        super().__init__(obj)
        self.cluster = cluster
        self.machine = machine  # that owns it, if it is an InfraMachine
        self.asked = False
        self.origin = ""  # the Secret of its connection
        self.unasked = False
        self.brief = False  # what it waits for comes in a moment, by another controller of this plane

    @property
    def urgent(self) -> bool:
        return not self.brief


class ProviderReconciler(CapiReconciler[O, ProviderScope[O]], Generic[O]):
    waits_are_events = True
    drop_empty_messages = True
    pace = Pace(1.0, settle=True)

    def __init__(
        self, manager: Manager, provider: str, name: str, kind: type[O], finalizer: str, former: frozenset[str]
    ) -> None:
        self.controller_name = f"{provider}{name}"
        self.kind = kind
        self.field_manager = f"homeport-{provider}"
        self.finalizer = finalizer
        self.former_finalizers = former
        super().__init__(manager)
        self._fence = manager.fence
        self._failures: dict[Key, int] = {}

    def predicate(self, old: O | None, new: O | None) -> bool:
        return edited(old, new)

    def forget(self, key: Key) -> None:
        super().forget(key)
        self._failures.pop(key, None)

    def cluster_of(self, scope: ProviderScope[O]) -> Cluster | None:
        return scope.cluster

    def _wake(self, key: Key, after: float = 0.0) -> None:
        """When a vendor's task ends, and when it is time for another look."""
        self.controller.queue.add(key, after=after)

    # -- reports -----------------------------------------------------------------------------------------------

    def _condition(self, scope: ProviderScope[O], kind: str, ok: bool, reason: str, message: str = "") -> None:
        status: condition.Status = "True" if ok else "False"
        scope.report(kind, status, reason, message, rfc3339(self.clock.now()))

    def _failed(self, scope: ProviderScope[O], error: ProviderError) -> Wait:
        """Vendors' failures become a reason to wait: said on the object, tried again at the right time."""
        error, key = seen_from(scope.origin, error), scope.key
        count = self._failures[key] = self._failures.get(key, 0) + 1
        policy = policy_of(error)
        after = delay_of(error, count) + _spread(key, error)
        return Wait(policy.reason, error.message, after=after, warning=policy.warning)

    def _went_well(self, key: Key) -> None:
        self._failures.pop(key, None)

    # -- whether the vendor can be asked -----------------------------------------------------------------------
    # What runs goes on running while its vendor is away: that we can't manage it is a condition of its own.

    async def _session(self, scope: ProviderScope[O], connecting: Awaitable[S], sources: Sources) -> S:
        if len(sources.secrets) == 1:
            scope.origin = f"Secret {sources.secrets[0]}"
        try:
            session = await self._answer(scope, connecting, f"the hypervisor of {scope.origin or 'this object'}")
        except ProviderError as shared:
            error = seen_from(scope.origin, shared)
            error.connecting = True
            raise error from shared.__cause__
        scope.asked = True
        return session

    def _report_reachable(self, scope: ProviderScope[O], error: ProviderError | None = None) -> None:
        kind = Condition.INFRASTRUCTURE_REACHABLE
        if error is not None and can_not_ask(error):
            error = seen_from(scope.origin, error)
            scope.unasked = is_provisioned(scope.object) and not scope.deleting
            if isinstance(error, Throttled):
                return  # it answers, and does so again in a moment
            news = scope.report(kind, "False", policy_of(error).reason, error.message, rfc3339(self.clock.now()))
            if news and scope.unasked:
                self.recorder.record(scope.object, policy_of(error).reason, error.message, warning=True)
        elif scope.asked:
            self._condition(scope, kind, True, "Succeeded")

    async def _answer(self, scope: ProviderScope[O], asked: Awaitable[T], place: str, kind: str = "") -> T:
        """What `asked` gives. One that lasts is reported meanwhile, on the condition `kind`, too: whoever looks at the
        object of a slow vendor would see what it waited for before. An earlier failure says more, and stays."""
        if is_provisioned(scope.object) or self._failures.get(scope.key):
            return await asked
        loop, reports = asyncio.get_running_loop(), list[asyncio.Task[None]]()

        def late() -> None:
            reports.append(loop.create_task(self._report_late(scope, place, kind)))

        timer = loop.call_later(LATE_SECONDS, late)
        try:
            return await asked
        finally:
            timer.cancel()
            await asyncio.gather(*reports, return_exceptions=True)

    async def _report_late(self, scope: ProviderScope[O], place: str, kind: str) -> None:
        text = f"waiting for {place} to answer"
        for each in filter(None, (self.condition, kind)):
            self._condition(scope, each, False, LATE, text)
        await self._store_interim(scope)

    def _report_wait(
        self, scope: ProviderScope[O], reason: str, message: str, *, warn: bool, quiet: bool = False
    ) -> None:
        """Of a machine that could not be looked at, what was last known stays."""
        if not scope.unasked:
            super()._report_wait(scope, reason, message, warn=warn, quiet=quiet)


def _spread(key: Key, error: ProviderError) -> float:
    """Users of one account come one after the other: if the first is refused again, the rest sends nothing."""
    pause = error.after if isinstance(error, Denied) else 0.0
    return zlib.crc32(str(key).encode()) / 2**32 * pause / 10


def is_provisioned(obj: Any) -> bool:
    return bool(obj.status.initialization.provisioned or obj.status.ready)


def has_run(obj: Any, machine: Machine) -> bool:
    """The status is lost when objects move to another plane; a Machine is told the id of what it runs on only once it
    is provisioned, and keeps it."""
    return is_provisioned(obj) or bool(machine.spec.provider_id and machine.spec.provider_id == obj.spec.provider_id)


def edited(old: Any, new: Any) -> bool:
    """Everything but what we write ourselves: status, finalizers and the provider id. A status that was lost counts."""
    if old is None or new is None:
        return True
    lost = _has_status(old) and is_provisioned(old) and not is_provisioned(new)
    return lost or _read_of(old) != _read_of(new)


def _read_of(obj: Any) -> tuple[Any, ...]:
    meta, spec = obj.metadata, obj.spec
    if hasattr(spec, "provider_id"):
        spec = msgspec.structs.replace(spec, provider_id="")
    annotations = {name: value for name, value in meta.annotations.items() if name != BLOCK_MOVE}
    return (annotations, meta.labels, meta.owner_references, meta.deletion_timestamp, spec)


def _has_status(obj: Any) -> bool:
    return hasattr(getattr(obj, "status", None), "initialization") and hasattr(obj.status, "ready")
