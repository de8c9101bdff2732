"""pods/log: the output of containers, from the runner that runs them.

Nothing here runs containers. A component that does, or pretends to, registers a source per container.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import NamedTuple, Protocol

import orjson

from homeport.apiserver.kinds.check import forbidden, invalid
from homeport.apiserver.kinds.pod.spec import every_container
from homeport.apiserver.registry import Call, Raw, Registry
from homeport.apiserver.resource import Json
from homeport.client.errors import BadRequest, Cause, not_found
from homeport.client.errors import invalid as invalid_object

_TRUE = frozenset({"true", "1", ""})
_CHUNK_LINES = 512
# Two reasons that a kubelet puts into words.
_PULLING = {"ErrImagePull": "image can't be pulled", "ImagePullBackOff": "trying and failing to pull image"}


class LogLine(NamedTuple):
    time: float  # seconds since the epoch
    text: str  # without the newline


class LogSource(Protocol):
    def lines(self) -> Sequence[LogLine]:
        """What was written so far."""

    def follow(self) -> AsyncIterator[LogLine]:
        """What is written from this call on, until the container ends."""


class LogBuffer:
    """A source that keeps the last lines in memory. `close` says that nothing more will come."""

    def __init__(self, limit: int = 10_000, clock: Callable[[], float] = time.time) -> None:
        self._lines: deque[LogLine] = deque(maxlen=limit)
        self._followers: set[asyncio.Queue[LogLine | None]] = set()
        self._clock = clock
        self._closed = False

    def write(self, text: str) -> None:
        for part in text.splitlines():
            line = LogLine(self._clock(), part)
            self._lines.append(line)
            for queue in self._followers:
                queue.put_nowait(line)

    def close(self) -> None:
        self._closed = True
        for queue in self._followers:
            queue.put_nowait(None)

    def lines(self) -> Sequence[LogLine]:
        return tuple(self._lines)

    def follow(self) -> AsyncIterator[LogLine]:
        queue: asyncio.Queue[LogLine | None] = asyncio.Queue()
        if self._closed:
            queue.put_nowait(None)
        self._followers.add(queue)  # now, not at the first step of the iteration: no line may be missed in between
        return self._drain(queue)

    async def _drain(self, queue: asyncio.Queue[LogLine | None]) -> AsyncIterator[LogLine]:
        try:
            while (line := await queue.get()) is not None:
                yield line
        finally:
            self._followers.discard(queue)


@dataclass(frozen=True, slots=True)
class LogOptions:
    container: str = ""
    follow: bool = False
    previous: bool = False
    timestamps: bool = False
    tail: int | None = None
    limit_bytes: int | None = None
    since: float | None = None  # seconds since the epoch


class LogSources:
    """Sources by namespace, Pod and container; those of containers that ended and were restarted are `previous`."""

    def __init__(self) -> None:
        self._sources: dict[tuple[str, str, str, bool], LogSource] = {}

    def register(
        self, namespace: str, pod: str, container: str, source: LogSource, *, previous: bool = False
    ) -> Callable[[], None]:
        """Returns the way to take it back."""
        key = (namespace, pod, container, previous)
        self._sources[key] = source

        def remove() -> None:
            if self._sources.get(key) is source:
                del self._sources[key]

        return remove

    def find(self, namespace: str, pod: str, container: str, *, previous: bool = False) -> LogSource | None:
        return self._sources.get((namespace, pod, container, previous))

    def install(self, registry: Registry) -> None:
        async def connector(call: Call) -> Json | Raw:
            record = registry.store.get("pods", f"{call.namespace}/{call.name}")
            if record is None:
                raise not_found("", "pods", call.name)
            return self._open(orjson.loads(record.value), call, registry.clock())

        registry.connect("", "pods", "log", connector, "GET")

    def _open(self, pod: Json, call: Call, now: float) -> Raw:
        options = parse_options(call.query, now, call.name)
        container = choose_container(pod, options.container)
        if not (pod.get("spec") or {}).get("nodeName"):
            return Raw(b"")  # it is not running yet: there is no log
        source = self.find(call.namespace, call.name, container, previous=options.previous)
        if source is None:
            if options.previous:
                raise BadRequest(f'previous terminated container "{container}" in pod "{call.name}" not found')
            if (reason := waiting_reason(pod, container)) is not None:
                raise BadRequest(f'container "{container}" in pod "{call.name}" is waiting to start: {reason}')
            source = _silent()  # it runs, or did, and has written nothing
        return Raw(_read(source, options), "text/plain")


def _silent() -> LogSource:
    buffer = LogBuffer()
    buffer.close()
    return buffer


def waiting_reason(pod: Json, container: str) -> str | None:
    """Why the container has not started, as the Pod's status says; None if it has."""
    status = pod.get("status") or {}
    listed = [*(status.get("initContainerStatuses") or ()), *(status.get("containerStatuses") or ())]
    state = next((each.get("state") or {} for each in listed if each.get("name") == container), {})
    if "running" in state or "terminated" in state:
        return None
    reason = str((state.get("waiting") or {}).get("reason") or "ContainerCreating")
    return _PULLING.get(reason, reason)


