"""What a logged-in user watches, with their own credential, shared by all pages of the session."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import structlog

from homeport.api.cluster.v1beta2 import Cluster
from homeport.api.meta import Resource
from homeport.app.tree.grow import Memory
from homeport.client.config import Config
from homeport.client.errors import ApiError
from homeport.client.http import HttpClient
from homeport.client.restmapper import RestMapper
from homeport.dashboard.feed import Changed, Feed

log = structlog.get_logger(__name__)

LINGER_SECONDS = 30.0  # a page that is left and opened again finds its data still there
CHECK_SECONDS = 10.0  # an open watch outlives the right to it: the right is asked for again
MOST_FEEDS = 200
_REVIEW = Resource("authorization.k8s.io", "v1", "SelfSubjectAccessReview", "selfsubjectaccessreviews", False)


class TooMany(Exception):
    """A session watches as much as it may."""


class Person:
    """The user's own connection. Each feed lives while somebody listens, and a little longer."""

    def __init__(self, config: Config) -> None:
        self.client = HttpClient(config)
        self.memory = Memory()  # of trees, for all pages
        self._feeds: dict[tuple[Resource, str], Feed] = {}
        self._lingering: dict[tuple[Resource, str], asyncio.TimerHandle] = {}
        self._kinds: list[Resource] | None = None
        self._kinds_lock = asyncio.Lock()
        self._checking = asyncio.create_task(self._check())

    async def kinds(self, *, fresh: bool = False) -> list[Resource]:
        """What the API server serves. Raises ApiError."""
        async with self._kinds_lock:
            if self._kinds is None or fresh:
                self._kinds = await RestMapper(self.client).listed()
            return self._kinds

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
        self.memory = Memory()  # it would keep the objects of a page that nobody looks at

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
                    if error.http_code != 401:
                        continue  # no answer is no proof that a right is gone
                    feed.deny("you are no longer logged in: run `homeport dashboard` again")
                    continue
                where = f" in namespace {feed.namespace}" if feed.namespace else ""
                feed.deny("" if allowed else f"you may no longer watch {feed.resource.plural}{where}")

    async def close(self) -> None:
        for timer in self._lingering.values():
            timer.cancel()
        self._checking.cancel()
        ending = [self._checking, *(feed.close() for feed in self._feeds.values())]
        self._feeds.clear()
        await asyncio.gather(*ending, return_exceptions=True)
        await self.client.close()
