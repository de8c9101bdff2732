"""Following a kind without keeping it: for objects that are large, or of which only a few matter."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace

import structlog

from homeport.api.meta import Resource, Unstructured
from homeport.client.errors import ApiError, Expired
from homeport.client.protocol import Client, Query
from homeport.runtime.queue import Backoff

log = structlog.get_logger(__name__)

Look = Callable[[Unstructured, bool], None]  # (object, deleted)

_PAGE = 20


async def follow(
    client: Client, kind: Resource, query: Query, look: Look, listed: Callable[[], None] = lambda: None
) -> None:
    """Shows everything there is to `look`, calls `listed`, then shows every change; goes on through errors until
    cancelled."""
    backoff, failures = Backoff(first=0.1, limit=30.0), 0
    while True:
        try:
            revision = await _list(client, kind, query, look)
            failures = 0
            listed()
            await _watch(client, kind, replace(query, resource_version=revision), look)
        except Expired:
            continue
        except ApiError as error:
            failures += 1
            delay = max(backoff.delay(failures), float(error.retry_after))
            log.warning("can't follow", kind=kind.qualified, error=str(error), retry_in=round(delay, 1))
            await asyncio.sleep(delay)


async def _list(client: Client, kind: Resource, query: Query, look: Look) -> str:
    query = replace(query, limit=_PAGE)
    while True:
        page = await client.list(kind, query)
        for obj in page.items:
            look(obj, False)
        if not page.continue_:
            return page.resource_version
        query = replace(query, continue_=page.continue_)


async def _watch(client: Client, kind: Resource, query: Query, look: Look) -> None:
    """Until the past is gone; a watch that merely ends is taken up again."""
    while True:
        async with client.watch(kind, query) as events:
            async for event in events:
                query = replace(query, resource_version=event.resource_version or query.resource_version)
                if event.type != "BOOKMARK":
                    look(event.object, event.type == "DELETED")