def choose_container(pod: Json, wanted: str) -> str:
    spec, name = pod.get("spec") or {}, pod["metadata"]["name"]
    if wanted:
        if not any(container.get("name") == wanted for container in every_container(spec)):
            raise BadRequest(f"container {wanted} is not valid for pod {name}")
        return wanted
    names = [container.get("name", "") for container in spec.get("containers") or ()]
    if len(names) == 1:
        return str(names[0])
    text = f"a container name must be specified for pod {name}"
    if names:
        text += f", choose one of: [{' '.join(names)}]"
        starters = [container.get("name", "") for container in spec.get("initContainers") or ()]
        if starters:
            text += f" or one of the init containers: [{' '.join(starters)}]"
    raise BadRequest(text)


def parse_options(query: Mapping[str, str], now: float, pod: str) -> LogOptions:
    seconds, moment = _number(query, "sinceSeconds"), query.get("sinceTime", "")
    tail, limit = _number(query, "tailLines"), _number(query, "limitBytes")
    causes: list[Cause] = []
    if tail is not None and tail < 0:
        causes.append(invalid("tailLines", tail, "must be greater than or equal to 0"))
    if limit is not None and limit < 1:
        causes.append(invalid("limitBytes", limit, "must be greater than 0"))
    if seconds is not None and moment:
        causes.append(forbidden("", "at most one of `sinceTime` or `sinceSeconds` may be specified"))
    elif seconds is not None and seconds < 1:
        causes.append(invalid("sinceSeconds", seconds, "must be greater than 0"))
    if causes:
        raise invalid_object("", "PodLogOptions", pod, causes)
    since = now - seconds if seconds is not None else _moment(moment) if moment else None
    return LogOptions(
        container=query.get("container", ""),
        follow=_flag(query, "follow"),
        previous=_flag(query, "previous"),
        timestamps=_flag(query, "timestamps"),
        tail=tail,
        limit_bytes=limit,
        since=since,
    )


def _flag(query: Mapping[str, str], name: str) -> bool:
    return name in query and query[name].lower() in _TRUE


def _number(query: Mapping[str, str], name: str) -> int | None:
    text = query.get(name)
    if not text:
        return None
    try:
        return int(text)
    except ValueError:
        raise BadRequest(f'strconv.ParseInt: parsing "{text}": invalid syntax') from None


def _moment(text: str) -> float:
    try:
        return datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()
    except ValueError:
        raise BadRequest(f'sinceTime: "{text}" is not a time such as 2030-01-31T12:00:00Z') from None


async def _read(source: LogSource, options: LogOptions) -> AsyncIterator[bytes]:
    lines = list(source.lines())
    live = source.follow() if options.follow else None
    if options.since is not None:
        lines = [line for line in lines if line.time >= options.since]
    if options.tail is not None:
        lines = lines[-options.tail :] if options.tail else []
    left = options.limit_bytes
    for start in range(0, len(lines), _CHUNK_LINES):
        chunk = b"".join(_encode(line, options) for line in lines[start : start + _CHUNK_LINES])
        yield chunk if left is None else chunk[:left]
        if left is not None and (left := left - len(chunk)) <= 0:
            return
    if live is None:
        return
    async for line in live:
        chunk = _encode(line, options)
        yield chunk if left is None else chunk[:left]
        if left is not None and (left := left - len(chunk)) <= 0:
            return


def _encode(line: LogLine, options: LogOptions) -> bytes:
    if not options.timestamps:
        return f"{line.text}\n".encode()
    moment = datetime.fromtimestamp(line.time, UTC).strftime("%Y-%m-%dT%H:%M:%S.%f")
    return f"{moment}000Z {line.text}\n".encode()
