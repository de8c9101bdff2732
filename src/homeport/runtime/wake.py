"""What a change of an object means for a controller: which keys it enqueues, and with which priority."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from homeport.api.meta import Object, ObjectMeta, Resource, Unstructured
from homeport.client.protocol import Key
from homeport.runtime.cache import key_of
from homeport.runtime.queue import Priority


def own_key(obj: Object | Unstructured) -> Iterable[Key]:
    return (key_of(obj),)


def priority_of(old: Object | Unstructured | None, new: Object | Unstructured | None, initial: bool) -> Priority:
    """The priority of the key that a change wakes: changes by users come first, the first list last."""
    if initial:
        return Priority.RESYNC
    if old is None or new is None or _generation(old) != _generation(new):
        return Priority.USER
    return Priority.NORMAL


def spec_changed(old: Object | None, new: Object | None) -> bool:
    """A predicate: the object comes, goes or has another spec."""
    return old is None or new is None or old.metadata.generation != new.metadata.generation


def only_status_changed(old: ObjectMeta, new: ObjectMeta) -> bool:
    """Whether a change left metadata and spec as they were."""
    return (
        old.generation == new.generation
        and old.uid == new.uid
        and old.labels == new.labels
        and old.annotations == new.annotations
        and old.finalizers == new.finalizers
        and old.owner_references == new.owner_references
        and old.deletion_timestamp == new.deletion_timestamp
    )


def _generation(obj: Object | Unstructured) -> int:
    if isinstance(obj, Unstructured):
        return int(obj.metadata.get("generation") or 0)
    return int(obj.metadata.generation)


def owner_keys(obj: Object | Unstructured, resource: Resource) -> Iterable[Key]:
    """The keys of controllers of this kind that own the object."""
    namespace = key_of(obj).namespace if resource.namespaced else ""
    for owner in _owners(obj):
        group = owner["apiVersion"].rpartition("/")[0]
        if owner.get("controller") and owner["kind"] == resource.kind and group == resource.group:
            yield Key(namespace, owner["name"])


def _owners(obj: Object | Unstructured) -> Iterable[dict[str, Any]]:
    if isinstance(obj, Unstructured):
        return list(obj.metadata.get("ownerReferences") or ())
    return [
        {"apiVersion": o.api_version, "kind": o.kind, "name": o.name, "controller": o.controller}
        for o in obj.metadata.owner_references
    ]
