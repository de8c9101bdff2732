"""Equal strings of many objects in one place of memory.

Each decoded object brings strings of its own. Most of those in metadata and in conditions occur in every object of a
cluster: names, UIDs of owners, types and reasons of conditions, timestamps. Other fields are left as they are, because
looking at all of them costs more CPU than it saves memory.

`sys.intern` is not used: Python 3.12.0 to 3.12.6, and builds without the global lock, never free an interned string,
and messages and timestamps of conditions change for as long as the process runs.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from homeport.api.meta import Object, ObjectMeta, Unstructured

MOST = 1 << 16  # strings that are held although no object may have them any more
_LONGEST = 256
_FIELDS = ("name", "namespace", "uid", "creationTimestamp")  # of metadata; a resourceVersion occurs once
_held: dict[str, str] = {}


def share_strings(obj: Object | Unstructured) -> None:
    """Replaces strings of an object that nobody else has seen yet by equal ones."""
    if isinstance(obj, Unstructured):
        _share_values(obj)
        _share_nested(obj.metadata)
        status = obj.get("status")
        conditions = status.get("conditions") if isinstance(status, dict) else None
    else:
        obj.api_version, obj.kind = _shared(obj.api_version), _shared(obj.kind)
        _share_metadata(obj.metadata)
        conditions = getattr(getattr(obj, "status", None), "conditions", None)
    if isinstance(conditions, list):
        _share_all(conditions)


def _share_metadata(meta: ObjectMeta) -> None:
    meta.name, meta.namespace, meta.uid = _shared(meta.name), _shared(meta.namespace), _shared(meta.uid)
    if meta.creation_timestamp:
        meta.creation_timestamp = _shared(meta.creation_timestamp)
    _share_values(meta.labels)
    meta.finalizers = [_shared(each) for each in meta.finalizers]
    for owner in meta.owner_references:
        owner.api_version, owner.kind = _shared(owner.api_version), _shared(owner.kind)
        owner.name, owner.uid = _shared(owner.name), _shared(owner.uid)


def _share_nested(meta: dict[str, Any]) -> None:
    for name in _FIELDS:
        if type(value := meta.get(name)) is str:
            meta[name] = _shared(value)
    labels, owners = meta.get("labels"), meta.get("ownerReferences")
    if isinstance(labels, dict):
        _share_values(labels)
    if isinstance(owners, list):
        _share_all(owners)


def _share_all(found: Iterable[Any]) -> None:
    for each in found:
        if type(each) is dict:
            _share_values(each)


def _share_values(found: dict[str, Any]) -> None:
    for name, value in found.items():
        if type(value) is str:
            found[name] = _shared(value)


def _shared(text: str) -> str:
    if len(text) > _LONGEST:
        return text
    if len(_held) >= MOST:
        _held.clear()  # what still occurs is held again at once
    return _held.setdefault(text, text)
