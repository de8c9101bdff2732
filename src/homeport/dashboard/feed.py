"""One kind that a user watches, with their own credential, for any number of listeners."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence

from homeport.api.meta import Resource, Unstructured
from homeport.client.protocol import Client, Key, Query
from homeport.dashboard.contact import Stale
from homeport.dashboard.right import Rights
from homeport.runtime.cache import key_of
from homeport.runtime.informer import Informer
from homeport.runtime.permission import Need
from homeport.runtime.task import cancel

Changed = Callable[[Key, Unstructured | None], None]  # None: it is gone
GRACE_SECONDS = 3.0  # a watch that ends is followed by the next one
_NOTHING = Key("", "")  # that something is different, but no object


class Feed:
    """Runs until it is closed. Without the right to watch, `problem` says so and the feed is empty."""

    def __init__(self, client: Client, rights: Rights, resource: Resource, namespace: str) -> None:
        self.resource = resource
        self.namespace = namespace
        self._informer: Informer[Unstructured] = Informer(client, resource, Query(namespace=namespace), measured=False)
        self._informer.on_change(self._call)
        self._informer.on_trouble = self._note_trouble
        self._informer.on_sync(self._tell_problem)
        self._listeners: list[Changed] = []
        self._denied = ""
        self._told = ""
        self._troubled = 0.0  # since when it can't follow, in seconds since 1970
        self._rights = rights
        self._right = rights.hold(Need(("watch",), resource, namespace), self._judge)
        self._task = asyncio.create_task(self._informer.run())

    @property
    def used(self) -> bool:
        return bool(self._listeners)

    @property
    def problem(self) -> str:
        return self._denied or ("" if self._informer.synced.is_set() else self._informer.error)

    def look(self) -> Stale | None:
        """Since when its objects are not followed. While it tells a problem, it shows nothing that could be old."""
        if self._informer.listed.is_set() and not self._informer.error:
            self._troubled = 0.0
        elif self._troubled and not self.problem and len(self._informer.cache):
            if time.time() - self._troubled > GRACE_SECONDS:
                return Stale(self._troubled, self._informer.error or f"{self.resource.plural} are being read again")
        return None

    def resume(self, since: float) -> None:
        """The API server answers again: a watch that is still open may be one that leads to nowhere."""
        self._troubled = min(since, self._troubled or since)
        self._informer.relist()
        self._task = asyncio.create_task(self._rerun(self._task))

    async def _rerun(self, before: asyncio.Task[None]) -> None:
        await cancel(before)
        await self._informer.run()

    def _note_trouble(self) -> None:
        self._troubled = self._troubled or time.time()
        self._tell_problem()

    @property
    def objects(self) -> Sequence[Unstructured]:
        return () if self._denied else list(self._informer.cache)

    async def settled(self) -> None:
        """Waits until the first list is complete, or known to be impossible for now."""
        await self._informer.settled.wait()

    def listen(self, changed: Changed) -> None:
        self._listeners.append(changed)

    def leave(self, changed: Changed) -> None:
        self._listeners.remove(changed)

    def _judge(self, allowed: bool) -> None:
        """The right to watch this was given, or taken away: then listeners lose everything until it is back."""
        where = f" in namespace {self.namespace}" if self.namespace else ""
        before, self._denied = self._denied, "" if allowed else f"you may not watch {self.resource.plural}{where}"
        if before != self._denied:
            for obj in self._informer.cache:
                for listener in list(self._listeners):
                    listener(key_of(obj), obj if allowed else None)
        self._tell_problem()
        if allowed:
            self._informer.nudge()  # it may wait since it was refused

    def _tell_problem(self) -> None:
        """To listeners, if it is another one than before: an empty feed has no object whose change would tell them."""
        if self.problem != self._told:
            self._told = self.problem
            for listener in list(self._listeners):
                listener(_NOTHING, None)

    def close(self) -> asyncio.Task[None]:
        self._rights.drop(self._right)
        self._task.cancel()
        return self._task

    def _call(self, old: Unstructured | None, new: Unstructured | None, initial: bool) -> None:
        obj = new if new is not None else old
        if obj is None or self._denied:
            return
        key = key_of(obj)
        for listener in list(self._listeners):
            listener(key, new)
