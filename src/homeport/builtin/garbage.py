"""Garbage collection: what lost its owners goes, a foreground deletion waits for dependents, orphans stay.

The server's own changes feed the graph synchronously, so what it says is true now, not a moment ago.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import structlog

from homeport.api.meta import Resource, Unstructured
from homeport.apiserver.embedded import EmbeddedServer
from homeport.apiserver.resource import Served
from homeport.builtin.graph import FOREGROUND, ORPHAN, Graph, Node
from homeport.client.errors import ApiError, Conflict, NotFound
from homeport.client.protocol import JsonPatch, Key, MergePatch, Propagation, Write
from homeport.runtime.event import Recorder
from homeport.runtime.queue import WorkQueue
from homeport.store import Change

log = structlog.get_logger(__name__)

_WORKERS = 4
_WRITE = Write(field_manager="garbage-collector")


class GarbageCollector:
    """`run` works until cancelled. `idle` tells whether anything is left to do."""

    def __init__(self, server: EmbeddedServer, recorder: Recorder | None = None) -> None:
        self._server = server
        self._client = server.client(field_manager="garbage-collector")
        self._recorder = recorder
        self._graph = Graph()
        self._queue: WorkQueue[str] = WorkQueue()  # uids
        self._complained: set[tuple[str, str]] = set()
        self._unsubscribe: Callable[[], None] | None = None

    @property
    def idle(self) -> bool:
        return self._queue.idle and not self._queue.delayed

    async def run(self) -> None:
        self._load()
        try:
            async with asyncio.TaskGroup() as group:
                for _ in range(_WORKERS):
                    group.create_task(self._work())
        finally:
            if self._unsubscribe is not None:
                self._unsubscribe()
            self._queue.close()

    def _load(self) -> None:
        store = self._server.store
        self._unsubscribe = store.subscribe(None, self._changed)
        for bucket in store.buckets():
            for record in store.range(bucket):
                self._graph.put(bucket, record.name, record.value)
        for node in self._graph.nodes.values():
            if node.owners or node.deleting:
                self._queue.add(node.uid)

    def _changed(self, changes: list[Change]) -> None:
        for change in changes:
            if change.record is not None:
                node = self._graph.put(change.bucket, change.name, change.record.value)
                if node.owners or node.deleting:
                    self._queue.add(node.uid)
                continue
            assert change.value is not None
            gone = self._graph.drop(change.value)
            if gone is not None:
                self._wake_around(gone)

    def _wake_around(self, gone: Node) -> None:
        for dependent in self._graph.dependents_of(gone.uid):
            self._queue.add(dependent.uid)
        for ref in gone.owners:
            if ref.uid in self._graph.nodes:
                self._queue.add(ref.uid)

    async def _work(self) -> None:
        while True:
            uid = await self._queue.get()
            try:
                await self._attend(uid)
                self._queue.forget(uid)
            except (NotFound, Conflict):
                self._queue.retry(uid)  # it changed under our hands: look again
            except ApiError as error:
                delay = self._queue.retry(uid)
                log.warning("garbage collection failed", uid=uid, error=str(error), retry_in=round(delay, 2))
            finally:
                self._queue.done(uid)

    async def _attend(self, uid: str) -> None:
        node = self._graph.nodes.get(uid)
        if node is None:
            return
        if node.deleting and ORPHAN in node.finalizers:
            await self._orphan(node)
        elif node.deleting and FOREGROUND in node.finalizers:
            await self._delete_dependents(node)
        elif node.owners and not node.deleting:
            await self._check_owners(node)

    async def _check_owners(self, node: Node) -> None:
        self._complain(node)
        solid, waiting, gone = self._graph.split_owners(node)
        if solid:
            if gone or waiting:
                await self._keep_owners(node, {ref.uid for ref in solid})
            return
        if not gone and not waiting:
            return
        if waiting and self._graph.dependents.get(node.uid):
            # Its owner waits for it; what hangs on it goes first.
            await self._delete(node, "Foreground")
        else:
            await self._delete(node, "Background")

    async def _delete_dependents(self, node: Node) -> None:
        """Foreground: the object goes when nothing that blocks it is left."""
        for dependent in self._graph.dependents_of(node.uid):
            if not dependent.deleting:
                self._queue.add(dependent.uid)
        if not self._graph.blockers(node):
            await self._drop_finalizer(node, FOREGROUND)

    async def _orphan(self, node: Node) -> None:
        for dependent in self._graph.dependents_of(node.uid):
            await self._keep_owners(dependent, {ref.uid for ref in dependent.owners} - {node.uid})
        await self._drop_finalizer(node, ORPHAN)

    # -- writes: each names the UID it means, so that a namesake is never touched --------------------------------

    async def _delete(self, node: Node, propagation: Propagation) -> None:
        found = self._resource(node)
        if found is None:
            return
        log.info("collecting", kind=node.bucket, object=node.name, why="its owners are gone", policy=propagation)
        try:
            await self._client.delete(found, _key(node), uid=node.uid, propagation=propagation)
        except NotFound:
            log.debug("gone already", kind=node.bucket, object=node.name)

    async def _keep_owners(self, node: Node, keep: set[str]) -> None:
        found = self._resource(node)
        if found is None:
            return
        obj = await self._client.get(found, _key(node))
        if obj.uid != node.uid:
            return
        owners = obj.metadata.get("ownerReferences") or []
        kept = [ref for ref in owners if ref.get("uid") in keep]
        if len(kept) == len(owners):
            return
        patch = MergePatch(
            {
                "metadata": {
                    "uid": node.uid,
                    "resourceVersion": obj.resource_version,
                    "ownerReferences": kept or None,
                }
            }
        )
        await self._client.patch(found, _key(node), patch, _WRITE)

    async def _drop_finalizer(self, node: Node, finalizer: str) -> None:
        found = self._resource(node)
        if found is None:
            return
        obj = await self._client.get(found, _key(node))
        finalizers = obj.metadata.get("finalizers") or []
        if obj.uid != node.uid or finalizer not in finalizers:
            return
        place = finalizers.index(finalizer)
        operations = [
            {"op": "test", "path": "/metadata/uid", "value": node.uid},
            {"op": "test", "path": f"/metadata/finalizers/{place}", "value": finalizer},
            {"op": "remove", "path": f"/metadata/finalizers/{place}"},
        ]
        await self._client.patch(found, _key(node), JsonPatch(operations), _WRITE)

    def _resource(self, node: Node) -> Resource | None:
        served = _served(self._server, node.bucket)
        if served is None or served.storage not in served.versions:
            return None  # its CRD is gone; so will it be
        return served.versions[served.storage].resource

    def _complain(self, node: Node) -> None:
        """Once per pair: an owner in another namespace is a mistake that nobody else points out."""
        for ref in self._graph.foreign_owners(node):
            if (node.uid, ref.uid) in self._complained:
                continue
            self._complained.add((node.uid, ref.uid))
            message = (
                f"ownerRef [{ref.kind} {ref.name}, uid: {ref.uid}] is in another namespace than {node.name}: "
                "it is not honoured"
            )
            log.warning("owner in another namespace", kind=node.bucket, object=node.name, owner=ref.name)
            if self._recorder is not None:
                self._recorder.record(_reference(self._server, node), "OwnerRefInvalidNamespace", message, warning=True)


def _served(server: EmbeddedServer, bucket: str) -> Served | None:
    plural, _, group = bucket.partition(".")
    return server.catalog.by_plural(group, plural)


def _key(node: Node) -> Key:
    return Key(node.namespace, node.name.rpartition("/")[2])


def _reference(server: EmbeddedServer, node: Node) -> Unstructured:
    served = _served(server, node.bucket)
    kind = served.kind if served else ""
    api_version = served.versions[served.storage].resource.api_version if served else ""
    meta = {"name": _key(node).name, "namespace": node.namespace, "uid": node.uid}
    return Unstructured(apiVersion=api_version, kind=kind, metadata=meta)
