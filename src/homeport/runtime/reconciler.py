"""The shape of a reconcile: load, run phases, report once.

async def reconcile(self, key: Key) -> Wait | None:
    scope = await self.load(key)                 # every API object needed, read once
    if scope is None or scope.paused:
        return None
    phases = self.deletion if scope.deleting else self.normal
    return await self.reported(scope, run_phases(scope, phases))
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Generic, Protocol, TypeVar

import msgspec
import structlog

from homeport.api.meta import Object
from homeport.client.errors import ApiError, NotFound
from homeport.client.protocol import Client, Key, MergePatch, Write
from homeport.machinery import condition
from homeport.machinery.patch import diff_merge
from homeport.runtime.cache import key_of
from homeport.runtime.clock import Clock, SystemClock, rfc3339
from homeport.runtime.event import Recorder
from homeport.runtime.outcome import Terminal, Wait

O = TypeVar("O", bound=Object)
S = TypeVar("S", bound="Scope[Any]")

log = structlog.get_logger(__name__)

Phase = Callable[[S], Awaitable[Wait | None]]


class Reconciler(Protocol):
    async def reconcile(self, key: Key) -> Wait | None: ...


class Scope(Generic[O]):
    """One object in work: a private copy to change, and what its status was when it was read."""

    def __init__(self, obj: O) -> None:
        # Objects from a cache are shared; a round trip through JSON is the fastest deep copy there is.
        encoded = msgspec.json.encode(obj)
        self.object: O = msgspec.json.decode(encoded, type=type(obj))
        self._status_before = _status(obj)

    @property
    def key(self) -> Key:
        return key_of(self.object)

    @property
    def deleting(self) -> bool:
        return bool(self.object.metadata.deletion_timestamp)

    def status_patch(self) -> dict[str, Any]:
        """What changed in the status, as a merge patch; empty when nothing did."""
        patch = diff_merge({"status": self._status_before}, {"status": _status(self.object)})
        return dict(patch)

    def report(self, kind: str, status: condition.Status, reason: str, message: str, now: str) -> None:
        """Sets a condition on the object. Kinds that keep conditions elsewhere override this."""
        held: Any = getattr(self.object, "status", None)
        if held is None or not hasattr(held, "conditions"):
            return
        held.conditions = condition.put(
            held.conditions, kind, status, reason, message, now=now, generation=self.object.metadata.generation
        )


async def run_phases(scope: S, phases: Sequence[Phase[S]]) -> Wait | None:
    """One after the other; the first that has to wait ends the loop."""
    for phase in phases:
        wait = await phase(scope)
        if wait is not None:
            return wait
    return None


class Reporting:
    """`reported`: one status patch per loop, whether the phases finished, waited or raised.

    A Wait becomes log line, condition, event and the answer to "why is it stuck": said once, shown four times.
    """

    condition = "Ready"

    def __init__(self, client: Client, recorder: Recorder, *, manager: str, clock: Clock | None = None) -> None:
        self.client = client
        self.recorder = recorder
        self.clock = clock or SystemClock()
        self._write = Write(field_manager=manager)

    async def reported(self, scope: Scope[Any], work: Awaitable[Wait | None]) -> Wait | None:
        try:
            wait = await work
        except asyncio.CancelledError:
            raise  # shutting down: what was written stands, the next loop observes it
        except Terminal as stop:
            self._tell(scope, stop.reason, stop.message, warn=True)
            await self._store(scope)
            raise
        except ApiError as error:
            self._tell(scope, "ReconcileError", str(error), warn=False)
            await self._store(scope)
            raise
        if wait is None:
            scope.report(self.condition, "True", "Ready", "", rfc3339(self.clock.now()))
        else:
            self._tell(scope, wait.reason, wait.message, warn=False)
        await self._store(scope)
        return wait

    def _tell(self, scope: Scope[Any], reason: str, message: str, *, warn: bool) -> None:
        scope.report(self.condition, "False", reason, message, rfc3339(self.clock.now()))
        self.recorder.record(scope.object, reason, message or reason, warning=warn)

    async def _store(self, scope: Scope[Any]) -> None:
        patch = scope.status_patch()
        if not patch:
            return
        # Shielded: a status is written whole or not at all, also while shutting down.
        write = self.client.patch(type(scope.object), scope.key, MergePatch(patch), self._write, subresource="status")
        try:
            await asyncio.shield(write)
        except NotFound:
            log.debug("gone before its status was written", object=str(scope.key))


def _status(obj: Object) -> Any:
    return msgspec.to_builtins(getattr(obj, "status", None))
