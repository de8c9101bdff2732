"""A testing kit for controllers: a whole plane in this process, in memory, in real or in virtual time.

    @virtual
    async def test_a_widget_becomes_ready():
        async with plane(lambda p: p.manager.add(Controller("widget", Widget, WidgetReconciler(p.manager)))) as p:
            await p.have({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "a"}, ...})
            await p.until(Widget, Key("default", "a"), lambda w: w.status.ready)

Nothing here sleeps to find out: waiting is done by watch, and a wait in vain ends with a report on the object.
"""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import functools
import shutil
import tempfile
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

from homeport.api.meta import Object, Resource
from homeport.apiserver.auth.pki import PKI
from homeport.apiserver.embedded import EmbeddedServer
from homeport.client.config import Config
from homeport.client.credential import Certificate, Static
from homeport.client.errors import NotFound
from homeport.client.http import HttpClient
from homeport.client.protocol import Key, MergePatch, Query
from homeport.runtime.cache import key_of
from homeport.runtime.clock import Clock, LoopClock, SystemClock, VirtualLoop, run_virtual
from homeport.runtime.definition import WAIT_SECONDS, definition, establish
from homeport.runtime.manager import Manager, Mode
from homeport.runtime.outcome import Wait
from homeport.runtime.own_write import Writes, track, untrack
from homeport.runtime.reconciler import Reconciler
from homeport.runtime.task import cancel
from homeport.runtime.telemetry.explain import LogTail, explain

P = ParamSpec("P")
R = TypeVar("R")

__all__ = [
    "Plane",
    "Reconciled",
    "definition",
    "establish",
    "plane",
    "reconcile_once",
    "shared_pki",
    "versions",
    "virtual",
]


def virtual(test: Callable[P, Coroutine[Any, Any, R]]) -> Callable[P, R]:
    """The test runs in virtual time: an hour of waiting takes no time, and every run is the same."""

    @functools.wraps(test)
    def run(*args: P.args, **kwargs: P.kwargs) -> R:
        return run_virtual(test(*args, **kwargs))

    return run


