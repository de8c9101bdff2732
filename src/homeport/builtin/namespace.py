"""Namespace deletion: everything in it goes, then the namespace itself; until then its conditions say what is left."""

from __future__ import annotations

from collections import Counter
from typing import Any

import orjson
import structlog

from homeport.api.meta import Resource, Unstructured
from homeport.apiserver.embedded import EmbeddedServer
from homeport.apiserver.resource import Served
from homeport.client.errors import ApiError, NotFound
from homeport.client.protocol import Key, MergePatch, Query, Write
from homeport.machinery import condition
from homeport.runtime.clock import rfc3339
from homeport.runtime.controller import Controller
from homeport.runtime.manager import Manager
from homeport.runtime.outcome import Wait
from homeport.store import Change

log = structlog.get_logger(__name__)

NAMESPACE = Resource("", "v1", "Namespace", "namespaces", namespaced=False)
FINALIZER = "kubernetes"
_WRITE = Write(field_manager="namespace-controller")


class NamespaceReconciler:
    def __init__(self, server: EmbeddedServer, client: Any) -> None:
        self._server = server
        self._client = client

    async def reconcile(self, key: Key) -> Wait | None:
        try:
            namespace = await self._client.get(NAMESPACE, key)
        except NotFound:
            return None
        if not namespace.metadata.get("deletionTimestamp"):
            return None
        if FINALIZER not in ((namespace.get("spec") or {}).get("finalizers") or ()):
            return None
        failures = await self._delete_content(key.name)
        left, finalizers = self._content_left(key.name)
        await self._report(namespace, failures, left, finalizers)
        if left or failures:
            return Wait("NamespaceContentRemaining", _what_is_left(left, finalizers), after=15.0)
        await self._finalize(namespace)
        return None

    async def _delete_content(self, name: str) -> list[str]:
        failures = []
        for served in self._kinds():
            if not self._server.store.count(served.bucket, f"{name}/"):
                continue
            resource = served.versions[served.storage].resource
            try:
                await self._client.delete_all(resource, Query(namespace=name), propagation="Background")
            except ApiError as error:
                failures.append(f"{served.bucket}: {error}")
        return failures

    def _kinds(self) -> list[Served]:
        return [
            s
            for s in self._server.catalog
            if s.namespaced and s.storage in s.versions and "deletecollection" in s.verbs
        ]

    def _content_left(self, name: str) -> tuple[Counter[str], Counter[str]]:
        left: Counter[str] = Counter()
        finalizers: Counter[str] = Counter()
        for served in self._kinds():
            for record in self._server.store.range(served.bucket, prefix=f"{name}/"):
                left[served.bucket] += 1
                finalizers.update(orjson.loads(record.value)["metadata"].get("finalizers") or ())
        return left, finalizers

    async def _report(
        self, namespace: Unstructured, failures: list[str], left: Counter[str], finalizers: Counter[str]
    ) -> None:
        now = rfc3339(self._server.registry.clock())
        conditions = list((namespace.get("status") or {}).get("conditions") or ())
        for kind, bad, reason, message, good in (
            ("NamespaceDeletionContentFailure", bool(failures), "ContentDeletionFailed", "; ".join(failures),
             "All content successfully deleted, may be waiting on finalization"),
            ("NamespaceContentRemaining", bool(left), "SomeResourcesRemain", _remaining(left),
             "All content successfully removed"),
            ("NamespaceFinalizersRemaining", bool(finalizers), "SomeFinalizersRemain", _finalizing(finalizers),
             "All content-preserving finalizers finished"),
        ):  # fmt: skip
            state = ("True", reason, message) if bad else ("False", _GOOD[kind], good)
            conditions = condition.put(conditions, kind, *state, now=now)  # type: ignore[arg-type]
        if conditions != (namespace.get("status") or {}).get("conditions"):
            patch = MergePatch({"status": {"conditions": conditions}})
            await self._client.patch(NAMESPACE, Key("", namespace.name), patch, _WRITE, subresource="status")

    async def _finalize(self, namespace: Unstructured) -> None:
        fresh = await self._client.get(NAMESPACE, Key("", namespace.name))
        if fresh.uid != namespace.uid:
            return
        fresh["spec"]["finalizers"] = [f for f in fresh["spec"]["finalizers"] if f != FINALIZER]
        await self._client.replace(fresh, _WRITE, kind=NAMESPACE, subresource="finalize")
        log.info("namespace is gone", namespace=namespace.name)


_GOOD = {
    "NamespaceDeletionContentFailure": "ContentDeleted",
    "NamespaceContentRemaining": "ContentRemoved",
    "NamespaceFinalizersRemaining": "ContentHasNoFinalizers",
}


def _remaining(left: Counter[str]) -> str:
    parts = ", ".join(f"{bucket} has {count} resource instances" for bucket, count in sorted(left.items()))
    return f"Some resources are remaining: {parts}"


def _finalizing(finalizers: Counter[str]) -> str:
    parts = ", ".join(f"{name} in {count} resource instances" for name, count in sorted(finalizers.items()))
    return f"Some content in the namespace has finalizers remaining: {parts}"


def _what_is_left(left: Counter[str], finalizers: Counter[str]) -> str:
    return _finalizing(finalizers) if finalizers else _remaining(left)


def install(server: EmbeddedServer, manager: Manager) -> Controller:
    controller = Controller("namespace", NAMESPACE, NamespaceReconciler(server, manager.client), clock=manager.clock)

    def content_went(changes: list[Change]) -> None:
        """The last object of a namespace going is what a deletion waits for."""
        for change in changes:
            if change.record is None and "/" in change.name:
                name = change.name.partition("/")[0]
                record = server.store.get("namespaces", name)
                if record is not None and b'"deletionTimestamp"' in record.value:
                    controller.queue.add(Key("", name))

    server.store.subscribe(None, content_went)
    return manager.add(controller)
