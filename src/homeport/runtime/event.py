"""Events for people: what happened to an object, each said once, repeats counted."""

from __future__ import annotations

import asyncio
import hashlib
from collections import OrderedDict
from typing import Any

import structlog

from homeport.api.meta import Object, Resource, Unstructured
from homeport.client.errors import ApiError, NotFound
from homeport.client.protocol import Client, Key, MergePatch, Write
from homeport.runtime.cache import key_of, uid_of
from homeport.runtime.clock import Clock, SystemClock, rfc3339

log = structlog.get_logger(__name__)

EVENT = Resource("", "v1", "Event", "events")
_MESSAGE_LIMIT = 1024
_REMEMBERED = 4096
_PENDING_LIMIT = 1000


class Recorder:
    """Records events without holding anybody up: `record` only notes, `run` writes.

    The same (object, reason, message) again within `window` seconds raises the count of the first event.
    """

    def __init__(self, client: Client, component: str, *, clock: Clock | None = None, window: float = 600.0) -> None:
        self._client = client
        self._component = component
        self._clock = clock or SystemClock()
        self._window = window
        self._pending: asyncio.Queue[dict[str, Any]] = asyncio.Queue(_PENDING_LIMIT)
        self._known: OrderedDict[str, tuple[float, int, str]] = OrderedDict()  # event name > first, count, namespace
        self.dropped = 0

    def record(self, obj: Object | Unstructured, reason: str, message: str, *, warning: bool = False) -> None:
        event = {
            "involvedObject": _reference(obj),
            "reason": reason,
            "message": message[:_MESSAGE_LIMIT],
            "type": "Warning" if warning else "Normal",
        }
        try:
            self._pending.put_nowait(event)
        except asyncio.QueueFull:
            self.dropped += 1  # events are a courtesy; the object's conditions say the same

    async def run(self) -> None:
        while True:
            event = await self._pending.get()
            try:
                await self._write(event)
            except ApiError as error:
                log.warning("event not recorded", reason=event["reason"], error=str(error))

    async def flush(self) -> None:
        """Writes what is pending: for the end of a program and for tests."""
        while not self._pending.empty():
            await self._write(self._pending.get_nowait())

    async def _write(self, event: dict[str, Any]) -> None:
        involved = event["involvedObject"]
        namespace = involved.get("namespace") or "default"
        name = f"{involved['name']}.{_digest(event)}"[-253:]
        now = self._clock.now()
        first, count, _ = self._known.get(name, (0.0, 0, ""))
        if count and now - first < self._window:
            try:
                await self._repeat(namespace, name, count + 1, now)
                self._remember(name, first, count + 1, namespace)
                return
            except NotFound:
                log.debug("the event expired; recording it anew", name=name)
        await self._create(event, namespace, name, now)
        self._remember(name, now, 1, namespace)

    async def _repeat(self, namespace: str, name: str, count: int, now: float) -> None:
        patch = MergePatch({"count": count, "lastTimestamp": rfc3339(now)})
        await self._client.patch(EVENT, Key(namespace, name), patch, Write(field_manager=self._component))

    async def _create(self, event: dict[str, Any], namespace: str, name: str, now: float) -> None:
        stamp = rfc3339(now)
        body = {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": name, "namespace": namespace},
            **event,
            "source": {"component": self._component},
            "reportingComponent": self._component,
            "firstTimestamp": stamp,
            "lastTimestamp": stamp,
            "count": 1,
        }
        await self._client.apply(body, Write(field_manager=self._component), kind=EVENT, force=True)

    def _remember(self, name: str, first: float, count: int, namespace: str) -> None:
        self._known[name] = (first, count, namespace)
        self._known.move_to_end(name)
        while len(self._known) > _REMEMBERED:
            self._known.popitem(last=False)


def _reference(obj: Object | Unstructured) -> dict[str, str]:
    key = key_of(obj)
    if isinstance(obj, Unstructured):
        api_version, kind = str(obj.get("apiVersion", "")), str(obj.get("kind", ""))
    else:
        api_version, kind = type(obj).__resource__.api_version, type(obj).__resource__.kind
    raw = {"apiVersion": api_version, "kind": kind, "name": key.name, "uid": uid_of(obj)}
    if key.namespace:
        raw["namespace"] = key.namespace
    return raw


def _digest(event: dict[str, Any]) -> str:
    involved = event["involvedObject"]
    text = "\0".join((involved.get("uid", ""), event["type"], event["reason"], event["message"]))
    return hashlib.sha256(text.encode()).hexdigest()[:16]
