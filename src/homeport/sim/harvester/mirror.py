"""The objects of the server, decoded as they change, with indexes. Who reads leaves them as they are."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

import orjson

from homeport.api.meta import Resource
from homeport.client.protocol import Key
from homeport.sim.harvester.kind import Json
from homeport.store import Change, Store

Values = Callable[[Json], Iterable[str]]
Follower = Callable[[str, Json | None, Json | None], None]


@dataclass(slots=True)
class _Table:
    objects: dict[str, Json] = field(default_factory=dict)
    indexes: dict[str, tuple[Values, dict[str, dict[str, None]]]] = field(default_factory=dict)
    followers: list[Follower] = field(default_factory=list)


class Mirror:
    """Always as new as the server: it changes within the commit. `follow` the kinds first."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._tables: dict[str, _Table] = {}
        self._ends: list[Callable[[], None]] = []

    def follow(self, kind: Resource) -> None:
        bucket = kind.qualified
        if bucket in self._tables:
            return
        table = self._tables[bucket] = _Table()
        for record in self._store.range(bucket):
            table.objects[record.name] = orjson.loads(record.value)

        def changed(changes: list[Change]) -> None:
            for change in changes:
                self._take(table, change)

        self._ends.append(self._store.subscribe(bucket, changed))

    def index(self, kind: Resource, name: str, values: Values) -> None:
        """Objects can be found by these values from now on."""
        table = self._table(kind)
        entries: dict[str, dict[str, None]] = {}
        table.indexes[name] = (values, entries)
        for key, obj in table.objects.items():
            for value in values(obj):
                entries.setdefault(value, {})[key] = None

    def on(self, kind: Resource, follower: Follower) -> None:
        """Calls `follower(key, new, old)` with every change, and now with everything that there is."""
        table = self._table(kind)
        table.followers.append(follower)
        for key, obj in list(table.objects.items()):
            follower(key, obj, None)

    def get(self, kind: Resource, key: Key | str) -> Json | None:
        return self._table(kind).objects.get(str(key))

    def all(self, kind: Resource) -> list[Json]:
        return list(self._table(kind).objects.values())

    def count(self, kind: Resource) -> int:
        return len(self._table(kind).objects)

    def by(self, kind: Resource, index: str, value: str) -> list[Json]:
        table = self._table(kind)
        return [table.objects[key] for key in table.indexes[index][1].get(value, ())]

    def close(self) -> None:
        for end in self._ends:
            end()
        self._ends.clear()

    def _table(self, kind: Resource) -> _Table:
        return self._tables[kind.qualified]

    def _take(self, table: _Table, change: Change) -> None:
        key = change.name
        old = table.objects.get(key)
        new: Json | None = None if change.record is None else orjson.loads(change.record.value)
        if new is None:
            table.objects.pop(key, None)
        else:
            table.objects[key] = new
        for values, entries in table.indexes.values():
            for value in values(old) if old is not None else ():
                entries.get(value, {}).pop(key, None)
            for value in values(new) if new is not None else ():
                entries.setdefault(value, {})[key] = None
        for follower in table.followers:
            follower(key, new, old)
