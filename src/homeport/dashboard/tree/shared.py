"""The trees of one namespace, or of all, as far as a user may see them: for all pages of the session."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Generator
from contextlib import closing
from typing import TYPE_CHECKING

from homeport.api.meta import Resource, Unstructured
from homeport.app.tree.read import ROOTS, is_part
from homeport.client.protocol import Key
from homeport.dashboard.feed import Changed, Feed
from homeport.dashboard.tree.digest import SCALED
from homeport.dashboard.tree.live import LiveTrees

if TYPE_CHECKING:
    from homeport.dashboard.person import Person

_FIRST = SCALED | {kind for _, kind in ROOTS}  # few objects, which say most
SLICE_SECONDS = 0.008  # of work, then the plane has its turn
PATIENCE_SECONDS = 0.2  # for the rest: a page that changes at once is harder to read


class SharedTrees:
    """Watches every kind that takes part in a cluster's life. The clusters come first, so that a page has something to
    show; `complete` says whether the rest is there."""

    def __init__(self, person: Person, namespace: str) -> None:
        self.namespace = namespace
        self.listeners: list[Callable[[], None]] = []
        self.trees = LiveTrees()
        self.complete = False
        self._person = person
        self._held: list[tuple[Feed, Changed]] = []
        self._pending: dict[tuple[Resource, Key], Unstructured | None] = {}
        self._uids: dict[tuple[Resource, Key], str] = {}
        self._lock = asyncio.Lock()
        self._first = asyncio.create_task(self._begin())
        self._rest = asyncio.create_task(self._finish())

    @property
    def failure(self) -> BaseException | None:
        """Why not all of it is watched."""
        ended = (each for each in (self._first, self._rest) if each.done() and not each.cancelled())
        return next((error for each in ended if (error := each.exception()) is not None), None)

    @property
    def problems(self) -> list[str]:
        return sorted({feed.problem for feed, _ in self._held if feed.problem})

    @property
    def unreadable(self) -> list[str]:
        return sorted(feed.resource.kind for feed, _ in self._held if feed.problem)

    @property
    def denied(self) -> str:
        """Why the user can see no cluster at all, '' if they may see those of one API."""
        roots = [feed for feed, _ in self._held if (feed.resource.group, feed.resource.kind) in ROOTS]
        return roots[0].problem if roots and all(feed.problem for feed in roots) else ""

    async def begun(self) -> None:
        """Waits until there is something to show. Raises TooMany and ApiError."""
        await asyncio.shield(self._first)
        await asyncio.wait([self._rest], timeout=PATIENCE_SECONDS)

    def close(self) -> None:
        """Leaves its feeds at once: nobody has listened to the trees for a while."""
        for task in (self._first, self._rest):
            task.cancel()
        for feed, changed in self._held:
            self._person.leave(feed, changed, linger=0.0)
        self._held.clear()

    # -- what comes ------------------------------------------------------------------------------------------------

    async def _begin(self) -> None:
        await self._follow([each for each in await self._kinds() if each.kind in _FIRST])

    async def _finish(self) -> None:
        try:
            await asyncio.shield(self._first)
        except Exception:
            return  # whoever waits for the first is told
        try:
            await self._follow([each for each in await self._kinds() if each.kind not in _FIRST])
            self.complete = True
        finally:
            self._tell()

    async def _kinds(self) -> list[Resource]:
        return [each for each in await self._person.kinds() if each.namespaced and is_part(each) and not _is_rare(each)]

    async def _follow(self, kinds: list[Resource]) -> None:
        feeds = [self._listen(each) for each in kinds]
        await asyncio.gather(*(feed.settled() for feed in feeds))
        for feed in feeds:  # one that somebody else followed before is not told again
            for obj in feed.objects:
                self._pending[feed.resource, Key(obj.namespace, obj.name)] = obj

    def _listen(self, resource: Resource) -> Feed:
        def changed(key: Key, obj: Unstructured | None) -> None:
            self._pending[resource, key] = obj
            self._tell()

        feed = self._person.listen(resource, self.namespace, changed)
        self._held.append((feed, changed))
        return feed

    def _tell(self) -> None:
        for each in self.listeners:
            each()

    # -- what is made of it ----------------------------------------------------------------------------------------

    async def refresh(self) -> float:
        """Takes in what came. Gives the seconds that it took, without those of others. Raises TooMany and ApiError."""
        if self.failure is not None:
            raise self.failure
        taken, begun = 0.0, time.perf_counter()
        async with self._lock:
            begun = time.perf_counter()
            with closing(self._steps()) as steps:  # at once, if this page is left meanwhile: another one goes on
                for _ in steps:
                    if (passed := time.perf_counter() - begun) > SLICE_SECONDS:
                        taken += passed
                        await asyncio.sleep(0)
                        begun = time.perf_counter()
        return taken + time.perf_counter() - begun

    def _steps(self) -> Generator[None]:
        while self._pending:
            place, obj = self._pending.popitem()
            before = self._uids.pop(place, "")
            if before and (obj is None or obj.uid != before):
                self.trees.drop(before)
            if obj is not None:
                self._uids[place] = obj.uid
                self.trees.put(obj)
            yield
        yield from self.trees.work()


def _is_rare(kind: Resource) -> bool:
    """Templates are in no tree."""
    return kind.kind.endswith("Template") or kind.kind.endswith("TemplateChain")
