"""Whose an object is that has the name of one of ours. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from homeport.api.meta import Object
from homeport.capi.object.ownership import controller_of, group_kind, owners


class NameTaken(Exception):
    """An object of somebody else has the name that ours needs. Says which, and what to do."""


def is_ours(obj: Object | Mapping[str, Any], owner: Mapping[str, Any]) -> bool:
    """Whether `owner` controls the object. Restored from a backup, an owner has another uid and the same name."""
    found = controller_of(obj)
    return found is not None and _same(found, owner)


def is_owned_by(obj: Mapping[str, Any], owner: Mapping[str, Any]) -> bool:
    """Whether `owner` is one of the object's owners."""
    return any(_same(each, owner) for each in owners(obj))


def is_made_by(obj: Mapping[str, Any], metadata: Mapping[str, Any]) -> bool:
    """Whether an object is one that is made with this metadata: it has its owner, or without any owner its labels."""
    wanted, found = metadata.get("ownerReferences") or (), owners(obj)
    if wanted and found:
        return any(_same(each, owner) for each in found for owner in wanted)
    held = (obj.get("metadata") or {}).get("labels") or {}
    labels = metadata.get("labels") or {}
    return bool(labels) and not found and all(held.get(name) == value for name, value in labels.items())


def _same(found: Mapping[str, Any], owner: Mapping[str, Any]) -> bool:
    return bool(
        found["uid"] == owner["uid"] or (group_kind(found), found["name"]) == (group_kind(owner), owner["name"])
    )
