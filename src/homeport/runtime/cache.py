"""What informers have seen: objects by key, decoded once, with indexes. Not a Client: it is as old as its last event.

Objects in a cache are shared. Whoever changes one changes it for everybody, so nobody does.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Generic, TypeVar

from homeport.api.meta import Object, Unstructured
from homeport.client.protocol import Key

T = TypeVar("T", bound=Object | Unstructured)

Index = Callable[[Any], Iterable[str]]


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


def deleting(obj: Object | Unstructured) -> bool:
    if isinstance(obj, Unstructured):
        return bool(obj.metadata.get("deletionTimestamp"))
    return bool(obj.metadata.deletion_timestamp)


class Cache(Generic[T]):
    """Objects of one kind. `revision` is how far the view is known to be complete."""

    def __init__(self) -> None:
        self._objects: dict[Key, T] = {}
        self._indexes: dict[str, tuple[Index, dict[str, dict[Key, T]]]] = {}
        self._waiters: list[tuple[Callable[[], bool], asyncio.Future[None]]] = []
        self.revision = 0

    def __len__(self) -> int:
        return len(self._objects)

    def __iter__(self) -> Iterator[T]:
        return iter(list(self._objects.values()))

    def get(self, key: Key) -> T | None:
        return self._objects.get(key)

    def list(self, namespace: str = "") -> Sequence[T]:
        if not namespace:
            return list(self._objects.values())
        return [obj for key, obj in self._objects.items() if key.namespace == namespace]

    def add_index(self, name: str, index: Index) -> None:
        """`index` gives the values under which an object is found. May be added at any time."""
        if name in self._indexes:
            raise ValueError(f"there is an index {name!r} already")
        self._indexes[name] = (index, {})
        for key, obj in self._objects.items():
            self._enter(name, key, obj)

    def by(self, name: str, value: str) -> Sequence[T]:
        """The objects that index `name` files under `value`."""
        return list(self._indexes[name][1].get(value, {}).values())

    def put(self, obj: T) -> T | None:
        """Takes a newer state; gives the one before. A state older than what is known is ignored."""
        key = key_of(obj)
        old = self._objects.get(key)
        if old is not None and uid_of(old) == uid_of(obj) and version_of(obj) < version_of(old):
            return obj
        self._objects[key] = obj
        if self._indexes:
            self._reindex(key, old, obj)
        self.reach(version_of(obj))
        return old

    def drop(self, key: Key, revision: int = 0) -> T | None:
        old = self._objects.pop(key, None)
        if old is not None and self._indexes:
            self._reindex(key, old, None)
        self.reach(revision)
        return old

    def reach(self, revision: int) -> None:
        """The view is complete up to `revision`."""
        self.revision = max(self.revision, revision)
        if self._waiters:
            self._release()

    async def until(self, condition: Callable[[], bool], timeout: float) -> bool:
        """Waits until the cache shows something. False when `timeout` seconds have passed first."""
        if condition():
            return True
        future = asyncio.get_running_loop().create_future()
        waiter = (condition, future)
        self._waiters.append(waiter)
        try:
            async with asyncio.timeout(timeout):
                await future
        except TimeoutError:
            return False
        finally:
            if waiter in self._waiters:
                self._waiters.remove(waiter)
        return True

    def _release(self) -> None:
        for waiter in [w for w in self._waiters if w[0]()]:
            self._waiters.remove(waiter)
            if not waiter[1].done():
                waiter[1].set_result(None)

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
