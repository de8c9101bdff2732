"""Secrets and ConfigMaps by which clusters reach their vendor: kept from deletion while one of them needs it.

Deleting everything in one go (a namespace, a file of manifests) would otherwise take away the credentials by which the
machines are to be removed. They belong to the user: Homeport never owns or deletes them, and several clusters may share
one. As nothing owns them, a label tells clusterctl to take them along when clusters move to another plane.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from homeport.api.meta import Resource
from homeport.capi.name import MOVE_LABEL
from homeport.client.errors import NotFound
from homeport.client.protocol import Key, MergePatch, Write
from homeport.runtime.cache import key_of
from homeport.runtime.informer import metadata_only
from homeport.runtime.manager import Manager


class SourceReconciler:
    """`users` gives the InfraClusters that need a key of this kind; `former`: what the finalizer was called before."""

    def __init__(
        self,
        manager: Manager,
        kind: Resource,
        finalizer: str,
        former: frozenset[str],
        users: Callable[[Key], Iterable[Key]],
        provider: str,
    ) -> None:
        self._client = manager.client
        self._kind = kind
        self._objects = manager.informers.get(metadata_only(kind)).cache
        self._finalizer = finalizer
        self._finalizers = former | {finalizer}
        self._users = users
        self._write = Write(field_manager=f"homeport-{provider}")
        self._recorder = manager.recorder
        self._reported: set[str] = set()  # UIDs of those whose deletion waits

    def concerns(self, old: Any, new: Any) -> bool:
        """A predicate: most Secrets and ConfigMaps are not credentials. A cluster that begins to use one wakes it."""
        del old
        if new is None:
            return False
        return not self._finalizers.isdisjoint(new.metadata.finalizers) or any(True for _ in self._users(key_of(new)))

    async def reconcile(self, key: Key) -> None:
        found: Any = self._objects.get(key)
        if found is None:
            return
        meta = found.metadata
        held, users = self._finalizers.intersection(meta.finalizers), list(self._users(key))
        used = bool(users)
        if used and meta.deletion_timestamp:
            self._report(found, users)
            return  # one that is going away takes no more finalizers
        wanted = {self._finalizer} if used else set()
        if held == wanted and (not used or MOVE_LABEL in meta.labels):
            return  # the label of one that we don't hold is the user's own
        finalizers = [each for each in meta.finalizers if each not in self._finalizers]
        finalizers += [self._finalizer] if used else []
        body = {
            "metadata": {
                "finalizers": finalizers,
                "labels": {MOVE_LABEL: "" if used else None},
                "uid": meta.uid,
                "resourceVersion": meta.resource_version,
            }
        }
        try:
            await self._client.patch(self._kind, key, MergePatch(body), self._write)
        except NotFound:
            return

    def _report(self, found: Any, users: Iterable[Key]) -> None:
        """Whoever deletes it sees nothing but a command that does not end."""
        if found.metadata.uid in self._reported:
            return
        self._reported.add(found.metadata.uid)
        shown = ", ".join(sorted(map(str, users))[:3])
        text = f"it is in use by the infrastructure of {shown}, and is deleted after them"
        self._recorder.record(found, "CredentialsInUse", text, warning=True)
