"""The way of every request to a simulated Kubernetes API: faults that strike before, the answer, faults that strike
after, journal."""

from __future__ import annotations

import asyncio
import random
from bisect import bisect_right
from collections import deque
from collections.abc import Callable
from typing import cast

import orjson

from homeport.apiserver.http.body import read_body
from homeport.apiserver.http.exchange import Exchange
from homeport.apiserver.http.server import Answer, Dispatch
from homeport.apiserver.http.watch import OpenStream
from homeport.client.errors import ApiError, TooManyRequests, from_status
from homeport.runtime.clock import Clock
from homeport.sim.engine.fault import Delay, Drop, Stale, Status, Throttle, WatchCut
from homeport.sim.engine.injector import Injector, Subject
from homeport.sim.engine.journal import Entry, Journal
from homeport.sim.harvester.fault import REQUEST_EFFECTS
from homeport.store import Change, Store

Effect = Status | Throttle | Delay | Drop | Stale | WatchCut

# Reasons that Kubernetes gives with a status.
_REASONS = {
    400: "BadRequest", 401: "Unauthorized", 403: "Forbidden", 404: "NotFound", 409: "Conflict", 410: "Expired",
    422: "Invalid", 429: "TooManyRequests", 500: "InternalError", 503: "ServiceUnavailable", 504: "Timeout",
}  # fmt: skip
_MOMENTS = 20_000  # revisions whose time is known: stale reads reach back that far


class Dropped(ConnectionResetError):
    """The connection ends without an answer."""


class RevisionHistory:
    """Which revision was the newest at a time."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._moments: deque[tuple[float, int]] = deque(maxlen=_MOMENTS)
        store.subscribe(None, self._note)

    def _note(self, changes: list[Change]) -> None:
        self._moments.append((self._clock.monotonic(), changes[-1].revision))

    def revision(self, seconds: float) -> int:
        """`seconds` ago; the oldest that is known, if that was before it."""
        at = bisect_right(self._moments, self._clock.monotonic() - seconds, key=lambda moment: moment[0])
        found = self._moments[at - 1][1] if at else self._before()
        return max(found, self._store.compacted, 1)

    def _before(self) -> int:
        return self._moments[0][1] - 1 if self._moments else self._store.revision


class KubernetesGate:
    """A `Gate` of an embedded API server. `log` gets a line for each request."""

    def __init__(
        self,
        faults: Injector,
        journal: Journal,
        past: RevisionHistory,
        clock: Clock,
        *,
        seed: int = 0,
        log: Callable[[str], None] | None = None,
    ) -> None:
        self._log = log
        self._faults = faults
        self._journal = journal
        self._past = past
        self._clock = clock
        self._rng = random.Random(seed)  # noqa: S311  (length of delays, not secrets)

    async def __call__(self, exchange: Exchange, dispatch: Dispatch) -> Answer:
        begun = self._clock.monotonic()
        if self._faults.counts:
            await _read_ahead(exchange)
        struck = self._faults.strike(_subject(exchange), *REQUEST_EFFECTS)
        status = 0
        try:
            answer = await self._struck(exchange, dispatch, [cast("Effect", effect) for _, effect in struck])
            status = answer.status
            return answer
        except ApiError as error:
            status = error.http_code
            raise
        finally:
            self._note(exchange, begun, status, tuple(name for name, _ in struck))

    async def _struck(self, exchange: Exchange, dispatch: Dispatch, effects: list[Effect]) -> Answer:
        drop_after = False
        cut: WatchCut | None = None
        for effect in effects:
            match effect:
                case Delay(seconds=seconds, jitter=jitter):
                    await asyncio.sleep(seconds * (1 + jitter * self._rng.uniform(-1, 1)))
                case Drop(when="before"):
                    raise _dropped(exchange)
                case Drop():
                    drop_after = True
                case Stale(seconds=seconds):
                    exchange.as_of = self._past.revision(seconds)
                case WatchCut():
                    cut = effect
                case Throttle(retry_after=after):
                    raise TooManyRequests("too many requests, please try again later", retry_after=max(1, int(after)))
                case Status():
                    raise _refusal(effect)
        if not drop_after:
            answer = await dispatch(exchange)
            if cut is not None and isinstance(answer, OpenStream):
                _cut(exchange, answer, cut)
            return answer
        try:
            await dispatch(exchange)
        except ApiError as error:
            raise _dropped(exchange) from error
        raise _dropped(exchange)

    def _note(self, exchange: Exchange, begun: float, status: int, faults: tuple[str, ...]) -> None:
        path, _, query = exchange.request.raw_path.partition("?")
        entry = Entry(
            number=0,
            time=self._clock.now(),
            method=exchange.request.method,
            path=path,
            query=query,
            route=_resource(exchange),
            user=exchange.user.name,
            status=status,
            seconds=self._clock.monotonic() - begun,
            request_id=exchange.audit_id,
            faults=faults,
        )
        self._journal.add(entry)
        if self._log is not None:
            self._log(entry.text)


async def _read_ahead(exchange: Exchange) -> None:
    """The name of what is created stands in the body."""
    if exchange.info.verb == "create" and exchange.info.resource and not exchange.info.subresource:
        exchange.body = await read_body(exchange.request)


def _subject(exchange: Exchange) -> Subject:
    info = exchange.info
    name = info.name or _name_in(exchange.body)
    qualified = f"{info.resource}.{info.group}" if info.group else info.resource
    under = f"/{info.subresource}" if info.subresource else ""
    return Subject(
        method=exchange.request.method,
        path=info.path,
        verb=info.verb,
        resources=(f"{info.resource}{under}", f"{qualified}{under}"),
        namespace=info.namespace,
        kind=info.resource,
        name=name,
        ext_id=f"{info.namespace}/{name}" if info.namespace else "",
        user=exchange.user.name,
    )


def _resource(exchange: Exchange) -> str:
    info = exchange.info
    return "/".join(each for each in (info.resource, info.subresource) if each)


def _name_in(body: bytes | None) -> str:
    if not body:
        return ""
    try:
        meta = orjson.loads(body)["metadata"]
        return str(meta.get("name") or meta.get("generateName") or "")
    except (orjson.JSONDecodeError, TypeError, KeyError, AttributeError):
        return ""  # said properly where it is parsed


def _refusal(effect: Status) -> ApiError:
    reason = effect.code or _REASONS.get(effect.status, "")
    message = effect.message or "refused on purpose: a fault is injected"
    return from_status({"code": effect.status, "reason": reason, "message": message, "kind": "Status",
                        "apiVersion": "v1", "metadata": {}, "status": "Failure"})  # fmt: skip


def _dropped(exchange: Exchange) -> Dropped:
    transport = exchange.request.transport
    if transport is not None:
        transport.abort()
    return Dropped("the connection was dropped on purpose")


def _cut(exchange: Exchange, stream: OpenStream, cut: WatchCut) -> None:
    transport = exchange.request.transport
    end = transport.abort if cut.abrupt and transport is not None else stream.end
    asyncio.get_running_loop().call_later(cut.seconds, end)
