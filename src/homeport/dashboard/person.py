"""What a logged-in user watches, with their own credential, shared by all pages of the session."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Mapping
from typing import Any

import structlog

from homeport.api.cluster.v1beta2 import Cluster
from homeport.api.meta import Resource
from homeport.client.config import Config
from homeport.client.errors import ApiError
from homeport.client.http import HttpClient
from homeport.client.restmapper import RestMapper
from homeport.dashboard.feed import Changed, Feed
from homeport.dashboard.tree.shared import SharedTrees

log = structlog.get_logger(__name__)

LINGER_SECONDS = 30.0  # a page that is left and opened again finds its data still there
CHECK_SECONDS = 10.0  # an open watch outlives the right to it: the right is asked for again
MOST_FEEDS = 200
_REVIEW = Resource("authorization.k8s.io", "v1", "SelfSubjectAccessReview", "selfsubjectaccessreviews", False)


class TooMany(Exception):
    """A session watches as much as it may."""


class Person:
    """The user's own connection. Each feed lives while somebody listens, and a little longer."""

    def __init__(self, config: Config, rejected: Callable[[], None] = lambda: None) -> None:
        """`rejected` is called when the API server no longer accepts the credential."""
        self._rejected = rejected
        self.client = HttpClient(config)
        self._feeds: dict[tuple[Resource, str], Feed] = {}
        self._lingering: dict[tuple[Resource, str], asyncio.TimerHandle] = {}
        self._trees: dict[str, SharedTrees] = {}
        self._kinds: list[Resource] | None = None
        self._kinds_lock = asyncio.Lock()
        self._tasks = [asyncio.create_task(self._check()), asyncio.create_task(self._foresee())]

    async def kinds(self, *, fresh: bool = False) -> list[Resource]:
        """What the API server serves. Raises ApiError."""
        async with self._kinds_lock:
            if self._kinds is None or fresh:
                self._kinds = await RestMapper(self.client).listed()
            return self._kinds

    async def _foresee(self) -> None:
        """Every page asks for the kinds: they are there when the browser has read its script."""
        with contextlib.suppress(ApiError):
            await self.kinds()

    def listen(self, resource: Resource, namespace: str, changed: Changed) -> Feed:
        """Raises TooMany. `leave` ends it."""
        key = (resource, namespace)
        if (timer := self._lingering.pop(key, None)) is not None:
            timer.cancel()
        if key not in self._feeds:
            if len(self._feeds) >= MOST_FEEDS:
                raise TooMany(f"this session already watches {MOST_FEEDS} kinds: close some pages")
            self._feeds[key] = Feed(self.client, resource, namespace)
        feed = self._feeds[key]
        feed.listen(changed)
        return feed

    def leave(self, feed: Feed, changed: Changed) -> None:
        feed.leave(changed)
        key = (feed.resource, feed.namespace)
        if not feed.used and self._feeds.get(key) is feed:
            loop = asyncio.get_running_loop()
            self._lingering[key] = loop.call_later(LINGER_SECONDS, self._drop, key)

    def _drop(self, key: tuple[Resource, str]) -> None:
        self._lingering.pop(key, None)
        self._feeds.pop(key).close()

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

    async def widest(self, namespace: str) -> str:
        """'' if the user may watch Clusters everywhere, otherwise `namespace`. Raises ApiError."""
        return "" if not namespace or await self.may("watch", Cluster.__resource__) else namespace

    async def _check(self) -> None:
        while True:
            await asyncio.sleep(CHECK_SECONDS)
            for feed in list(self._feeds.values()):
                try:
                    allowed = await self.may("watch", feed.resource, feed.namespace)
                except ApiError as error:
                    if error.http_code == 401:
                        self._rejected()
                        return
                    continue  # no answer is no proof that a right is gone
                where = f" in namespace {feed.namespace}" if feed.namespace else ""
                feed.deny("" if allowed else f"you may not watch {feed.resource.plural}{where}")
                feed.tell_problem()

    async def close(self) -> None:
        for timer in self._lingering.values():
            timer.cancel()
        for trees in self._trees.values():
            trees.close()
        self._trees.clear()
        for task in self._tasks:
            task.cancel()
        ending = [*self._tasks, *(feed.close() for feed in self._feeds.values())]
        self._feeds.clear()
        await asyncio.gather(*ending, return_exceptions=True)
        await self.client.close()
