"""Any kind as rows of the columns that a page shows; changes follow as they happen."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from homeport.api.meta import Resource, Unstructured
from homeport.client.protocol import Key
from homeport.dashboard.column import ColumnError, readers, row
from homeport.dashboard.feed import Feed
from homeport.dashboard.person import Person
from homeport.dashboard.topic.base import Send, Topic, TopicError

_AT_ONCE = 500  # rows of one message: page and plane stay responsive while many are sent


class Rows(Topic):
    def __init__(self, person: Person, send: Send, options: dict[str, Any]) -> None:
        super().__init__(person, send)
        self._group = str(options.get("group") or "")
        self._plural = str(options.get("plural") or "")
        self._namespace = str(options.get("namespace") or "")
        try:
            self._columns = readers(options.get("columns") or [])
        except ColumnError as error:
            raise TopicError(str(error)) from error
        self._pending: dict[Key, Unstructured | None] = {}
        self._uids: dict[Key, str] = {}
        self._feed: Feed | None = None
        self._first = True
        self._told: list[str] = []

    async def prepare(self) -> None:
        resource = await self.find(self._group, self._plural)
        self._feed = self.follow(resource, self._namespace)
        await self._feed.settled()
        self._pending |= {Key(obj.namespace, obj.name): obj for obj in self._feed.objects}

    def changed(self, resource: Resource, key: Key, obj: Unstructured | None) -> None:
        self._pending[key] = obj

    async def message(self) -> Iterable[dict[str, Any]]:
        pending, self._pending = self._pending, {}
        return self._messages(pending)

    def _messages(self, pending: dict[Key, Unstructured | None]) -> Iterator[dict[str, Any]]:
        gone = [self._uids.pop(key) for key, obj in pending.items() if obj is None and key in self._uids]
        live = [(key, obj) for key, obj in pending.items() if obj is not None]
        first, self._first = self._first, False
        for begin in range(0, len(live), _AT_ONCE):
            part = live[begin : begin + _AT_ONCE]
            gone += [self._uids[key] for key, obj in part if self._uids.get(key, obj.uid) != obj.uid]
            self._uids |= {key: obj.uid for key, obj in part}
            yield self._message(first and not begin, [row(obj, self._columns) for _, obj in part], [])
        if gone or (first and not live) or self.problems != self._told:
            yield self._message(first and not live, [], gone)

    def _message(self, first: bool, rows: list[list[Any]], gone: list[str]) -> dict[str, Any]:
        self._told = self.problems
        return {"first": first, "rows": rows, "gone": gone, "problem": "; ".join(self._told)}
