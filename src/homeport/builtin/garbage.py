"""Garbage collection: what lost its owners goes, a foreground deletion waits for dependents, orphans stay.

The server's own changes feed the graph synchronously, so what it says is true now, not a moment ago. Every write names
the UID and the version it was decided on: an object that changed meanwhile is looked at again, never deleted.

Where Kubernetes deletes an object whose only owner lives in another namespace, we keep it: such a reference neither
holds nor deletes anything. A warning Event says so, as there.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Collection, Iterable, Mapping

import structlog

from homeport.apiserver.crds.controller import DEFINITIONS
from homeport.apiserver.embedded import EmbeddedServer
from homeport.builtin.graph import FOREGROUND, ORPHAN, Graph, Node, OwnerRef, concerns, peek
from homeport.builtin.kind import key_of, reference, resource_of
from homeport.builtin.owner import Owners, OwnerState
from homeport.client.absence import drop_object
from homeport.client.errors import ApiError, Conflict, NotFound
from homeport.client.protocol import MergePatch, Propagation, Write
from homeport.runtime.event import Recorder
from homeport.runtime.queue import ShutDown, WorkQueue
from homeport.store import Change

log = structlog.get_logger(__name__)

_WORKERS = 32  # writes that are under way together share a commit
_WRITE = Write(field_manager="garbage-collector")
_LOST = (OwnerState.GONE, OwnerState.WAITING, OwnerState.FOREIGN_GONE)


class GarbageCollector:
    """`run` works until cancelled. `idle` says whether no work is left."""

    def __init__(self, server: EmbeddedServer, recorder: Recorder | None = None) -> None:
        self.graph = Graph()
        self._server = server
        self._client = server.client(field_manager="garbage-collector")
        self._recorder = recorder
        self._owners = Owners(server)
        self._queue: WorkQueue[str] = WorkQueue()  # uids
        self._complained: dict[str, set[str]] = {}  # dependent > owners it was warned about
        self._undecided: set[str] = set()  # those with an owner of a kind that is not served

    @property
    def idle(self) -> bool:
        return self._queue.idle and not self._queue.delayed

    async def run(self) -> None:
        unsubscribe = self._load()
        try:
            async with asyncio.TaskGroup() as group:
                for _ in range(_WORKERS):
                    group.create_task(self._work())
        finally:
            unsubscribe()
            self._queue.close()

    # -- following the store (plain functions, within the commit) -----------------------------------------------

    def _load(self) -> Callable[[], None]:
        """Everything is known from the store alone: a restart in the middle of a deletion loses nothing."""
        store = self._server.store
        for bucket in store.buckets():
            for record in store.range(bucket):
                if concerns(record.value):
                    _, node = self.graph.put(bucket, record.name, record.revision, record.value)
                    if node is not None:
                        self._queue.add(node.uid)
        return store.subscribe(None, self._changed)

    def _changed(self, changes: list[Change]) -> None:
        for change in changes:
            if change.record is None:
                assert change.value is not None
                self._went(peek(change.value).uid, change.bucket, change.name)
            elif concerns(change.record.value) or (change.previous is not None and concerns(change.previous.value)):
                record = change.record
                self._came(*self.graph.put(change.bucket, change.name, record.revision, record.value))
            if change.bucket == DEFINITIONS and self._undecided:
                for uid in self._undecided:
                    self._queue.add(uid)
                self._undecided.clear()

    def _came(self, old: Node | None, node: Node | None) -> None:
        if node is not None:
            self._queue.add(node.uid)
            if node.waits and not (old is not None and old.waits):
                self._wake(d.uid for d in self.graph.dependents(node.uid))
        if old is not None:
            held = {ref.uid for ref in node.owners if ref.block_owner_deletion} if node is not None else ()
            self._wake(ref.uid for ref in old.owners if ref.uid not in held and ref.uid in self.graph.nodes)

    def _went(self, uid: str, bucket: str, name: str) -> None:
        self._owners.forget(bucket, name)
        if self.graph.has_dependents(uid):
            self._owners.went(uid, name)
            self._wake(d.uid for d in self.graph.dependents(uid))
        node = self.graph.drop(uid)
        if node is not None:
            self._complained.pop(uid, None)
            self._undecided.discard(uid)
            self._wake(ref.uid for ref in node.owners if ref.uid in self.graph.nodes)

    def _wake(self, uids: Iterable[str]) -> None:
        for uid in uids:
            self._queue.add(uid)

    # -- working ------------------------------------------------------------------------------------------------

    async def _work(self) -> None:
        with contextlib.suppress(ShutDown):
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
        node = self.graph.nodes.get(uid)
        if node is None:
            return
        if node.deleting and node.orphan:
            await self._orphan(node)
        elif node.waits:
            if not self.graph.blocked(node):
                await self._drop_finalizer(node, FOREGROUND)
        elif node.owners and not node.deleting:
            await self._check_owners(node)

    async def _check_owners(self, node: Node) -> None:
        standings = {ref.uid: self._owners.standing(node, ref) for ref in node.owners}
        self._complain(node, standings)
        found = standings.values()
        if OwnerState.UNSERVED in found or OwnerState.MISPLACED in found:
            self._undecided.add(node.uid)
            return
        lost = {uid for uid, standing in standings.items() if standing in _LOST}
        if not lost:
            return
        if OwnerState.SOLID in found or not (OwnerState.GONE in found or OwnerState.WAITING in found):
            await self._drop_owners(node, lost)
        else:
            await self._delete(node, self._policy(node, waited_for=OwnerState.WAITING in found))

    def _policy(self, node: Node, *, waited_for: bool) -> Propagation:
        if waited_for and self.graph.has_dependents(node.uid):
            return "Foreground"  # its owner waits for it; what hangs on it goes first
        if node.orphan:
            return "Orphan"
        return "Foreground" if node.foreground else "Background"

    async def _orphan(self, node: Node) -> None:
        """Dependents are let go first, and only when none is left does the owner go."""
        dependents = self._orphans(node)
        for start in range(0, len(dependents), _WORKERS):
            await asyncio.gather(*(self._release(d, node.uid) for d in dependents[start : start + _WORKERS]))
        if self._orphans(node):
            raise Conflict("dependents changed while they were orphaned")
        await self._drop_finalizer(node, ORPHAN)

    def _orphans(self, node: Node) -> list[Node]:
        return [
            d
            for d in self.graph.dependents(node.uid)
            if _reaches(node, d) and resource_of(self._server, d.bucket) is not None
        ]

    async def _release(self, dependent: Node, owner: str) -> None:
        with contextlib.suppress(NotFound, Conflict):  # gone or changed: the count afterwards tells
            await self._drop_owners(dependent, {owner})

    # -- writes -------------------------------------------------------------------------------------------------

    async def _delete(self, node: Node, propagation: Propagation) -> None:
        resource = resource_of(self._server, node.bucket)
        if resource is None:
            return  # its CRD is gone; so will it be
        log.debug("collecting", kind=node.bucket, object=node.name, policy=propagation)
        await drop_object(
            self._client,
            resource,
            key_of(node.name),
            uid=node.uid,
            resource_version=str(node.revision),
            propagation=propagation,
        )

    async def _drop_owners(self, node: Node, lost: Collection[str]) -> None:
        resource = resource_of(self._server, node.bucket)
        if resource is None:
            return
        obj = await self._client.get(resource, key_of(node.name))
        owners = obj.metadata.get("ownerReferences") or []
        kept = [ref for ref in owners if ref.get("uid") not in lost]
        if obj.uid != node.uid or len(kept) == len(owners):
            return
        meta = {"uid": node.uid, "resourceVersion": obj.resource_version, "ownerReferences": kept or None}
        await self._client.patch(resource, key_of(node.name), MergePatch({"metadata": meta}), _WRITE)

    async def _drop_finalizer(self, node: Node, finalizer: str) -> None:
        resource = resource_of(self._server, node.bucket)
        if resource is None:
            return
        obj = await self._client.get(resource, key_of(node.name))
        finalizers = obj.metadata.get("finalizers") or []
        if obj.uid != node.uid or finalizer not in finalizers:
            return
        kept = [f for f in finalizers if f != finalizer]
        meta = {"uid": node.uid, "resourceVersion": obj.resource_version, "finalizers": kept or None}
        await self._client.patch(resource, key_of(node.name), MergePatch({"metadata": meta}), _WRITE)

    def _complain(self, node: Node, standings: Mapping[str, OwnerState]) -> None:
        """Records one event per pair: nothing else reports an owner reference that has no effect."""
        for ref in node.owners:
            text = _COMPLAINTS.get(standings[ref.uid])
            told = self._complained.setdefault(node.uid, set()) if text else set()
            if text is None or ref.uid in told:
                continue
            told.add(ref.uid)
            log.warning("an owner reference is not honoured", kind=node.bucket, object=node.name, owner=_say(ref))
            if self._recorder is not None:
                obj = reference(self._server, node.bucket, node.name, node.uid)
                message = f"ownerReference [{_say(ref)}] is not honoured: {text}"
                self._recorder.record(obj, "OwnerRefInvalidNamespace", message, warning=True)


_COMPLAINTS = {
    OwnerState.FOREIGN: "the owner is in another namespace; remove the reference or move one of the two",
    OwnerState.MISPLACED: "an object of the whole cluster can't be owned by one in a namespace; remove the reference",
}


def _say(ref: OwnerRef) -> str:
    return f"{ref.api_version} {ref.kind} {ref.name}, uid {ref.uid}"


def _reaches(owner: Node, dependent: Node) -> bool:
    return not owner.namespace or owner.namespace == dependent.namespace
