"""While a Node is drained, changes in its workload cluster enqueue its Machine, without polling."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from typing import Any

import structlog

from homeport.api.meta import Resource
from homeport.client.errors import ApiError
from homeport.client.protocol import Client, Key, Query
from homeport.core.machine.workload import DISRUPTION_BUDGET, POD, VOLUME_ATTACHMENT, pods_of

log = structlog.get_logger(__name__)

_AGAIN_SECONDS = 10.0


class Followers:
    """One per controller; `run` is a job of the manager. Outside of it nothing is followed, and polls remain."""

    def __init__(self, wake: Callable[[Key], None]) -> None:
        self._wake = wake
        self._group: asyncio.TaskGroup | None = None
        self._tasks: dict[Key, tuple[str, asyncio.Task[None]]] = {}

    async def run(self) -> None:
        try:
            async with asyncio.TaskGroup() as group:
                self._group = group
                await asyncio.Event().wait()
        finally:
            self._group = None
            self._tasks.clear()

    def begin(self, machine: Key, client: Client, node: str) -> bool:
        """True: from now on (or since earlier) events come."""
        if self._group is None:
            return False
        known = self._tasks.get(machine)
        if known is not None and known[0] == node and not known[1].done():
            return True
        self.end(machine)
        task = self._group.create_task(self._follow(machine, client, node), name=f"draining {node} of {machine}")
        self._tasks[machine] = (node, task)
        return True

    def end(self, machine: Key) -> None:
        known = self._tasks.pop(machine, None)
        if known is not None:
            known[1].cancel()

    async def _follow(self, machine: Key, client: Client, node: str) -> None:
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.gather(
                self._watch(machine, client, POD, pods_of(node), lambda pod: True),
                self._watch(machine, client, DISRUPTION_BUDGET, Query(), _allows),
                self._watch(machine, client, VOLUME_ATTACHMENT, Query(), lambda a: a["spec"].get("nodeName") == node),
            )

    async def _watch(
        self, machine: Key, client: Client, kind: Resource, query: Query, matters: Callable[[Any], bool]
    ) -> None:
        while True:
            try:
                start = await client.list(kind, Query(fields=query.fields, limit=1))
                again = Query(fields=query.fields, resource_version=start.resource_version)
                self._wake(machine)  # for what happened before this moment
                async with client.watch(kind, again) as events:
                    async for event in events:
                        if event.type != "BOOKMARK" and matters(event.object):
                            self._wake(machine)
            except ApiError as error:
                log.debug("can't watch a Node that is drained", kind=kind.qualified, error=str(error))
                await asyncio.sleep(_AGAIN_SECONDS)


def _allows(budget: Any) -> bool:
    """Whether a changed PodDisruptionBudget now allows an eviction."""
    return bool((budget.get("status") or {}).get("disruptionsAllowed"))
