"""A kind, a reconciler and a client that delays: what the tests of the runtime have in common."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import msgspec

from homeport.api.meta import Model, Object, resource
from homeport.client.errors import NotFound
from homeport.client.protocol import Key
from homeport.runtime.cache import Cache
from homeport.runtime.outcome import Wait
from homeport.runtime.reconciler import Reporting, Scope, run_phases
from homeport.runtime.testing import Plane, definition


class WidgetSpec(Model):
    size: int = 0
    hold: bool = False


class WidgetStatus(Model):
    size: int = 0
    conditions: list[dict[str, Any]] = []


@resource("example.com", "v1", "Widget", "widgets")
class Widget(Object):
    spec: WidgetSpec = msgspec.field(default_factory=WidgetSpec)
    status: WidgetStatus = msgspec.field(default_factory=WidgetStatus)


WIDGET = Widget.__resource__
WIDGETS = definition(WIDGET)


def widget(name: str, namespace: str = "default", **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "example.com/v1",
        "kind": "Widget",
        "metadata": {"name": name, "namespace": namespace},
        "spec": spec,
    }


class Sizes(Reporting[Scope[Widget]]):
    """Brings status.size to spec.size; holds while spec.hold."""

    def __init__(self, p: Plane) -> None:
        super().__init__(p.manager.client, p.manager.recorder, manager="sizes", clock=p.clock)
        self.cache: Cache[Widget] = p.manager.informers.get(Widget).cache
        self.seen: list[Key] = []

    async def reconcile(self, key: Key) -> Wait | None:
        self.seen.append(key)
        found = self.cache.get(key)
        if found is None:
            return None
        scope = Scope(found)
        return await self.reported(scope, run_phases(scope, [self._check, self._copy]))

    async def _check(self, scope: Scope[Widget]) -> Wait | None:
        return Wait("Held", "spec.hold is set", after=60.0) if scope.object.spec.hold else None

    async def _copy(self, scope: Scope[Widget]) -> Wait | None:
        scope.object.status.size = scope.object.spec.size
        return None


class SlowClient:
    """A Client whose watches run behind by random times. Everything else is as it is."""

    def __init__(self, inner: Any, chance: random.Random, longest: float = 2.0) -> None:
        self._inner = inner
        self._chance = chance
        self._longest = longest

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    @asynccontextmanager
    async def watch(self, kind: Any, *args: Any, **options: Any) -> AsyncIterator[AsyncIterator[Any]]:
        async with self._inner.watch(kind, *args, **options) as events:
            yield self._late(events)

    async def _late(self, events: AsyncIterator[Any]) -> AsyncIterator[Any]:
        async for event in events:
            if self._chance.random() < 0.5:
                await asyncio.sleep(self._chance.random() * self._longest)
            yield event


async def exists(client: Any, kind: Any, key: Key) -> bool:
    try:
        await client.get(kind, key)
    except NotFound:
        return False
    return True


def sized(number: int) -> Callable[[Widget], bool]:
    def right_size(obj: Widget) -> bool:
        return obj.status.size == number

    return right_size
