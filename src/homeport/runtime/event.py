"""Events for people: what happened to an object, each said once, repeats counted.

Written in events.k8s.io where the server has it (repeats are a `series`), else in the core group (they are a `count`);
both show the same objects. Recording an event never waits: `record` queues it, `run` writes it.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
from typing import Any

import structlog

from homeport.api.meta import Object, Resource, Unstructured
from homeport.client.errors import AlreadyExists, ApiError, NotFound, Timeout, TooManyRequests, Unavailable
from homeport.client.protocol import Client, Key, MergePatch, Write
from homeport.runtime.cache import key_of, uid_of
from homeport.runtime.clock import Clock, SystemClock, rfc3339, rfc3339_micro
from homeport.runtime.lease import LeaseLost
from homeport.runtime.occurrence import MESSAGE_LIMIT, Correlator, EventContent, Limits, Occurrence, Subject
from homeport.runtime.queue import Backoff
from homeport.runtime.telemetry.metric import EventMetrics

log = structlog.get_logger(__name__)

CORE = Resource("", "v1", "Event", "events")
NEW = Resource("events.k8s.io", "v1", "Event", "events")
EVENT = CORE  # the form that everybody reads

_REPEAT_SECONDS = 10.0  # counts of one event are written no more often
_ATTEMPTS = 8
_FLUSH_SECONDS = 3.0
_PASSING = (Unavailable, Timeout, TooManyRequests)


class Recorder:
    """`record` from anywhere in the event loop; `run` in a task of its own, which writes what is left when it ends."""

    def __init__(
        self,
        client: Client,
        component: str,
        *,
        clock: Clock | None = None,
        limits: Limits | None = None,
        instance: str = "",
    ) -> None:
        self._client = client
        self._component = component
        self._instance = instance or f"{component}-{socket.gethostname()}-{os.getpid()}"[:128]
        self._clock = clock or SystemClock()
        self._limits = limits or Limits()
        self._correlator = Correlator(self._clock, self._limits)
        self._unwritten: dict[Occurrence, None] = {}
        self._wake = asyncio.Event()
        self._backoff = Backoff(first=0.5, limit=60.0)
        self._write = Write(field_manager=component)
        self._new = True  # until the server says that it does not know events.k8s.io
        self._metrics = EventMetrics()

    @property
    def dropped(self) -> int:
        """The number of events that were lost. They are best effort: conditions hold the same information."""
        return self._metrics.dropped

    def record(
        self, obj: Object | Unstructured, reason: str, message: str, *, warning: bool = False, action: str = "Reconcile"
    ) -> None:
        kind = "Warning" if warning else "Normal"
        event = EventContent(_subject(obj), kind, reason[:128], message[:MESSAGE_LIMIT], action)
        occurrence = self._correlator.note(event)
        if occurrence is None or (occurrence not in self._unwritten and len(self._unwritten) >= self._limits.unwritten):
            self._metrics.drop()
            return
        self._metrics.tell()
        self._unwritten[occurrence] = None
        self._wake.set()

    async def run(self) -> None:
        try:
            while True:
                self._wake.clear()
                pause = await self._write_due()
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(pause):
                        await self._wake.wait()
        finally:
            await self._flush_in_time()

    async def _flush_in_time(self) -> None:
        try:
            async with asyncio.timeout(_FLUSH_SECONDS):
                await self.flush()
        except TimeoutError:
            log.info("events were left unwritten", events=len(self._unwritten))

    async def flush(self) -> None:
        """Writes what is there, each once: for the end of a program and for tests."""
        for occurrence in list(self._unwritten):
            await self._attempt(occurrence)

    async def _write_due(self) -> float | None:
        """Writes what is due; gives the seconds until something else is, None if nothing waits."""
        now = self._clock.monotonic()
        for occurrence in [each for each in self._unwritten if each.due <= now]:
            await self._attempt(occurrence)
        if not self._unwritten:
            return None
        return max(0.0, min(each.due for each in self._unwritten) - self._clock.monotonic())

    async def _attempt(self, occurrence: Occurrence) -> None:
        count, message = occurrence.count, occurrence.event.message
        try:
            await self._put(occurrence)
        except _PASSING as busy:
            self._retry(occurrence, busy)
        except (ApiError, LeaseLost) as error:
            # Most often the namespace is being deleted, or another replica leads now and records the same.
            self._give_up(occurrence, error)
        else:
            occurrence.written_count, occurrence.written_message = count, message
            occurrence.failures = 0
            occurrence.due = self._clock.monotonic() + _REPEAT_SECONDS
            if (occurrence.count, occurrence.event.message) == (count, message):
                self._unwritten.pop(occurrence, None)
            self._metrics.write()

    def _retry(self, occurrence: Occurrence, busy: ApiError) -> None:
        occurrence.failures += 1
        if occurrence.failures >= _ATTEMPTS:
            self._give_up(occurrence, busy)
            return
        pause = max(self._backoff.delay(occurrence.failures), float(busy.retry_after))
        occurrence.due = self._clock.monotonic() + pause

    def _give_up(self, occurrence: Occurrence, error: Exception) -> None:
        self._unwritten.pop(occurrence, None)
        occurrence.failures = 0
        self._metrics.drop()
        log.info("event not recorded", reason=occurrence.event.reason, error=str(error))

    # -- the two groups ----------------------------------------------------------------------------------------

    async def _put(self, occurrence: Occurrence) -> None:
        if occurrence.written_count:
            try:
                await self._repeat(occurrence)
                return
            except NotFound:
                log.debug("the event expired: recording it again", name=occurrence.name)
        try:
            await self._create(occurrence)
        except AlreadyExists:  # made by us: the answer got lost on its way
            await self._repeat(occurrence)

    async def _create(self, occurrence: Occurrence) -> None:
        if self._new:
            try:
                await self._client.create(self._new_form(occurrence), self._write, kind=NEW)
                return
            except NotFound as missing:
                if _names_object(missing):
                    raise  # the namespace is not there
                self._new = False
        await self._client.create(self._core_form(occurrence), self._write, kind=CORE)

    async def _repeat(self, occurrence: Occurrence) -> None:
        key = Key(occurrence.namespace, occurrence.name)
        if not self._new:
            change: dict[str, Any] = {"count": occurrence.count, "lastTimestamp": rfc3339(occurrence.last)}
        else:
            change = {"series": _series(occurrence)}
        kind = NEW if self._new else CORE
        if occurrence.event.message != occurrence.written_message and occurrence.written_message:
            change["message"] = occurrence.event.message
            kind = CORE  # events.k8s.io does not let anybody change what was said
        await self._client.patch(kind, key, MergePatch(change), self._write)

    def _new_form(self, occurrence: Occurrence) -> dict[str, Any]:
        event = occurrence.event
        body = {
            "apiVersion": NEW.api_version,
            "kind": "Event",
            "metadata": {"name": occurrence.name, "namespace": occurrence.namespace},
            "eventTime": rfc3339_micro(occurrence.first),
            "reportingController": self._component,
            "reportingInstance": self._instance,
            "action": event.action,
            "reason": event.reason,
            "regarding": _reference(event.subject),
            "note": event.message,
            "type": event.type,
        }
        if occurrence.count > 1:
            body["series"] = _series(occurrence)
        return body

    def _core_form(self, occurrence: Occurrence) -> dict[str, Any]:
        event = occurrence.event
        return {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": occurrence.name, "namespace": occurrence.namespace},
            "involvedObject": _reference(event.subject),
            "reason": event.reason,
            "message": event.message,
            "type": event.type,
            "source": {"component": self._component},
            "reportingComponent": self._component,
            "reportingInstance": self._instance,
            "firstTimestamp": rfc3339(occurrence.first),
            "lastTimestamp": rfc3339(occurrence.last),
            "count": occurrence.count,
        }


def _series(occurrence: Occurrence) -> dict[str, Any]:
    return {"count": occurrence.count, "lastObservedTime": rfc3339_micro(occurrence.last)}


def _names_object(missing: NotFound) -> bool:
    """Whether an object is missing rather than the whole kind."""
    return bool((missing.status.get("details") or {}).get("name"))


def _subject(obj: Object | Unstructured) -> Subject:
    key = key_of(obj)
    if isinstance(obj, Unstructured):
        api_version, kind = str(obj.get("apiVersion", "")), str(obj.get("kind", ""))
    else:
        api_version, kind = type(obj).__resource__.api_version, type(obj).__resource__.kind
    return Subject(api_version, kind, key.namespace, key.name, uid_of(obj))


def _reference(subject: Subject) -> dict[str, str]:
    raw = {
        "apiVersion": subject.api_version,
        "kind": subject.kind,
        "namespace": subject.namespace,
        "name": subject.name,
        "uid": subject.uid,
    }
    return {field: text for field, text in raw.items() if text}
