"""The parts of a reconcile: one object in work, its phases, and the report at the end. See runtime/skeleton.py."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, Generic, Protocol, TypeVar

import msgspec
import structlog

from homeport.api.meta import Object, wire_differences
from homeport.client.errors import ApiError, Conflict, NotFound, TooManyRequests
from homeport.client.protocol import Client, Key, MergePatch, Write
from homeport.machinery import condition
from homeport.machinery.condition import Status
from homeport.machinery.patch import diff_merge
from homeport.runtime.cache import key_of
from homeport.runtime.clock import Clock, SystemClock, rfc3339
from homeport.runtime.event import Recorder
from homeport.runtime.lease import LeaseLost
from homeport.runtime.outcome import Terminal, Wait
from homeport.runtime.pace import Pace, Pacer

O = TypeVar("O", bound=Object)
T = TypeVar("T")
S = TypeVar("S", bound="Scope[Any]")

log = structlog.get_logger(__name__)

_WRITE_SECONDS = 5.0  # how long a shutdown waits for a status that is being written

Phase = Callable[[S], Awaitable[Wait | None]]


class ObjectGone(Exception):
    """The object in work was deleted meanwhile: nothing more may be done for it, and there is nothing to report on."""


class Reconciler(Protocol):
    async def reconcile(self, key: Key) -> Wait | None: ...


class Scope(Generic[O]):
    """One object in work: a private copy to change, and what its status was when it was read."""

    def __init__(self, obj: O) -> None:
        # Objects from a cache are shared; a round trip through JSON is the fastest deep copy there is.
        self.object: O = msgspec.json.decode(msgspec.json.encode(obj), type=type(obj))
        self.read: O = obj  # as it was read, or last written; shared, not to be changed
        self.timer: Wait | None = None  # when the status changes by the passing of time alone
        self.later: Wait | None = None  # when a status that was held back is to be written
        self.untold: Wait | None = None  # becomes an event together with the status
        self.final = False  # there is no later loop that could write the status
        self.released = False  # the last finalizer is gone: there is no object to report on
        # What the status is now, as bytes, and how it differs from what it was: most loops change nothing.
        self._difference: tuple[bytes, dict[str, Any]] = (_status(obj), {})

    @property
    def key(self) -> Key:
        return key_of(self.object)

    @property
    def urgent(self) -> bool:
        """Whether somebody acts on what changed in the status, so that it must not be held back."""
        return True

    @property
    def deleting(self) -> bool:
        return bool(self.object.metadata.deletion_timestamp)

    def status_patch(self) -> dict[str, Any]:
        """What changed in the status, as a merge patch of exactly that state; empty when nothing did.

        Merge patches replace whole lists, so what somebody else wrote meanwhile would be lost, and a reconcile that was
        held up for long would write its old news: the patch is refused when the object is no longer what it was.
        """
        if self.released:
            return {}
        status = _status(self.object)
        if status != self._difference[0]:
            self._difference = (status, self._compare())
        patch = self._difference[1]
        if not patch:
            return {}
        meta = self.object.metadata
        return {"metadata": {"uid": meta.uid, "resourceVersion": meta.resource_version}, **patch}

    def _compare(self) -> dict[str, Any]:
        before: Any = self.read
        after: Any = self.object
        was, now = wire_differences(before.status, after.status)
        return diff_merge({"status": was}, {"status": now})

    def update_metadata(self, obj: O) -> None:
        """Metadata or spec was written in this loop: continue from what the server returned."""
        self.object.metadata = obj.metadata

    def rebase(self, written: O, before: str) -> None:
        """The status was written before the end of the loop: later changes are compared with what is there now.

        `before` is the resourceVersion that it was written over: metadata that the loop wrote since then is newer.
        """
        self.read = written
        self._difference = (b"", {})
        if self.object.metadata.resource_version == before:
            self.object.metadata = written.metadata

    def report(self, kind: str, status: condition.Status, reason: str, message: str, now: str) -> bool | None:
        """Sets a condition on the object. Kinds with conditions of their own override this.

        True: the condition changed. None: this kind has no such condition.
        """
        held: Any = getattr(self.object, "status", None)
        if held is None or not hasattr(held, "conditions"):
            return None
        before = condition.find(held.conditions, kind)
        held.conditions = condition.put(
            held.conditions, kind, status, reason, message, now=now, generation=self.object.metadata.generation
        )
        after = condition.find(held.conditions, kind)
        return _content(before) != _content(after)

    def drop_empty_messages(self) -> None:
        held: Any = getattr(self.object, "status", None)
        if held is not None:
            held.conditions = [_without_empty_message(each) for each in held.conditions]


def _without_empty_message(found: dict[str, Any]) -> dict[str, Any]:
    return found if found.get("message", "?") else {key: value for key, value in found.items() if key != "message"}


def _content(found: Mapping[str, Any] | None) -> tuple[Any, ...]:
    return () if found is None else (found.get("status"), found.get("reason"), found.get("message"))


async def run_phases(scope: S, phases: Sequence[Phase[S]]) -> Wait | None:
    """One after the other; the first that has to wait ends the loop."""
    for phase in phases:
        wait = await phase(scope)
        if wait is not None:
            return wait
    return None


class _Level(IntEnum):
    QUIET = 0
    EVENT = 1
    WARNING = 2


@dataclass(frozen=True, slots=True)
class _Reported:
    reason: str
    message: str
    level: _Level

    @property
    def text(self) -> tuple[str, str]:
        return self.reason, self.message


class Reporting(Generic[S]):
    """`reported`: one status patch per loop, whether the phases finished, waited or raised.

    A Wait becomes log line, condition, event and the answer to "why is it stuck": said once, shown four times.
    """

    condition = "Ready"  # '': the kind has none, and waits become events alone
    waits_are_events = True  # False: conditions report what is waited for; events are for warnings alone
    drop_empty_messages = False  # True: the kind's definition rejects conditions whose message is there and empty
    pace = Pace()

    def __init__(self, client: Client, recorder: Recorder, *, manager: str, clock: Clock | None = None) -> None:
        self.client = client
        self.recorder = recorder
        self.clock = clock or SystemClock()
        self._write = Write(field_manager=manager)
        self._pacer = Pacer(self.pace)
        # By object: what was last reported, and whether that was an event (and of which kind).
        self._last_reported: dict[Key, _Reported] = {}

    def forget(self, key: Key) -> None:
        """The object is gone. Reconcilers that remember more about objects extend this."""
        self._pacer.forget(key)
        self._last_reported.pop(key, None)

    def expected(self, scope: S, error: Exception) -> Wait | None:
        """What to wait for after an expected error. None: the error is reported, raised and retried."""
        del scope, error
        return None

    async def reported(self, scope: S, work: Awaitable[Wait | None]) -> Wait | None:
        try:
            wait = await work
        except (asyncio.CancelledError, LeaseLost):
            raise  # we stop: what was written stands, the next loop observes it
        except (Conflict, TooManyRequests):
            raise  # nothing is wrong with the object: the next loop comes in a moment
        except ObjectGone:
            return None  # its deletion wakes us
        except Terminal as stop:
            self._report_wait(scope, stop.reason, stop.message, warn=True)
            scope.final = True
            await self._store(scope)  # if that fails, there is another loop: nothing else would report it
            raise
        except Exception as error:
            wait = self.expected(scope, error)
            if wait is None:
                self._report_wait(scope, "ReconcileError", str(error) or type(error).__name__, warn=True)
                await self._store_quietly(scope)
                raise
        if wait is None:
            self._set_condition(scope, "True", "Ready", "")
            self._last_reported.pop(scope.key, None)
        else:
            self._report_wait(scope, wait.reason, wait.message, warn=wait.warning, quiet=wait.quiet)
        await self._store(scope)
        return wait

    def _report_wait(self, scope: S, reason: str, message: str, *, warn: bool, quiet: bool = False) -> None:
        """The event comes once, when the condition changes; kinds without conditions have our memory instead.

        What was expected at first becomes an event, or a warning, when it lasts, though the condition stays the same.
        """
        changed = self._set_condition(scope, "False", reason, message)
        level = _Level.WARNING if warn else _Level.EVENT if self.waits_are_events else _Level.QUIET
        level = _Level.QUIET if quiet else level
        before = self._last_reported.get(scope.key)
        self._last_reported[scope.key] = now = _Reported(reason, message, level)
        if changed is None:
            changed = before is None or before.text != now.text
        lasts = before is not None and before.text == now.text and before.level < level
        if (changed or lasts) and level == _Level.WARNING:
            if before != now:  # while the status is held back, its condition changes in each loop
                self.recorder.record(scope.object, reason, message or reason, warning=True)
        elif (changed or lasts) and level == _Level.EVENT:
            scope.untold = Wait(reason, message)

    def _set_condition(self, scope: S, status: Status, reason: str, message: str) -> bool | None:
        if not self.condition:
            return None
        return scope.report(self.condition, status, reason, message, rfc3339(self.clock.now()))

    def _tell(self, scope: S) -> None:
        news, scope.untold = scope.untold, None
        if news is not None:
            self.recorder.record(scope.object, news.reason, news.message or news.reason)

    async def _store_quietly(self, scope: S) -> None:
        """On the way out with an error: that one counts, not that it could not be reported."""
        try:
            await self._store(scope)
        except ApiError as error:
            log.info("status not written", object=str(scope.key), error=str(error))

    async def _store_interim(self, scope: S) -> None:
        """While the phases still work on the object; a write that is refused is left to the report at the end."""
        if self.drop_empty_messages:
            scope.drop_empty_messages()
        patch, before = scope.status_patch(), scope.object.metadata.resource_version
        if not patch:
            return
        write = self.client.patch(type(scope.object), scope.key, MergePatch(patch), self._write, subresource="status")
        try:
            written = await finish_write(write)
        except ApiError as error:
            log.info("status not written", object=str(scope.key), error=str(error))
            return
        scope.rebase(written, before)

    async def _store(self, scope: S) -> None:
        if self.drop_empty_messages:
            scope.drop_empty_messages()
        patch = scope.status_patch()
        urgent = scope.final or scope.urgent
        held = self._pacer.delay(scope.key, self.clock.monotonic(), urgent=urgent, changed=bool(patch))
        if held:
            scope.later = Wait("StatusWriteDelayed", after=held, quiet=True)
            return  # what is over by then is told by no event either
        self._tell(scope)
        if not patch:
            return
        write = self.client.patch(type(scope.object), scope.key, MergePatch(patch), self._write, subresource="status")
        began = self.clock.monotonic()
        try:
            await finish_write(write)
        except NotFound:
            log.debug("gone before its status was written", object=str(scope.key))
        finally:
            self._pacer.took(self.clock.monotonic() - began)


async def finish_write(write: Coroutine[Any, Any, T]) -> T:
    """A write that has begun is seen to its end, also while shutting down: nobody has to guess what became of it."""
    task = asyncio.ensure_future(write)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        if not task.done():
            await asyncio.wait({task}, timeout=_WRITE_SECONDS)
        if not task.done():
            task.cancel()
        elif not task.cancelled() and (error := task.exception()) is not None:
            # Who lost a race writes again after the next start: that is not worth a line.
            tell = log.debug if isinstance(error, Conflict | NotFound) else log.info
            tell("a write failed while shutting down", error=str(error))
        raise
    finally:
        # A failed task holds its exception, which holds this frame: without this, all of it, with the objects that the
        # reconcile has read, would stay until the garbage collector looks at old objects.
        del task


def _status(obj: Object) -> bytes:
    return msgspec.json.encode(getattr(obj, "status", None))
