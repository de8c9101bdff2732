"""What ends by itself: Events, bootstrap tokens, Leases of members that are long gone.

The store is followed directly: an Event costs one entry in a heap, not a cached object.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import heapq
from collections.abc import Callable
from typing import Any

import orjson
import structlog

from homeport.api.meta import Resource, Unstructured
from homeport.apiserver.embedded import EmbeddedServer
from homeport.builtin.account import SECRET
from homeport.builtin.kind import key_of
from homeport.client.errors import ApiError, Conflict, NotFound
from homeport.runtime.clock import parse_time
from homeport.runtime.lease import LEASE
from homeport.runtime.manager import Manager
from homeport.runtime.shard import GROUP_LABEL
from homeport.store import Change, Record

log = structlog.get_logger(__name__)

EVENT = Resource("", "v1", "Event", "events")
EVENT_SECONDS = 3600.0
LEASE_SECONDS = 3600.0
BOOTSTRAP_TYPE = "bootstrap.kubernetes.io/token"
# The wall clock may be changed: check it again at least this often.
_LONGEST_SLEEP = 60.0
_PAUSE_AFTER_FAILURE = 5.0
_TOGETHER = 64

# When an object ends, in seconds since 1970; None: never.
Deadline = Callable[[Unstructured], float | None]


class Expiry:
    """Deletes objects of one kind at their time, with a precondition: one that was renewed meanwhile stays."""

    def __init__(self, server: EmbeddedServer, kind: Resource, deadline: Deadline, mark: bytes = b"") -> None:
        self._store = server.store
        self._client = server.client(field_manager="expiry")
        self._now = server.registry.clock
        self._kind = kind
        self._deadline = deadline
        self._mark = mark  # bytes that every object with an end contains
        self._heap: list[tuple[float, str]] = []
        self._due: dict[str, float] = {}  # name > when it is looked at; older entries of the heap do not count
        self._sooner = asyncio.Event()

    async def run(self) -> None:
        unsubscribe = self._store.subscribe(self._kind.qualified, self._changed)
        for record in self._store.range(self._kind.qualified):
            self._note(record)
        try:
            while True:
                await self._sleep()
                await self._end_due()
        finally:
            unsubscribe()

    def __len__(self) -> int:
        return len(self._due)

    def _changed(self, changes: list[Change]) -> None:
        for change in changes:
            if change.record is None:
                self._due.pop(change.name, None)
            else:
                self._note(change.record)

    def _note(self, record: Record) -> None:
        end = self._end(record)
        if end is None:
            self._due.pop(record.name, None)
            return
        known = self._due.get(record.name)
        if known is not None and known <= end:
            return  # it lives longer than thought: seen when its time comes
        self._due[record.name] = end
        heapq.heappush(self._heap, (end, record.name))
        if self._heap[0][0] == end:
            self._sooner.set()

    def _end(self, record: Record) -> float | None:
        if self._mark not in record.value:
            return None
        obj = Unstructured(orjson.loads(record.value))
        return None if obj.metadata.get("deletionTimestamp") else self._deadline(obj)

    async def _sleep(self) -> None:
        self._sooner.clear()
        left = self._heap[0][0] - self._now() if self._heap else _LONGEST_SLEEP
        if left <= 0:
            return
        try:
            async with asyncio.timeout(min(left, _LONGEST_SLEEP)):
                await self._sooner.wait()
        except TimeoutError:
            return

    async def _end_due(self) -> None:
        names: list[str] = []
        while self._heap and self._heap[0][0] <= self._now() and len(names) < _TOGETHER:
            due, name = heapq.heappop(self._heap)
            if self._due.get(name) == due:
                del self._due[name]
                names.append(name)
        if not all(await asyncio.gather(*(self._end_one(name) for name in names))):
            await asyncio.sleep(_PAUSE_AFTER_FAILURE)

    async def _end_one(self, name: str) -> bool:
        """False: it could not be deleted, and is tried again."""
        record = self._store.get(self._kind.qualified, name)
        end = self._end(record) if record is not None else None
        if record is None or end is None:
            return True
        if end > self._now():
            self._note(record)
            return True
        try:
            await self._client.delete(self._kind, key_of(name), resource_version=str(record.revision))
        except NotFound:
            return True
        except Conflict:
            self._note_again(name)
            return True
        except ApiError as error:
            log.warning("can't delete what expired", kind=self._kind.kind, object=name, error=str(error))
            self._note_again(name)
            return False
        return True

    def _note_again(self, name: str) -> None:
        record = self._store.get(self._kind.qualified, name)
        if record is not None:
            self._note(record)


def event_end(event: Unstructured) -> float | None:
    """An hour after it was last written, whatever times it tells: an Event may report what happened long ago."""
    meta = event.metadata
    written = [meta.get("creationTimestamp"), *(entry.get("time") for entry in meta.get("managedFields") or ())]
    ends = [end for text in written if (end := _time(text, EVENT_SECONDS)) is not None]
    return max(ends, default=None)


def bootstrap_token_end(secret: Unstructured) -> float | None:
    if secret.get("type") != BOOTSTRAP_TYPE or secret.namespace != "kube-system":
        return None
    try:
        text = base64.b64decode((secret.get("data") or {}).get("expiration") or "").decode()
    except (binascii.Error, UnicodeDecodeError):
        return None
    return _time(text, 0.0)


def lease_end(lease: Unstructured) -> float | None:
    """Members' leases alone: a leader's lease is taken over, never removed."""
    if GROUP_LABEL not in (lease.metadata.get("labels") or {}):
        return None
    spec = lease.get("spec") or {}
    return _time(spec.get("renewTime"), float(spec.get("leaseDurationSeconds") or 0) + LEASE_SECONDS)


def _time(text: Any, plus: float) -> float | None:
    if not text:
        return None
    try:
        return parse_time(str(text)) + plus
    except ValueError:
        return None


def install(server: EmbeddedServer, manager: Manager) -> None:
    manager.job(Expiry(server, EVENT, event_end).run)
    manager.job(Expiry(server, SECRET, bootstrap_token_end, BOOTSTRAP_TYPE.encode()).run)
    manager.job(Expiry(server, LEASE, lease_end, GROUP_LABEL.encode()).run)
