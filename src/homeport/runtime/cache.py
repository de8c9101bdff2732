"""What informers have seen: objects by key, decoded once, with indexes. Not a Client: it is as old as its last event.

Objects in a cache are shared: never change one in place.
"""

from __future__ import annotations

import asyncio
import contextlib
import heapq
import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Generic, TypeVar

from homeport.api.meta import Object, Unstructured
from homeport.client.protocol import Key

T = TypeVar("T", bound=Object | Unstructured)

Index = Callable[[T], Iterable[str]]


def key_of(obj: Object | Unstructured) -> Key:
    if isinstance(obj, Unstructured):
        return Key(obj.namespace, obj.name)
    return Key(obj.metadata.namespace, obj.metadata.name)


def uid_of(obj: Object | Unstructured) -> str:
    return obj.uid if isinstance(obj, Unstructured) else obj.metadata.uid


def version_of(obj: Object | Unstructured) -> int:
    """The resourceVersion as a number: Kubernetes guarantees that it is one, and that larger is newer."""
    text = obj.resource_version if isinstance(obj, Unstructured) else obj.metadata.resource_version
    return int(text or 0)


def is_same(one: Object | Unstructured, two: Object | Unstructured) -> bool:
    """Whether both are the same state of the same object."""
    return one is two or (uid_of(one) == uid_of(two) and version_of(one) == version_of(two))


def labels_of(obj: Object | Unstructured) -> Mapping[str, str]:
    if isinstance(obj, Unstructured):
        return obj.metadata.get("labels") or {}
    return obj.metadata.labels


def deleting(obj: Object | Unstructured) -> bool:
    if isinstance(obj, Unstructured):
        return bool(obj.metadata.get("deletionTimestamp"))
    return bool(obj.metadata.deletion_timestamp)


class Cache(Generic[T]):
    """Objects of one kind. `revision` is how far the view is known to be complete."""

    def __init__(self) -> None:
        self._objects: dict[Key, T] = {}
        self._indexes: dict[str, tuple[Index[T], dict[str, dict[Key, T]]]] = {}
        self._by_revision: list[tuple[int, int, asyncio.Future[None]]] = []  # a heap
        self._by_key: dict[Key, list[asyncio.Future[None]]] = {}
        self._order = itertools.count()
        self.revision = 0

    def __len__(self) -> int:
        return len(self._objects)

    def __iter__(self) -> Iterator[T]:
        return iter(list(self._objects.values()))

    def __contains__(self, key: Key) -> bool:
        return key in self._objects

    def get(self, key: Key) -> T | None:
        return self._objects.get(key)

    def known_keys(self) -> Sequence[Key]:
        return list(self._objects)

    def list(self, namespace: str = "") -> Sequence[T]:
        if not namespace:
            return list(self._objects.values())
        return [obj for key, obj in self._objects.items() if key.namespace == namespace]

    def add_index(self, name: str, index: Index[T]) -> None:
        """`index` gives the values under which an object is found. May be added at any time."""
        if name in self._indexes:
            raise ValueError(f"index {name!r} already exists")
        self._indexes[name] = (index, {})
        for key, obj in self._objects.items():
            self._enter(name, key, obj)

    def by(self, name: str, value: str) -> Sequence[T]:
        """The objects that index `name` files under `value`."""
        return list(self._indexes[name][1].get(value, {}).values())

    # -- being fed ---------------------------------------------------------------------------------------------

    def put(self, obj: T) -> bool:
        """Takes a newer state. False: it is older than what is known, and ignored."""
        key = key_of(obj)
        old = self._objects.get(key)
        if old is not None and uid_of(old) == uid_of(obj) and version_of(obj) < version_of(old):
            return False
        self._set(key, old, obj)
        self.reach(version_of(obj))
        return True

    def drop(self, key: Key, revision: int = 0) -> T | None:
        old = self._objects.get(key)
        if old is not None:
            self._set(key, old, None)
        self.reach(revision)
        return old

    def replace(self, seen: Mapping[Key, T], revision: int) -> Sequence[tuple[T | None, T | None]]:
        """A list is the truth, whatever was known before. Gives the differences as (before, after)."""
        changes: list[tuple[T | None, T | None]] = []
        for key in [key for key in self._objects if key not in seen]:
            old = self._objects[key]
            self._set(key, old, None)
            changes.append((old, None))
        for key, obj in seen.items():
            known = self._objects.get(key)
            if known is not None and is_same(known, obj):
                continue
            self._set(key, known, obj)
            if known is not None and uid_of(known) != uid_of(obj):  # deleted and created again between two lists
                changes.append((known, None))
                known = None
            changes.append((known, obj))
        # Not `reach`: a server that was restored from a backup counts on from an earlier revision.
        self.revision = revision
        self._release()
        return changes

    def reach(self, revision: int) -> None:
        """The view is complete up to `revision`."""
        if revision > self.revision:
            self.revision = revision
            if self._by_revision:
                self._release()

    # -- waiting -----------------------------------------------------------------------------------------------

    async def news(self, *, revision: int = 0, key: Key | None = None) -> None:
        """Returns when the view reaches `revision` (0: whenever) or when the object `key` changes."""
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        if revision:
            heapq.heappush(self._by_revision, (revision, next(self._order), future))
        if key is not None:
            self._by_key.setdefault(key, []).append(future)
        try:
            await future
        finally:
            if key is not None and key in self._by_key:
                with contextlib.suppress(ValueError):
                    self._by_key[key].remove(future)
                if not self._by_key[key]:
                    del self._by_key[key]

    def _release(self) -> None:
        while self._by_revision and (self._by_revision[0][0] <= self.revision or self._by_revision[0][2].done()):
            _wake(heapq.heappop(self._by_revision)[2])

    def _set(self, key: Key, old: T | None, new: T | None) -> None:
        if new is None:
            del self._objects[key]
        else:
            self._objects[key] = new
        if self._indexes:
            self._reindex(key, old, new)
        if self._by_key:
            for future in self._by_key.pop(key, ()):
                _wake(future)

    def _reindex(self, key: Key, old: T | None, new: T | None) -> None:
        for name, (index, table) in self._indexes.items():
            if old is not None:
                for value in index(old):
                    bucket = table.get(value)
                    if bucket is not None:
                        bucket.pop(key, None)
                        if not bucket:
                            del table[value]
            if new is not None:
                self._enter(name, key, new)

    def _enter(self, name: str, key: Key, obj: T) -> None:
        index, table = self._indexes[name]
        for value in index(obj):
            table.setdefault(value, {})[key] = obj


def _wake(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)
