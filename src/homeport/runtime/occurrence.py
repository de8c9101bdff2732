"""Correlates recorded events: counts repeats, combines similar ones and cuts off floods.

    the same again (object, type, reason, message)          counts on the first event
    more than `similar` messages for one object and reason  one combined event, whose message is the latest
    more than `burst` new events for one object             dropped, until `refill_seconds` pass for each

Everything is in memory; event.py writes to the API.
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from homeport.runtime.clock import Clock

COMBINED = "(combined from similar events): "
MESSAGE_LIMIT = 1024


class Subject(NamedTuple):
    """The object that an event is about."""

    api_version: str
    kind: str
    namespace: str
    name: str
    uid: str


class EventContent(NamedTuple):
    """What one event says. Two events with equal content are counted as one."""

    subject: Subject
    type: str
    reason: str
    message: str
    action: str


class Similar(NamedTuple):
    """What events have in common that differ only in their messages."""

    subject: Subject
    type: str
    reason: str
    action: str


@dataclass(frozen=True, slots=True)
class Limits:
    window_seconds: float = 600.0  # the same later than that is another event
    similar: int = 10
    burst: int = 25
    refill_seconds: float = 300.0
    remembered: int = 4096
    unwritten: int = 1000


@dataclass(slots=True, eq=False)
class Occurrence:
    """One Event object: how often the event happened, and how much of that the API server has stored."""

    event: EventContent
    name: str
    first: float
    last: float
    count: int = 1
    written_count: int = 0  # 0: the event is still to be made
    written_message: str = ""
    due: float = 0.0  # by the monotonic clock
    failures: int = 0

    @property
    def namespace(self) -> str:
        """Events about cluster-wide objects are kept in `default`."""
        return self.event.subject.namespace or "default"


@dataclass(slots=True)
class _Bucket:
    tokens: float
    since: float


@dataclass(slots=True)
class _Messages:
    since: float
    texts: set[str] = field(default_factory=set)


class Correlator:
    """Turns recorded events into occurrences. All of its memory is bounded."""

    def __init__(self, clock: Clock, limits: Limits) -> None:
        self._clock = clock
        self._limits = limits
        self._known: OrderedDict[EventContent | Similar, Occurrence] = OrderedDict()
        self._messages: OrderedDict[Similar, _Messages] = OrderedDict()
        self._buckets: OrderedDict[Subject, _Bucket] = OrderedDict()

    def note(self, event: EventContent) -> Occurrence | None:
        """The occurrence that the event is counted in; None if the object has exceeded its limit of events."""
        now = self._clock.now()
        self._forget(now)
        key = self._key(event, now)
        if isinstance(key, Similar):
            event = event._replace(message=(COMBINED + event.message)[:MESSAGE_LIMIT])
        known = self._known.get(key)
        if known is not None and now - known.last < self._limits.window_seconds:
            known.count += 1
            known.last = now
            known.event = event
            self._known.move_to_end(key)
            return known
        if not self._allowed(event.subject):
            return None
        made = self._known[key] = Occurrence(event, _name(event, now), now, now)
        self._known.move_to_end(key)
        _trim(self._known, self._limits.remembered)
        return made

    def _key(self, event: EventContent, now: float) -> EventContent | Similar:
        similar = Similar(event.subject, event.type, event.reason, event.action)
        seen = self._messages.get(similar)
        if seen is None or now - seen.since > self._limits.window_seconds:
            seen = self._messages[similar] = _Messages(now)
            _trim(self._messages, self._limits.remembered)
        if event.message in seen.texts:
            return event
        if len(seen.texts) < self._limits.similar:
            seen.texts.add(event.message)
            return event
        return similar

    def _allowed(self, subject: Subject) -> bool:
        now, limits = self._clock.monotonic(), self._limits
        bucket = self._buckets.get(subject)
        if bucket is None:
            bucket = self._buckets[subject] = _Bucket(limits.burst, now)
            _trim(self._buckets, limits.remembered)
        self._buckets.move_to_end(subject)
        bucket.tokens = min(limits.burst, bucket.tokens + (now - bucket.since) / limits.refill_seconds)
        bucket.since = now
        if bucket.tokens < 1:
            return False
        bucket.tokens -= 1
        return True

    def _forget(self, now: float) -> None:
        """What can no longer change an answer. All three are in the order of their age."""
        window, limits = self._limits.window_seconds, self._limits
        while self._known and now - next(iter(self._known.values())).last >= window:
            self._known.popitem(last=False)
        while self._messages and now - next(iter(self._messages.values())).since > window:
            self._messages.popitem(last=False)
        monotonic = self._clock.monotonic()
        while self._buckets:
            oldest = next(iter(self._buckets.values()))
            if oldest.tokens + (monotonic - oldest.since) / limits.refill_seconds < limits.burst:
                return  # one that said much may hold up others for a while; `remembered` is the bound
            self._buckets.popitem(last=False)


def _trim(table: OrderedDict[Any, Any], size: int) -> None:
    while len(table) > size:
        table.popitem(last=False)


def _name(event: EventContent, now: float) -> str:
    """The name is stable across retries, and differs if the event happens again after the window."""
    text = "\0".join((event.subject.uid, event.type, event.reason, event.action, event.message, repr(now)))
    return f"{event.subject.name[:236]}.{hashlib.sha256(text.encode()).hexdigest()[:16]}"
