"""Namespace deletion: everything in it goes, then the namespace itself; until then its conditions say what is left.

Pods go first, as in Kubernetes: what they use must not vanish under them.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import structlog

from homeport.api.meta import Resource, Unstructured
from homeport.apiserver.embedded import EmbeddedServer
from homeport.apiserver.resource import ServedKind
from homeport.builtin.graph import peek
from homeport.builtin.kind import address, key_of
from homeport.client.absence import drop_object
from homeport.client.errors import ApiError, NotFound
from homeport.client.protocol import Key, MergePatch, Write
from homeport.machinery import condition
from homeport.runtime.clock import rfc3339
from homeport.runtime.controller import Controller
from homeport.runtime.manager import Manager
from homeport.runtime.outcome import Wait
from homeport.store import Change, Record

log = structlog.get_logger(__name__)

NAMESPACE = Resource("", "v1", "Namespace", "namespaces", namespaced=False)
FINALIZER = "kubernetes"
_WRITE = Write(field_manager="namespace-controller")
_TOGETHER = 64  # deletions that are under way together share a commit
_LOOK_AGAIN_SECONDS = 15.0
_PROGRESS_SECONDS = 1.0


@dataclass(slots=True)
class Content:
    """What is left in a namespace."""

    objects: Counter[str] = field(default_factory=Counter)  # bucket > how many
    finalizers: Counter[str] = field(default_factory=Counter)
    failures: list[str] = field(default_factory=list)


class NamespaceReconciler:
    def __init__(self, server: EmbeddedServer, client: Any) -> None:
        self._server = server
        self._store = server.store
        self._client = client

    async def reconcile(self, key: Key) -> Wait | None:
        try:
            namespace = await self._client.get(NAMESPACE, key)
        except NotFound:
            await self._sweep(key.name)
            return None
        if not namespace.metadata.get("deletionTimestamp"):
            return None
        if FINALIZER not in ((namespace.get("spec") or {}).get("finalizers") or ()):
            return None
        failures = await self._delete_content(namespace)
        content = self._content(key.name, failures)
        await self._report(namespace, content)
        if content.objects or failures:
            return Wait("NamespaceContentRemaining", _what_is_left(content), after=_LOOK_AGAIN_SECONDS)
        await self._finalize(namespace)
        return None

    # -- deleting -----------------------------------------------------------------------------------------------

    async def _delete_content(self, namespace: Unstructured) -> list[str]:
        failures: list[str] = []
        for served in self._kinds():
            records = [r for r in self._records(served, namespace.name) if b'"deletionTimestamp"' not in r.value]
            for start in range(0, len(records), _TOGETHER):
                doomed = (self._delete(namespace, served, r) for r in records[start : start + _TOGETHER])
                failures += filter(None, await asyncio.gather(*doomed))
            if served.bucket == "pods" and self._store.count("pods", f"{namespace.name}/"):
                break  # what Pods use stays until they have ended
        return failures

    async def _delete(self, namespace: Unstructured, served: ServedKind, record: Record) -> str | None:
        """What went wrong, or None. Nothing is touched in a new namespace of the same name."""
        resource = address(served)
        if resource is None or self._uid(namespace.name) != namespace.uid:
            return None
        try:
            await self._client.delete(
                resource, key_of(record.name), uid=peek(record.value).uid, propagation="Background"
            )
        except NotFound:
            return None
        except ApiError as error:
            return f"{served.bucket} {record.name}: {error}"
        return None

    def _uid(self, name: str) -> str:
        record = self._store.head("namespaces", name)
        return peek(record.value).uid if record is not None else ""

    async def _sweep(self, name: str) -> None:
        """Content that slipped in while its namespace went (a slow admission webhook, say) goes after it."""
        for served in self._kinds():
            resource = address(served)
            for record in self._records(served, name):
                if resource is None or self._store.head("namespaces", name) is not None:
                    return
                await drop_object(self._client, resource, key_of(record.name), uid=peek(record.value).uid)

    # -- looking ------------------------------------------------------------------------------------------------

    def _kinds(self) -> Iterator[ServedKind]:
        """Namespaced kinds that are kept under their own name, Pods first."""
        kinds = [s for s in self._server.catalog if s.namespaced and s.storage in s.versions and "delete" in s.verbs]
        kinds.sort(key=lambda s: (s.bucket != "pods", s.bucket))
        return iter(kinds)

    def _records(self, served: ServedKind, name: str) -> list[Record]:
        return self._store.range(served.bucket, prefix=f"{name}/")

    def _content(self, name: str, failures: list[str]) -> Content:
        content = Content(failures=failures)
        for served in self._kinds():
            for record in self._records(served, name):
                content.objects[served.bucket] += 1
                if b'"finalizers"' in record.value:
                    content.finalizers.update(peek(record.value).finalizers or ())
        return content

    # -- telling ------------------------------------------------------------------------------------------------

    async def _report(self, namespace: Unstructured, content: Content) -> None:
        now = rfc3339(self._server.registry.clock())
        before = (namespace.get("status") or {}).get("conditions")
        conditions = list(before or ())
        for kind, bad, good in _CONDITIONS:
            message = _messages(content)[kind]
            state = ("True", bad, message) if message else ("False", *good)
            conditions = condition.put(conditions, kind, *state, now=now)  # type: ignore[arg-type]
        if conditions != before:
            patch = MergePatch({"status": {"conditions": conditions}})
            await self._client.patch(NAMESPACE, Key("", namespace.name), patch, _WRITE, subresource="status")

    async def _finalize(self, namespace: Unstructured) -> None:
        fresh = await self._client.get(NAMESPACE, Key("", namespace.name))
        if fresh.uid != namespace.uid:
            return
        fresh["spec"]["finalizers"] = [f for f in fresh["spec"]["finalizers"] if f != FINALIZER]
        await self._client.replace(fresh, _WRITE, kind=NAMESPACE, subresource="finalize")
        log.info("namespace is empty", namespace=namespace.name)


# Type, reason if something is the matter, (reason, message) if not.
_CONDITIONS: tuple[tuple[str, str, tuple[str, str]], ...] = (
    (
        "NamespaceDeletionDiscoveryFailure",
        "DiscoveryFailed",
        ("ResourcesDiscovered", "All resources successfully discovered"),
    ),
    (
        "NamespaceDeletionGroupVersionParsingFailure",
        "GroupVersionParsingFailed",
        ("ParsedGroupVersions", "All legacy kube types successfully parsed"),
    ),
    (
        "NamespaceDeletionContentFailure",
        "ContentDeletionFailed",
        ("ContentDeleted", "All content successfully deleted, may be waiting on finalization"),
    ),
    (
        "NamespaceContentRemaining",
        "SomeResourcesRemain",
        ("ContentRemoved", "All content successfully removed"),
    ),
    (
        "NamespaceFinalizersRemaining",
        "SomeFinalizersRemain",
        ("ContentHasNoFinalizers", "All content-preserving finalizers finished"),
    ),
)


def _messages(content: Content) -> dict[str, str]:
    return {
        "NamespaceDeletionDiscoveryFailure": "",  # the catalog is in this process: it can't fail to answer
        "NamespaceDeletionGroupVersionParsingFailure": "",
        "NamespaceDeletionContentFailure": "; ".join(content.failures),
        "NamespaceContentRemaining": _remaining(content),
        "NamespaceFinalizersRemaining": _finalizing(content),
    }


def _remaining(content: Content) -> str:
    parts = [
        f"{_qualified(bucket)} has {count} resource instances" for bucket, count in sorted(content.objects.items())
    ]
    return f"Some resources are remaining: {', '.join(parts)}" if parts else ""


def _qualified(bucket: str) -> str:
    return bucket if "." in bucket else f"{bucket}."  # the core group has no name, and its kinds a dot nonetheless


def _finalizing(content: Content) -> str:
    parts = [f"{name} in {count} resource instances" for name, count in sorted(content.finalizers.items())]
    return f"Some content in the namespace has finalizers remaining: {', '.join(parts)}" if parts else ""


def _what_is_left(content: Content) -> str:
    return "; ".join(content.failures) or _finalizing(content) or _remaining(content)


def install(server: EmbeddedServer, manager: Manager) -> Controller:
    controller = Controller("namespace", NAMESPACE, NamespaceReconciler(server, manager.client), clock=manager.clock)
    store = server.store

    def content_changed(changes: list[Change]) -> None:
        for change in changes:
            name, slash, _ = change.name.partition("/")
            if not slash or (change.record is not None and change.previous is not None):
                continue
            record = store.get("namespaces", name)
            if change.record is None and record is not None and b'"deletionTimestamp"' in record.value:
                # The last of a kind may be what the deletion waits for; the others show in the conditions soon.
                last = not store.count(change.bucket, f"{name}/")
                controller.queue.add(Key("", name), after=0.0 if last else _PROGRESS_SECONDS)
            elif change.record is not None and record is None:
                controller.queue.add(Key("", name))

    async def follow() -> None:
        unsubscribe = store.subscribe(None, content_changed)
        try:
            await asyncio.Event().wait()
        finally:
            unsubscribe()

    manager.job(follow)
    return manager.add(controller)
