"""What the objects of add-ons look like in workload clusters, by watch: drift and progress wake their ClusterAddon.

One watch per cluster and kind serves all add-ons of the cluster, since it selects by label.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from homeport.addons.name import ADDON_LABEL, OWNER_ANNOTATION
from homeport.addons.target.inventory import Ref
from homeport.api.meta import Resource, Unstructured
from homeport.capi.remote.workload import Handler, Remote
from homeport.client.protocol import Key, Query

APPLIED = Query(labels=ADDON_LABEL)  # what we apply
RELEASED = Query(labels="app.kubernetes.io/managed-by=Helm")  # what charts bring
RECORDED = Query(labels="owner=helm")  # records of releases
RELEASE_NAME = "meta.helm.sh/release-name"
RELEASE_NAMESPACE = "meta.helm.sh/release-namespace"

Release = tuple[Key, str, str]  # cluster, namespace, name
Watched = tuple[Key, Resource, Query]  # cluster, kind and selection


class Watches:
    def __init__(self, wake: Callable[[Key], object]) -> None:
        self._wake = wake
        self._releases: dict[Release, Key] = {}
        self._handlers: dict[Key, Handler] = {}
        self._records: dict[Key, Handler] = {}
        self._syncs: dict[Watched, Callable[[], None]] = {}
        self._early: dict[Watched, set[Key]] = {}  # add-ons that left objects before the first list of their watch

    def follow(self, remote: Remote, kind: Resource, query: Query, addon: Key) -> None:
        """From now on, changes of such objects wake their add-on.

        What is deleted before the first list causes no change there, so that list wakes `addon` as well.
        """
        if query is RECORDED:
            handler = self._records.setdefault(remote.key, self._recorded(remote.key))
        elif query is APPLIED:
            handler = self._applied
        else:
            handler = self._handlers.setdefault(remote.key, self._of(remote.key))
        remote.watch(kind, query, handler, slim=slim)
        if not self.knows(remote, kind, query):
            watched = remote.key, kind, query
            self._early.setdefault(watched, set()).add(addon)
            remote.on_sync(kind, query, self._syncs.setdefault(watched, self._listed(watched)))

    def _listed(self, watched: Watched) -> Callable[[], None]:
        def listed() -> None:
            for addon in self._early.pop(watched, ()):
                self._wake(addon)

        return listed

    def remember_release(self, release: Release, addon: Key) -> None:
        self._releases[release] = addon

    def forget(self, addon: Key) -> None:
        for release in [each for each, key in self._releases.items() if key == addon]:
            del self._releases[release]
        for waiting in self._early.values():
            waiting.discard(addon)

    def find(self, remote: Remote, kind: Resource, ref: Ref, query: Query) -> Unstructured | None:
        """The object as it was last seen, slim; None: it does not exist, or is not watched yet (see `knows`)."""
        return remote.watch(kind, query).get(Key(ref.namespace, ref.name)) if self.knows(remote, kind, query) else None

    def knows(self, remote: Remote, kind: Resource, query: Query) -> bool:
        return remote.has_synced(kind, query)

    def _applied(self, old: Unstructured | None, new: Unstructured | None) -> None:
        owner = _annotation(new if new is not None else old, OWNER_ANNOTATION)
        namespace, separator, name = owner.partition("/")
        if separator:
            self._wake(Key(namespace, name))

    def _of(self, cluster: Key) -> Handler:
        def released(old: Unstructured | None, new: Unstructured | None) -> None:
            obj = new if new is not None else old
            release = cluster, _annotation(obj, RELEASE_NAMESPACE), _annotation(obj, RELEASE_NAME)
            addon = self._releases.get(release)
            if addon is not None:
                self._wake(addon)

        return released

    def _recorded(self, cluster: Key) -> Handler:
        """Records that somebody deletes, or that are not an add-on's; what we write ourselves wakes nobody."""

        def changed(old: Unstructured | None, new: Unstructured | None) -> None:
            obj = new if new is not None else old
            labels = {} if obj is None else obj.metadata.get("labels") or {}
            if obj is None or (new is not None and ADDON_LABEL in labels):
                return
            addon = self._releases.get((cluster, obj.namespace, str(labels.get("name") or "")))
            if addon is not None:
                self._wake(addon)

        return changed


def slim(obj: Any) -> Any:
    """What tells drift and health: metadata, status, and the few fields of a spec that health looks at."""
    obj.metadata.pop("managedFields", None)
    for field in ("data", "binaryData", "stringData", "rules", "webhooks", "subjects"):
        obj.pop(field, None)
    spec = obj.get("spec")
    if isinstance(spec, dict):
        if obj.get("kind") == "CustomResourceDefinition":
            obj.pop("spec")
        else:
            spec.pop("template", None)
    return obj


def _annotation(obj: Unstructured | None, name: str) -> str:
    return "" if obj is None else str((obj.metadata.get("annotations") or {}).get(name) or "")
