"""What a logged-in user watches, with their own credential, shared by all pages of the session."""

from __future__ import annotations

import asyncio
import contextlib
import math
import time
from collections.abc import Callable, Mapping
from typing import Any

import structlog

from homeport.api.meta import Resource
from homeport.client.config import Config
from homeport.client.errors import ApiError
from homeport.client.http import HttpClient
from homeport.client.restmapper import RestMapper
from homeport.dashboard.contact import Stale
from homeport.dashboard.feed import Changed, Feed
from homeport.dashboard.right import Rights
from homeport.dashboard.tree.shared import SharedTrees

log = structlog.get_logger(__name__)

LINGER_SECONDS = 30.0  # a page that is left and opened again finds its data still there
MOST_FEEDS = 200
LOOK_SECONDS = 1.0  # between two looks whether what is shown is old
_REVIEW = Resource("authorization.k8s.io", "v1", "SelfSubjectAccessReview", "selfsubjectaccessreviews", False)


class TooMany(Exception):
    """A session watches as much as it may."""


class Person:
    """The user's own connection. Each feed lives while somebody listens, and a little longer."""

    def __init__(self, config: Config, rejected: Callable[[], None] = lambda: None) -> None:
        """`rejected` is called when the API server no longer accepts the credential."""
        self.client = HttpClient(config)
        self.rights = Rights(self.client, rejected)
        self._feeds: dict[tuple[Resource, str], Feed] = {}
        self._lingering: dict[tuple[Resource, str], asyncio.TimerHandle] = {}
        self._trees: dict[str, SharedTrees] = {}
        self._kinds: list[Resource] | None = None
        self._kinds_at = -math.inf  # when they were asked for
        self._kinds_lock = asyncio.Lock()
        self.stale: Stale | None = None  # what is shown is old
        self.on_stale: list[Callable[[], None]] = []  # called when that changes
        self._tasks = [asyncio.create_task(each) for each in (self.rights.run(), self._foresee(), self._look())]

    async def kinds(self, *, fresh: bool = False) -> list[Resource]:
        """What the API server serves; with `fresh`, now. Raises ApiError."""
        asked = time.monotonic()
        async with self._kinds_lock:
            begun = time.monotonic()
            # Whoever waited for somebody else's answer, which was asked for later, has a fresh one.
            if self._kinds is None or (fresh and self._kinds_at < asked):
                self._kinds = await RestMapper(self.client).listed()
                self._kinds_at = begun
            return self._kinds

    async def _foresee(self) -> None:
        """Every page asks for the kinds: they are there when the browser has read its script."""
        with contextlib.suppress(ApiError):
            await self.kinds()

    async def _look(self) -> None:
        while True:
            away = self.rights.contact.stale
            await asyncio.sleep(LOOK_SECONDS)
            now = self.rights.contact.stale
            if away is not None and now is None:
                for feed in self._feeds.values():
                    feed.resume(away.since)
            behind = [found for feed in self._feeds.values() if (found := feed.look()) is not None]
            found = now or min(behind, key=lambda each: each.since, default=None)
            if found != self.stale:
                self.stale = found
                for told in list(self.on_stale):
                    told()

    def listen(self, resource: Resource, namespace: str, changed: Changed) -> Feed:
        """Raises TooMany. `leave` ends it."""
        key = (resource, namespace)
        if (timer := self._lingering.pop(key, None)) is not None:
            timer.cancel()
        if key not in self._feeds:
            if len(self._feeds) >= MOST_FEEDS:
                self._make_room()
            if len(self._feeds) >= MOST_FEEDS:
                raise TooMany(f"this session already watches {MOST_FEEDS} kinds: close some pages")
            self._feeds[key] = Feed(self.client, self.rights, resource, namespace)
        feed = self._feeds[key]
        feed.listen(changed)
        return feed

    def leave(self, feed: Feed, changed: Changed, linger: float = LINGER_SECONDS) -> None:
        feed.leave(changed)
        key = (feed.resource, feed.namespace)
        if feed.used or self._feeds.get(key) is not feed:
            return
        if linger:
            self._lingering[key] = asyncio.get_running_loop().call_later(linger, self._drop, key)
        else:
            self._drop(key)

    def _drop(self, key: tuple[Resource, str]) -> None:
        self._lingering.pop(key, None)
        self._feeds.pop(key).close()

    def _make_room(self) -> None:
        """What only lingers goes."""
        for trees in list(self._trees.values()):
            self._drop_trees(trees)
        for key, timer in list(self._lingering.items()):
            timer.cancel()
            self._drop(key)

    def trees(self, namespace: str, changed: Callable[[], None]) -> SharedTrees:
        """Of one namespace, or with '' of all. `leave_trees` ends it."""
        if namespace not in self._trees:
            self._trees[namespace] = SharedTrees(self, namespace)
        found = self._trees[namespace]
        found.listeners.append(changed)
        return found

    def leave_trees(self, trees: SharedTrees, changed: Callable[[], None]) -> None:
        """They are kept as long as their feeds would be, and go at once if they failed."""
        trees.listeners.remove(changed)
        if not trees.listeners:
            delay = LINGER_SECONDS if trees.failure is None else 0.0
            asyncio.get_running_loop().call_later(delay, self._drop_trees, trees)

    def _drop_trees(self, trees: SharedTrees) -> None:
        if not trees.listeners and self._trees.get(trees.namespace) is trees:
            del self._trees[trees.namespace]
            trees.close()

    async def may(self, verb: str, resource: Resource, namespace: str = "", name: str = "") -> bool:
        """Raises ApiError."""
        attributes = {
            "verb": verb,
            "group": resource.group,
            "version": resource.version,
            "resource": resource.plural,
            "namespace": namespace,
            "name": name,
        }
        body: Mapping[str, Any] = {
            "apiVersion": _REVIEW.api_version,
            "kind": _REVIEW.kind,
            "spec": {"resourceAttributes": attributes},
        }
        answer = await self.client.create(body, kind=_REVIEW)
        return bool((answer.get("status") or {}).get("allowed"))

    async def close(self) -> None:
        for timer in self._lingering.values():
            timer.cancel()
        for task in self._tasks:
            task.cancel()
        ending = [*self._tasks, *(feed.close() for feed in self._feeds.values())]
        self._feeds.clear()
        for trees in self._trees.values():
            trees.close()
        self._trees.clear()
        await asyncio.gather(*ending, return_exceptions=True)
        await self.client.close()
