"""What is watched in an infrastructure cluster: one watch per kind and namespace, whatever the number of machines.

Machines are woken by changes of their own objects. A cache answers while its watch works; when the watch is broken, or
an object is missing in the cache, the server itself is asked. When a watch breaks, all machines are woken: those that
run should report at once that they can't be managed.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

from homeport.api.meta import Resource, Unstructured
from homeport.client.protocol import Client, Key, Query
from homeport.providers.harvester.infracluster.resource import CLAIM, DATA_VOLUME, MACHINE_NAME, MACHINE_UID, VM, VMI
from homeport.runtime.cache import key_of, labels_of
from homeport.runtime.informer import Informer

Wake = Callable[[], None]
_SELECTORS = {VM: MACHINE_NAME, VMI: MACHINE_NAME, CLAIM: MACHINE_UID, DATA_VOLUME: MACHINE_UID}
_SYNC_SECONDS = 10.0


class Watches:
    """`follow` objects for somebody until `forget`; `find` them in the caches."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._informers: dict[tuple[Resource, str], Informer[Unstructured]] = {}
        self._tasks: list[asyncio.Task[None]] = []
        self._wakes: dict[str, Wake] = {}  # by who is woken
        self._followers: dict[tuple[Resource, Key], set[str]] = {}
        self._broken: set[tuple[Resource, str]] = set()  # watches that everybody knows of

    def __len__(self) -> int:
        return len(self._informers)

    async def close(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._tasks.clear()

    # -- whom a change concerns --------------------------------------------------------------------------------

    def follow(self, who: str, wake: Wake, objects: Iterable[tuple[Resource, Key]]) -> None:
        """`who` is woken when one of these changes, or anything that carries it as the UID of its machine."""
        self._wakes[who] = wake
        for kind, key in objects:
            self._followers.setdefault((kind, key), set()).add(who)

    def forget(self, who: str) -> None:
        self._wakes.pop(who, None)
        for place in [place for place, followers in self._followers.items() if who in followers]:
            self._followers[place].discard(who)
            if not self._followers[place]:
                del self._followers[place]

    def _changed(self, kind: Resource, obj: Unstructured) -> None:
        concerned = set(self._followers.get((kind, key_of(obj)), ()))
        concerned.add(labels_of(obj).get(MACHINE_UID, ""))
        for who in concerned:
            wake = self._wakes.get(who)
            if wake is not None:
                wake()

    # -- what there is -----------------------------------------------------------------------------------------

    async def start(self, kinds: Iterable[Resource], namespace: str) -> None:
        """Begins to watch, so that no change after this is missed."""
        for kind in kinds:
            await self._informer(kind, namespace)

    async def find(self, kind: Resource, key: Key) -> Unstructured | None:
        """As the cache has it. None: it is not there, or the watch does not work at the moment."""
        informer = await self._informer(kind, key.namespace)
        return informer.cache.get(key) if self._works(informer) else None

    async def list(self, kind: Resource, namespace: str) -> list[Unstructured] | None:
        """None: the watch does not work at the moment."""
        informer = await self._informer(kind, namespace)
        return list(informer.cache) if self._works(informer) else None

    def note(self, kind: Resource, obj: Unstructured) -> None:
        """A write of our own, which the watch has not reported yet."""
        informer = self._informers.get((kind, obj.namespace))
        if informer is not None and self._works(informer):
            informer.cache.put(obj)

    async def _informer(self, kind: Resource, namespace: str) -> Informer[Unstructured]:
        made = self._informers.get((kind, namespace))
        if made is None:
            query = Query(namespace=namespace, labels=_SELECTORS.get(kind, ""))
            made = Informer(self._client, kind, query, measured=False)
            made.on_change(self._handler(kind))
            made.on_trouble = partial(self._break, (kind, namespace))
            self._informers[kind, namespace] = made
            name = f"informer {kind.qualified} of the infrastructure cluster"
            self._tasks.append(asyncio.get_running_loop().create_task(made.run(), name=name))
        if not made.settled.is_set():
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_SYNC_SECONDS):
                    await made.settled.wait()
        return made

    def _works(self, informer: Informer[Unstructured]) -> bool:
        works = informer.synced.is_set() and not informer.error
        if works:
            self._broken.discard((informer.resource, informer.query.namespace))
        return works

    def _break(self, place: tuple[Resource, str]) -> None:
        if place not in self._broken:
            self._broken.add(place)
            for wake in list(self._wakes.values()):
                wake()

    def _handler(self, kind: Resource) -> Callable[[Any, Any, bool], None]:
        def changed(old: Unstructured | None, new: Unstructured | None, initial: bool) -> None:
            del initial
            shown = new if new is not None else old
            if shown is not None:
                self._changed(kind, shown)

        return changed
