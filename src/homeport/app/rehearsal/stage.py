"""The copy of a plane on which a change is rehearsed: an API server in memory, and the same controllers."""

from __future__ import annotations

import asyncio
import contextlib
import fnmatch
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import orjson

from homeport.api.cluster.v1beta2 import Machine
from homeport.api.meta import Resource, Unstructured
from homeport.apiserver.auth.pki import PKI
from homeport.apiserver.embedded import EmbeddedServer
from homeport.apiserver.resource import ServedKind
from homeport.apiserver.verb.write import encoder
from homeport.app.kubernetes.layout import COMBINED, Placement
from homeport.app.platform import chosen
from homeport.app.rehearsal.copy import PlaneCopy
from homeport.app.rehearsal.hosted import HOSTED, assume_ready
from homeport.app.rehearsal.vendor import stand_in
from homeport.app.rehearsal.workload import StandInEtcd, WorkloadClusters
from homeport.builtin.install import install as install_builtin
from homeport.capi.component import Component
from homeport.capi.environment import Environment
from homeport.capi.name import Condition
from homeport.capi.object.summary import conditions_of
from homeport.capi.rehearsal import Rehearsal
from homeport.client.dial import DIRECT, DialOptions
from homeport.client.errors import AlreadyExists, ApiError, NotFound
from homeport.client.protocol import Client, Key, MergePatch, Query, Write
from homeport.machinery.apply.managed import LAST_APPLIED
from homeport.machinery.condition import find
from homeport.runtime.clock import Clock
from homeport.runtime.definition import establish
from homeport.runtime.manager import Manager
from homeport.runtime.task import cancel
from homeport.runtime.webhook.embedded import install as install_hooks

_SECRET = Resource("", "v1", "Secret", "secrets")
_NAMESPACE = Resource("", "v1", "Namespace", "namespaces", namespaced=False)
_MACHINE = Machine.__resource__
_STRICT = Write(field_validation="Strict")
# Controllers that need nothing but the API and the stand-ins. The others would dial somewhere.
_CONTROLLERS = (
    "cluster",
    "clusterclass",
    "topology",
    "machine",
    "machineset",
    "machinedeployment",
    "machinepool",
    "kubeadmconfig",
    "kubeadmcontrolplane",
    "k0scontrollerconfig",
    "k0sworkerconfig",
    "k0scontrolplane",
    "nutanixcluster",
    "nutanixmachine",
    "harvestercluster",
    "harvestermachine",
    "*ippool",
    "ipaddressclaim",
    "butler-tenantcluster",
    "butler-ipallocation",
    "butler-networkpool",
    "k0rdent-clusterdeployment",
)


@dataclass(frozen=True, slots=True)
class _Rehearsed(Placement):
    controllers: tuple[str, ...] = _CONTROLLERS

    def has(self, component: Component) -> bool:
        return True

    def runs(self, component: Component, controller: str) -> bool:
        return any(fnmatch.fnmatchcase(controller, each) for each in self.controllers)


