"""What there is to know about an object that does not do what it should: conditions, waits, events, log lines."""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Mapping, MutableMapping
from types import TracebackType
from typing import Any, Self

import structlog

from homeport.api.meta import Resource, Unstructured
from homeport.client.errors import ApiError, NotFound
from homeport.client.protocol import Client, Key, Query
from homeport.runtime.event import EVENT
from homeport.runtime.lease import LeaseLost
from homeport.runtime.manager import Manager

_KEPT = 5000
_SHOWN = 15


class LogTail:
    """Keeps the last log lines while it is entered; without `echo` they go nowhere else."""

    def __init__(self, *, echo: bool = False) -> None:
        self._echo = echo
        self._lines: deque[Mapping[str, Any]] = deque(maxlen=_KEPT)

    def __enter__(self) -> Self:
        # Loggers share the configured list: in place, those that were made before notice as well.
        structlog.get_config()["processors"].insert(0, self._keep)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        processors = structlog.get_config()["processors"]
        if self._keep in processors:
            processors.remove(self._keep)

    def _keep(self, logger: Any, method: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
        bound = dict(sorted(structlog.contextvars.get_contextvars().items()))
        line = {"level": method, **bound, **event}
        if line.get("exc_info") is True:
            line["exc_info"] = sys.exc_info()[1]
        self._lines.append(line)
        if not self._echo:
            raise structlog.DropEvent
        return event

    def lines(self, key: Key | None = None) -> list[str]:
        """Oldest first; with `key`, those about this object."""
        if key is None:
            return [_line(line) for line in self._lines]
        return [_line(line) for line in self._lines if line.get("object") == str(key)]

    def text(self, key: Key | None = None) -> str:
        return "\n".join(f"  {line}" for line in self.lines(key)[-_SHOWN:]) or "  none"


def _line(line: Mapping[str, Any]) -> str:
    rest = " ".join(f"{k}={v!r}" for k, v in line.items() if k not in ("event", "level", "exc_info", "timestamp"))
    failed = line.get("exc_info")
    shown = f" raised {failed!r}" if isinstance(failed, BaseException) else ""
    return f"{line['level']}: {line.get('event')} {rest}{shown}".rstrip()


async def explain(client: Client, manager: Manager, resource: Resource, key: Key, logs: LogTail) -> str:
    """Lines for a person to read. Never raises an ApiError: what can't be found out is said."""
    parts = [await _object(client, resource, key), _controllers(manager, key), await _events(client, manager, key)]
    health = [f"  {kind}: {error}" for kind, error in manager.health().items()]
    if health:
        parts.append("can't be followed:\n" + "\n".join(health))
    own = logs.text(key)
    parts.append(f"log of the object:\n{own}" if own.strip() != "none" else f"log:\n{logs.text()}")
    return "\n".join(part for part in parts if part)


async def _object(client: Client, resource: Resource, key: Key) -> str:
    try:
        found = await client.get(resource, key)
    except NotFound:
        return "the object does not exist"
    except ApiError as error:
        return f"it can't be read: {error}"
    meta = found.metadata
    about = {
        name: meta[name]
        for name in ("generation", "resourceVersion", "deletionTimestamp", "finalizers")
        if name in meta
    }
    lines = ["object: " + ", ".join(f"{name} {value}" for name, value in about.items())]
    status = found.get("status")
    if isinstance(status, dict):
        conditions = status.get("conditions") or ()
        rest = {name: value for name, value in status.items() if name != "conditions"}
        lines.append(f"status: {rest}")
        lines += [
            f"  {c.get('type')}={c.get('status')} {c.get('reason', '')}: {c.get('message', '')}" for c in conditions
        ]
    else:
        lines.append("status: none")
    return "\n".join(lines)


def _controllers(manager: Manager, key: Key) -> str:
    lines = []
    for controller in manager.controllers:
        wait = controller.waits.get(key)
        if wait is not None:
            lines.append(f"  {controller.name} waits: {wait}")
        if failures := controller.queue.failures(key):
            lines.append(f"  {controller.name} failed {failures} times in a row")
        if key in controller.held:
            lines.append(f"  {controller.name} waits until the cache shows its last write")
    return "controllers:\n" + "\n".join(lines) if lines else ""


async def _events(client: Client, manager: Manager, key: Key) -> str:
    try:
        await manager.recorder.flush()
        query = Query(namespace=key.namespace or "default", fields=f"involvedObject.name={key.name}")
        found = (await client.list(EVENT, query)).items
    except (ApiError, LeaseLost) as error:
        return f"events: unknown ({error})"
    return "events:\n" + ("\n".join(_event(event) for event in found[-_SHOWN:]) or "  none")


def _event(event: Unstructured) -> str:
    times = f" (x{event['count']})" if (event.get("count") or 1) > 1 else ""
    return f"  {event.get('type')} {event.get('reason')}: {event.get('message')}{times}"
