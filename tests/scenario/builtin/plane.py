"""A server in memory with its loops, in virtual time: what the scenarios of this folder act on."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Mapping
from pathlib import Path
from typing import Any, Protocol, TypeVar

import orjson

from homeport.api.meta import Resource, Unstructured
from homeport.apiserver.auth.pki import PKI
from homeport.apiserver.embedded import EmbeddedServer
from homeport.builtin.garbage import GarbageCollector
from homeport.builtin.install import install
from homeport.builtin.workload.address import ServiceOptions
from homeport.client.errors import NotFound
from homeport.client.protocol import Key, Propagation
from homeport.machinery import condition
from homeport.runtime.clock import LoopClock, run_virtual
from homeport.runtime.manager import Manager
from homeport.runtime.workload.runner import Runners

T = TypeVar("T")

NAMESPACE = Resource("", "v1", "Namespace", "namespaces", namespaced=False)
CONFIG_MAP = Resource("", "v1", "ConfigMap", "configmaps")
SECRET = Resource("", "v1", "Secret", "secrets")
ACCOUNT = Resource("", "v1", "ServiceAccount", "serviceaccounts")
EVENT = Resource("", "v1", "Event", "events")
POD = Resource("", "v1", "Pod", "pods")
CLUSTER_ROLE = Resource("rbac.authorization.k8s.io", "v1", "ClusterRole", "clusterroles", namespaced=False)
CRD = Resource("apiextensions.k8s.io", "v1", "CustomResourceDefinition", "customresourcedefinitions", namespaced=False)
WIDGET = Resource("example.com", "v1", "Widget", "widgets")


class Plane:
    def __init__(
        self,
        server: EmbeddedServer,
        clock: LoopClock,
        runners: Runners | None = None,
        services: ServiceOptions | None = None,
    ) -> None:
        self.runners = runners
        self.services = services
        self.server = server
        self.clock = clock
        self.client: Any = server.client()
        self.manager: Manager | None = None
        self._collector: GarbageCollector | None = None
        self._working: asyncio.Task[None] | None = None

    @property
    def collector(self) -> GarbageCollector:
        assert self._collector is not None, "the plane was never started"
        return self._collector

    async def start(self) -> None:
        """The loops; after `stop` they start anew with nothing but the store."""
        self.manager = Manager(self.server.client(), name="homeport", clock=self.clock)
        self._collector = install(self.server, self.manager, self.runners, self.services)
        self._working = asyncio.create_task(self.manager.run())
        await self.manager.ready.wait()

    async def stop(self) -> None:
        if self._working is not None:
            self._working.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._working
            self._working = None

    async def settle(self, seconds: float = 5.0) -> None:
        """Lets `seconds` of virtual time pass, in which everybody does what is due."""
        await asyncio.sleep(seconds)
        await self.server.custom.settled()

    async def make(
        self,
        kind: Resource,
        name: str,
        *,
        namespace: str = "default",
        owners: tuple[Unstructured, ...] = (),
        block: bool = True,
        finalizers: tuple[str, ...] = (),
        **fields: Any,
    ) -> Unstructured:
        meta: dict[str, Any] = {"name": name}
        if kind.namespaced:
            meta["namespace"] = namespace
        if owners:
            meta["ownerReferences"] = [owner_ref(owner, block=block) for owner in owners]
        if finalizers:
            meta["finalizers"] = list(finalizers)
        body = {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": meta, **fields}
        made: Unstructured = await self.client.create(body, kind=kind)
        return made

    async def get(self, kind: Resource, name: str, namespace: str = "default") -> Unstructured:
        found: Unstructured = await self.client.get(kind, Key(namespace if kind.namespaced else "", name))
        return found

    async def find(self, kind: Resource, name: str, namespace: str = "default") -> Unstructured | None:
        try:
            return await self.get(kind, name, namespace)
        except NotFound:
            return None

    async def exists(self, kind: Resource, name: str, namespace: str = "default") -> bool:
        return await self.find(kind, name, namespace) is not None

    async def delete(
        self, kind: Resource, name: str, policy: Propagation = "Background", namespace: str = "default"
    ) -> None:
        await self.client.delete(kind, Key(namespace if kind.namespaced else "", name), propagation=policy)

    async def until(self, condition: Callable[[], Any], what: str, seconds: float = 600.0) -> None:
        """Waits in virtual time until `condition()` (or what it awaits) holds."""
        end = asyncio.get_running_loop().time() + seconds
        while True:
            held = condition()
            if asyncio.iscoroutine(held):
                held = await held
            if held:
                return
            assert asyncio.get_running_loop().time() < end, f"not after {seconds} s: {what}"
            await asyncio.sleep(0.1)

    def names(self, bucket: str, prefix: str = "") -> list[str]:
        return [record.name for record in self.server.store.range(bucket, prefix=prefix)]

    def objects(self, bucket: str, prefix: str = "") -> list[Any]:
        return [orjson.loads(record.value) for record in self.server.store.range(bucket, prefix=prefix)]


def stated(conditions: Iterable[Mapping[str, Any]] | None, kind: str) -> Mapping[str, Any]:
    """The condition of this type; it must be there."""
    found = condition.find(conditions, kind)
    assert found is not None, f"no condition {kind} in {conditions}"
    return found


def owner_ref(owner: Unstructured, *, block: bool = True) -> dict[str, Any]:
    return {
        "apiVersion": owner["apiVersion"],
        "kind": owner["kind"],
        "name": owner.name,
        "uid": owner.uid,
        "blockOwnerDeletion": block,
    }


def widget_definition() -> dict[str, Any]:
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    return {
        "metadata": {"name": "widgets.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"},
            "versions": [{"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}],
        },
    }


@contextlib.asynccontextmanager
async def plane(
    pki: PKI, *, running: bool = True, runners: Runners | None = None, services: ServiceOptions | None = None
) -> AsyncIterator[Plane]:
    clock = LoopClock()
    server = await EmbeddedServer.open(None, pki, clock=clock.now)
    made = Plane(server, clock, runners, services)
    try:
        if running:
            await made.start()
        yield made
    finally:
        await made.stop()
        await server.close()


def play(
    folder: Path,
    scenario: Callable[[Plane], Coroutine[Any, Any, T]],
    *,
    running: bool = True,
    runners: Runners | None = None,
) -> T:
    """Runs a scenario on a fresh plane, in virtual time."""
    pki = PKI.ensure(folder / "pki")

    async def main() -> T:
        async with plane(pki, running=running, runners=runners) as made:
            return await scenario(made)

    return run_virtual(main())


class OnPlane(Protocol):
    """Runs a scenario on a fresh plane of its test, in virtual time."""

    def __call__(
        self,
        scenario: Callable[[Plane], Coroutine[Any, Any, T]],
        *,
        running: bool = True,
        runners: Runners | None = None,
    ) -> T: ...