@functools.cache
def shared_pki() -> PKI:
    """One for all servers of this process: keys take longer to make than a server to start."""
    folder = tempfile.mkdtemp(prefix="homeport-testing-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return PKI.ensure(Path(folder) / "pki")


@dataclass(frozen=True, slots=True)
class Reconciled:
    """What one reconcile ended with, and which objects it wrote."""

    wait: Wait | None
    error: Exception | None
    written: tuple[tuple[Resource, Key], ...]


class Plane:
    """A server, a manager on it and a client to play the user. `plane()` makes one."""

    def __init__(self, server: EmbeddedServer, clock: Clock, mode: Mode | None, logs: LogTail) -> None:
        self.server = server
        self.clock = clock
        self.logs = logs
        self.client = server.client(field_manager="user")
        self.manager = Manager(server.client(), mode=mode, clock=clock)
        self._running: asyncio.Task[None] | None = None
        self._clients: list[HttpClient] = []

    # -- running -----------------------------------------------------------------------------------------------

    async def start(self) -> None:
        """Runs the manager; returns when its controllers work."""
        self._running = asyncio.create_task(self.manager.run(), name="manager")
        await self._while_running(self.manager.ready.wait())

    async def stop(self) -> None:
        """Ends the manager as a shutdown does. What it died of before, if it did, is raised."""
        running, self._running = self._running, None
        if running is None:
            return
        await cancel(running)

    def http(self, user: str = "kubernetes-admin", *groups: str) -> HttpClient:
        """A client over the wire; the server must be served (`plane(serve=True)`)."""
        issued = self.server.pki.issue_client(user, groups or ("system:masters",))
        credential = Static(cert=Certificate(issued.certificate, issued.key))
        made = HttpClient(Config(self.server.url, credential, self.server.pki.ca_pem))
        self._clients.append(made)
        return made

    async def close(self) -> None:
        try:
            await self.stop()
        finally:
            for client in self._clients:
                await client.close()
            await self.server.close(drain_seconds=1.0)

    # -- state in, state out -----------------------------------------------------------------------------------

    def resource(self, obj: Mapping[str, Any] | Object) -> Resource:
        """Where an object's kind is served."""
        if isinstance(obj, Object):
            return type(obj).__resource__
        group, _, version = str(obj["apiVersion"]).rpartition("/")
        for served in self.server.catalog:
            if served.group == group and served.kind == obj["kind"] and version in served.versions:
                return served.versions[version].resource
        raise LookupError(f"{obj['apiVersion']} {obj['kind']} is not served: install its definition first")

    async def have(self, *objects: Mapping[str, Any] | Object) -> list[Any]:
        """Creates objects, their status included."""
        made: list[Any] = []
        for obj in objects:
            if isinstance(obj, Object):
                made.append(await self.client.create(obj))
                continue
            kind = self.resource(obj)
            body = {**obj, "metadata": {**obj["metadata"]}}
            if kind.namespaced:
                body["metadata"].setdefault("namespace", "default")
            created = await self.client.create(body, kind=kind)
            if "status" in obj:
                patch = MergePatch({"status": obj["status"]})
                created = await self.client.patch(kind, key_of(created), patch, subresource="status")
            made.append(created)
        return made

    async def reconcile(self, reconciler: Reconciler, key: Key) -> Reconciled:
        """One reconcile, from caches that show everything that is there now. Without the manager running."""
        writes = Writes()
        async with self._informed():
            token = track(writes)
            wait: Wait | None = None
            error: Exception | None = None
            try:
                wait = await reconciler.reconcile(key)
            except Exception as failed:
                error = failed
            finally:
                untrack(token)
        return Reconciled(wait, error, tuple((w.resource, w.key) for w in writes.recorded))

    @asynccontextmanager
    async def _informed(self) -> AsyncIterator[None]:
        if self._running is not None:
            raise RuntimeError("the manager is running and reconciles automatically")
        informers = list(self.manager.informers)
        for informer in informers:
            informer.reset()
        tasks = [asyncio.create_task(informer.run()) for informer in informers]
        try:
            for informer in informers:
                await informer.synced.wait()
            yield
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    # -- waiting -----------------------------------------------------------------------------------------------

    async def until(
        self,
        kind: Any,
        key: Key,
        predicate: Callable[[Any], bool],
        timeout: float = WAIT_SECONDS,
        *,
        what: str = "",
    ) -> Any:
        """The object once `predicate` is true of it. Fails with all there is to know about the object."""
        query = Query(namespace=key.namespace, fields=f"metadata.name={key.name}")

        async def watched() -> Any:
            while True:
                async with self.client.watch(kind, query, initial_events=True) as events:
                    async for event in events:
                        if event.type not in ("BOOKMARK", "DELETED") and predicate(event.object):
                            return event.object

        try:
            async with asyncio.timeout(timeout):
                return await self._while_running(watched())
        except TimeoutError:
            shown = what or getattr(predicate, "__name__", "the condition")
            raise AssertionError(await self._report(kind, key, f"{shown} did not come true", timeout)) from None

    async def gone(self, kind: Any, key: Key, timeout: float = WAIT_SECONDS) -> None:
        """Returns when there is no such object."""
        query = Query(namespace=key.namespace, fields=f"metadata.name={key.name}")

        async def watched() -> None:
            there = False
            async with self.client.watch(kind, query, initial_events=True) as events:
                async for event in events:
                    if event.type in ("ADDED", "MODIFIED"):
                        there = True
                    elif event.type == "DELETED" or (event.initial_events_end and not there):
                        return

        try:
            async with asyncio.timeout(timeout):
                await self._while_running(watched())
        except TimeoutError:
            raise AssertionError(await self._report(kind, key, "it is still there", timeout)) from None

    async def settle(self, quiet: float = 1.0, timeout: float = 3600.0) -> int:
        """Virtual time alone: returns when nothing was written for `quiet` seconds. Gives the store's revision."""
        if not isinstance(asyncio.get_running_loop(), VirtualLoop):
            raise RuntimeError("settle() waits by time: use it in virtual time, and until() elsewhere")
        deadline = self.clock.monotonic() + timeout
        revision = -1
        while revision != self.server.store.revision:
            if self.clock.monotonic() > deadline:
                raise AssertionError(f"still writing after {timeout} s; the last log lines:\n{self.logs.text()}")
            revision = self.server.store.revision
            await self._while_running(asyncio.sleep(quiet))
        return revision

    async def _report(self, kind: Any, key: Key, what: str, timeout: float) -> str:
        resource = kind if isinstance(kind, Resource) else kind.__resource__
        head = f"{resource.kind} {key}: {what} within {timeout:g} s"
        return f"{head}\n{await explain(self.client, self.manager, resource, key, self.logs)}"

    async def _while_running(self, work: Coroutine[Any, Any, R]) -> R:
        """What a manager died of is more to the point than what was waited for."""
        if self._running is None:
            return await work
        task = asyncio.ensure_future(work)
        try:
            await asyncio.wait({task, self._running}, return_when=asyncio.FIRST_COMPLETED)
            if task.done():
                return task.result()
            self._running.result()
            raise RuntimeError("the manager exited unexpectedly")
        finally:
            if not task.done():
                task.cancel()
                await asyncio.wait({task})


@asynccontextmanager
async def plane(
    *setup: Callable[[Plane], object],
    crds: Iterable[Mapping[str, Any]] = (),
    mode: Mode | None = None,
    database: Path | None = None,
    serve: bool = False,
    echo: bool = False,
) -> AsyncIterator[Plane]:
    """A server in memory (or on `database`) and a manager. `setup` adds controllers; if there is any, it runs.

    `serve` opens a port on loopback; `echo` prints the log, which otherwise shows in failures alone.
    """
    on_virtual = isinstance(asyncio.get_running_loop(), VirtualLoop)
    clock: Clock = LoopClock() if on_virtual else SystemClock()
    with LogTail(echo=echo) as logs:
        server = await EmbeddedServer.open(database, shared_pki(), clock=clock.now)
        made = Plane(server, clock, mode, logs)
        try:
            if serve:
                await server.serve()
            await establish(made.client, *crds)
            for add in setup:
                add(made)
            if setup:
                await made.start()
            yield made
        finally:
            await made.close()


async def reconcile_once(
    make: Callable[[Plane], Reconciler],
    key: Key,
    *state: Mapping[str, Any] | Object,
    crds: Iterable[Mapping[str, Any]] = (),
) -> tuple[Reconciled, dict[tuple[str, Key], Any]]:
    """State in, one reconcile, state out: by (kind, key), all objects that were given or written.

    The outcome's `error` is what the reconcile raised; nothing is raised here.
    """
    async with plane(crds=crds) as p:
        given = await p.have(*state)
        outcome = await p.reconcile(make(p), key)
        where = {(p.resource(obj), key_of(obj)) for obj in given} | set(outcome.written)
        found: dict[tuple[str, Key], Any] = {}
        for kind, each in sorted(where, key=str):
            with contextlib.suppress(NotFound):
                found[kind.kind, each] = await p.client.get(kind, each)
        return outcome, found


def versions(p: Plane) -> dict[str, int]:
    """Every object's resourceVersion, by bucket and name: equal before and after when nothing was written."""
    return {
        f"{bucket} {record.name}": record.revision
        for bucket in p.server.store.buckets()
        for record in p.server.store.range(bucket)
    }