class Stage:
    """One rehearsal, in virtual time where vendors are left out."""

    def __init__(self, server: EmbeddedServer, clock: Clock, workloads: WorkloadClusters) -> None:
        self.server = server
        self.clock = clock
        self.client: Client = server.client(field_manager="kubectl-client-side-apply")
        self._workloads = workloads
        self.outdated: dict[str, str] = {}  # why a Machine has to be replaced, by its UID

    async def load(self, copy: PlaneCopy) -> None:
        """The objects as they are, with their UIDs and their status."""
        for obj in copy.objects:
            served = self.served(obj)
            if served is None or served.storage != str(obj["apiVersion"]).rpartition("/")[2]:
                continue
            name = f"{obj.namespace}/{obj.name}" if served.namespaced else obj.name
            await self.server.store.put(served.bucket, name, encoder(orjson.loads(orjson.dumps(obj))), expect=None)
            if served.bucket == "secrets":
                await self._workloads.note_kubeconfig(obj)
        for obj in copy.objects:
            if obj.get("kind") == "Machine" and str(obj["apiVersion"]).startswith(_MACHINE.group):
                await self._workloads.follow(obj)

    def served(self, obj: Mapping[str, Any]) -> ServedKind | None:
        group = str(obj.get("apiVersion")).rpartition("/")[0]
        return next((each for each in self.server.catalog if (each.group, each.kind) == (group, obj.get("kind"))), None)

    # -- what the user does ------------------------------------------------------------------------------------

    async def apply(self, obj: Mapping[str, Any], namespace: str) -> tuple[str, ApiError | None]:
        """As `kubectl apply`, which refuses unknown fields.

        `created`, `configured`, `unchanged`, or `refused` with the error.
        """
        try:
            kind, key, body = self._located(obj, namespace)
            try:
                found = await self.client.get(kind, key)
            except NotFound:
                await self._ensure(key.namespace)
                await self.client.create(body, _STRICT, kind=kind)
                return "created", None
            patch = three_way(body, _last_applied(found))
            after = await self.client.patch(kind, key, MergePatch(patch), _STRICT)
            return ("unchanged" if _desired(after) == _desired(found) else "configured"), None
        except ApiError as error:
            return "refused", error

    async def delete(self, obj: Mapping[str, Any], namespace: str) -> tuple[str, ApiError | None]:
        try:
            kind, key, _ = self._located(obj, namespace)
            await self.client.delete(kind, key)
        except NotFound:
            return "not found", None
        except ApiError as error:
            return "refused", error
        return "deleted", None

    def _located(self, obj: Mapping[str, Any], namespace: str) -> tuple[Resource, Key, dict[str, Any]]:
        served = self.served(obj)
        version = str(obj.get("apiVersion")).rpartition("/")[2]
        if served is None or version not in served.versions:
            raise NotFound(f"this plane does not serve {obj.get('apiVersion')} {obj.get('kind')}")
        body = orjson.loads(orjson.dumps(obj))
        body.get("metadata", {}).pop("namespace", None)
        space = str((obj.get("metadata") or {}).get("namespace") or namespace) if served.namespaced else ""
        if space:
            body["metadata"]["namespace"] = space
        return served.versions[version].resource, Key(space, str(body["metadata"].get("name", ""))), body

    async def _ensure(self, namespace: str) -> None:
        if namespace:
            with contextlib.suppress(AlreadyExists):
                await self.client.create({"metadata": {"name": namespace}}, kind=_NAMESPACE)

    # -- what happens then -------------------------------------------------------------------------------------

    @asynccontextmanager
    async def running(
        self,
        provider: Callable[[Any], Any] = stand_in,
        dial: DialOptions = DIRECT,
        controllers: tuple[str, ...] = _CONTROLLERS,
    ) -> AsyncIterator[None]:
        """With these controllers. `provider` makes the stand-in of a provider; `dial` is for those that ask vendors."""
        etcd = StandInEtcd()
        manager = Manager(self.server.client(), clock=self.clock)
        install_builtin(self.server, manager)
        rehearsal = Rehearsal(self._workloads.connect, etcd, provider)
        placement = _Rehearsed(COMBINED.namespace, COMBINED.name, COMBINED.lease, controllers=controllers)
        platform = replace(chosen(), placement=placement)
        platform.install(manager, Environment(manager.client, dial, server=self.server, rehearsal=rehearsal))
        async with asyncio.TaskGroup() as group:
            tasks = [
                group.create_task(manager.run(), name="manager"),
                group.create_task(self._follow_machines(), name="machines"),
                group.create_task(self._follow_secrets(), name="kubeconfigs"),
                *(
                    group.create_task(assume_ready(self.client, each, self.clock.now()), name=each.kind)
                    for each in HOSTED
                ),
            ]
            await manager.ready.wait()
            try:
                yield
            finally:
                for task in reversed(tasks):
                    await cancel(task)

    async def _follow_machines(self) -> None:
        async with self.client.watch(_MACHINE, initial_events=True) as events:
            async for event in events:
                if event.type in ("ADDED", "MODIFIED"):
                    self._note(event.object)
                    await self._workloads.follow(event.object)

    def _note(self, machine: Unstructured) -> None:
        found = find(conditions_of(machine), Condition.UP_TO_DATE) or {}
        if found.get("status") == "False" and found.get("message"):
            lines = (line.strip().removeprefix("* ") for line in str(found["message"]).splitlines())
            self.outdated[machine.uid] = "; ".join(lines)

    async def _follow_secrets(self) -> None:
        async with self.client.watch(_SECRET, initial_events=True) as events:
            async for event in events:
                if event.type in ("ADDED", "MODIFIED"):
                    await self._workloads.note_kubeconfig(event.object)

    async def objects(self, kinds: Iterable[Resource]) -> Sequence[Unstructured]:
        found: list[Unstructured] = []
        for kind in kinds:
            found += (await self.client.list(kind, Query())).items
        return found


def _desired(obj: Unstructured) -> dict[str, Any]:
    """Everything that a user can change."""
    kept = {name: value for name, value in obj.items() if name not in ("metadata", "status")}
    annotations = {k: v for k, v in (obj.metadata.get("annotations") or {}).items() if k != LAST_APPLIED}
    return {**kept, "labels": obj.metadata.get("labels") or {}, "annotations": annotations}


def three_way(body: dict[str, Any], last: Mapping[str, Any]) -> dict[str, Any]:
    """The merge patch that kubectl sends: what the last apply had and this one has not is removed."""
    patch = dict(body)
    for name, value in last.items():
        if name not in body:
            patch[name] = None
        elif isinstance(value, Mapping) and isinstance(body[name], dict):
            patch[name] = three_way(body[name], value)
    return patch


def _last_applied(found: Unstructured) -> Mapping[str, Any]:
    text = (found.metadata.get("annotations") or {}).get(LAST_APPLIED)
    last = orjson.loads(text) if text else {}
    return {name: last[name] for name in ("spec", "data") if name in last}


@asynccontextmanager
async def stage(clock: Clock) -> AsyncIterator[Stage]:
    """An empty one."""
    with TemporaryDirectory(prefix="homeport-plan-") as folder:
        server = await EmbeddedServer.open(None, PKI.ensure(Path(folder) / "plane"), clock=clock.now)
        workloads = WorkloadClusters(Path(folder) / "workload", clock)
        try:
            made = Stage(server, clock, workloads)
            install_hooks(chosen().register(Environment(server.client(), server=server)), server)
            await establish(made.client, *chosen().definitions())
            yield made
        finally:
            await workloads.close()
            await server.close(drain_seconds=0.1)
