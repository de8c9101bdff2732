"""watch: history, then live changes, as one stream. An event is encoded once for all watchers."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass

import orjson

from homeport.apiserver.option import WatchOptions
from homeport.apiserver.resource import ServedKind, Version
from homeport.apiserver.verb.listing import parse_revision, too_large, too_old
from homeport.apiserver.view import Selection, view, views
from homeport.client.errors import Cause, Expired, invalid
from homeport.store import Change, Compacted, Lagged, Record, Store

INITIAL_EVENTS_END = "k8s.io/initial-events-end"


@dataclass(slots=True)
class WatchEvent:
    type: str  # ADDED, MODIFIED, DELETED
    object: bytes
    revision: int
    _line: bytes = b""

    @property
    def line(self) -> bytes:
        if not self._line:
            self._line = b'{"type":"%s","object":%s}\n' % (self.type.encode(), self.object)
        return self._line


class WatchStream:
    """Iterate for batches of events. Raises Expired when the watcher was too slow and lost its place."""

    def __init__(
        self,
        store: Store,
        served: ServedKind,
        version: Version,
        namespace: str,
        options: WatchOptions,
        after: int,
        *,
        floor: int = 0,
    ) -> None:
        self._store = store
        self._served = served
        self._at = version
        self._selection = Selection(served, version, options.labels, options.fields)
        self._prefix = f"{namespace}/" if namespace else ""
        self._initial: list[Record] = []
        self._floor = floor  # a revision that is still to come: what happens until then is not what was asked for
        self.initial_end = False  # a bookmark that marks the end of the initial events is due after the first batch
        try:
            self._watch = store.watch(served.bucket, after=after, prefix=self._prefix)
        except Compacted as error:
            raise too_old(after, error.oldest) from error

    def start_with(self, records: list[Record]) -> None:
        self._initial = [r for r in records if self._selection.matches(r)]

    @property
    def revision(self) -> int:
        """Everything up to here has been given to the watcher (or is nothing that he asked for)."""
        return max(self._watch.revision, self._floor)

    @property
    def steady(self) -> bool:
        """Between two batches nothing is under way, so `revision` may be told: no webhook converts the events."""
        return self._served.convert_async is None

    def bookmark(self, *, initial_end: bool = False) -> bytes:
        resource = self._at.resource
        meta: dict[str, object] = {"resourceVersion": str(self.revision)}
        if initial_end:
            meta["annotations"] = {INITIAL_EVENTS_END: "true"}
        obj = {"kind": resource.kind, "apiVersion": resource.api_version, "metadata": meta}
        return orjson.dumps({"type": "BOOKMARK", "object": obj}) + b"\n"

    def close(self) -> None:
        self._watch.close()

    def __aiter__(self) -> AsyncIterator[list[WatchEvent]]:
        return self._events()

    async def _events(self) -> AsyncIterator[list[WatchEvent]]:
        if self._initial or self.initial_end:
            records, self._initial = self._initial, []
            bodies = await views(records, self._served, self._at)
            yield [WatchEvent("ADDED", body, r.revision) for r, body in zip(records, bodies, strict=True)]
        try:
            async for changes in self._watch:
                if self._floor:
                    changes = [change for change in changes if change.revision > self._floor]
                events = [event for change in changes if (event := await self._event(change)) is not None]
                if events:
                    yield events
        except Lagged as error:
            raise Expired("the watcher did not keep up with the changes: list again, then watch") from error

    async def _event(self, change: Change) -> WatchEvent | None:
        if self._selection.all:
            return await self._shared(change)
        now = change.record is not None and self._selection.matches(change.record)
        before = change.previous is not None and self._selection.matches(change.previous)
        if not now and not before:
            return None
        if now == before or change.record is None:
            return await self._shared(change)
        if now:
            event = await self._shared(change)
            return event if event.type == "ADDED" else WatchEvent("ADDED", event.object, event.revision)
        assert change.previous is not None
        return WatchEvent("DELETED", await self._departed(change.previous, change.revision), change.revision)

    async def _departed(self, previous: Record, revision: int) -> bytes:
        """The last state that matched, at the revision in which it ceased to."""
        obj = orjson.loads(await view(previous, self._served, self._at))
        obj["metadata"]["resourceVersion"] = str(revision)
        return orjson.dumps(obj)

    async def _shared(self, change: Change) -> WatchEvent:
        """One encoded event per change and version, shared by all watchers."""
        if change.memo is None:
            change.memo = {}
        event: WatchEvent | None = change.memo.get(self._at.resource.api_version)
        if event is None:
            event = await self._make(change)
            change.memo[self._at.resource.api_version] = event
        return event

    async def _make(self, change: Change) -> WatchEvent:
        if change.record is None:
            assert change.value is not None
            gone = Record(change.bucket, change.name, change.value, 0, change.revision)
            return WatchEvent("DELETED", await view(gone, self._served, self._at), change.revision)
        kind = "MODIFIED" if change.previous is not None else "ADDED"
        return WatchEvent(kind, await view(change.record, self._served, self._at), change.revision)


def open_watch(
    store: Store, served: ServedKind, version: Version, namespace: str, options: WatchOptions
) -> WatchStream:
    _check(options)
    after = parse_revision(options.resource_version)
    now, prefix = store.revision, f"{namespace}/" if namespace else ""
    if options.initial_events:
        if after > now:
            raise too_large(after, now)
        stream = WatchStream(store, served, version, namespace, options, now)
        stream.start_with(store.range(served.bucket, prefix=prefix))
        stream.initial_end = True
    elif after > now:
        stream = WatchStream(store, served, version, namespace, options, now, floor=after)
    elif after == 0:
        stream = WatchStream(store, served, version, namespace, options, now)
        if options.initial_events is None:
            stream.start_with(store.range(served.bucket, prefix=prefix))
    else:
        stream = WatchStream(store, served, version, namespace, options, after)
    return stream


def _check(options: WatchOptions) -> None:
    causes: list[Cause] = []
    if options.continue_:
        causes.append(_forbidden("resourceVersionMatch is forbidden when continue is provided"))
    if options.initial_events is not None and options.match != "NotOlderThan":
        causes.append(_forbidden("sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"))
    if options.initial_events is None and options.match:
        causes.append(_forbidden("resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided"))
    if options.match not in ("", "NotOlderThan"):
        text = f'Unsupported value: "{options.match}": supported values: "NotOlderThan"'
        causes.append(Cause("FieldValueNotSupported", text, "resourceVersionMatch"))
    if causes:
        raise invalid("meta.k8s.io", "ListOptions", "", causes)


def _forbidden(why: str) -> Cause:
    return Cause.forbidden("resourceVersionMatch", why)
