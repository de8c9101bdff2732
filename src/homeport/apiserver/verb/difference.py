"""How an object that is written differs from the one that is stored."""

from __future__ import annotations

from typing import Any

import orjson

from homeport.apiserver.resource import Json
from homeport.apiserver.target import Target
from homeport.apiserver.verb.patch import MERGE_PATCH


def named_fields(target: Target, patch_type: str, patch: Any) -> tuple[str, ...] | None:
    """The fields of the object that a patch can change; the others are as they were stored, and in form since then.
    None: it could be any."""
    if patch_type != MERGE_PATCH or target.version.resource.version != target.served.storage:
        return None
    return tuple(patch) if isinstance(patch, dict) else None


def kept_when_stored(target: Target, obj: Json) -> Json:
    """What will be stored of an object in another version than the stored one: nobody owns what is dropped there."""
    served = target.served
    if not served.custom or target.version.resource.version == served.storage:
        return obj
    if served.convert is not None or served.convert_async is not None or served.storage not in served.versions:
        return obj  # its fields have other names there
    kept: Json = orjson.loads(orjson.dumps(obj))
    served.versions[served.storage].checker.prune(kept)
    return kept


def differs_in_time_only(obj: Json, old: Json) -> bool:
    """Whether the object differs from the old one in nothing but when its managers wrote it."""
    mine, before = obj["metadata"].get("managedFields"), old["metadata"].get("managedFields")
    if not mine or not before or mine == before:
        return False
    if [{**each, "time": ""} for each in mine] != [{**each, "time": ""} for each in before]:
        return False
    return {**obj, "metadata": {**obj["metadata"], "managedFields": before}} == old


def counts_as_generation(target: Target, obj: Json, old: Json) -> bool:
    """Whether the change is one that metadata.generation counts."""
    served = target.served
    if not served.spec_generation:
        return False
    if served.annotation_generation and not target.subresource:
        if (obj["metadata"].get("annotations") or {}) != (old["metadata"].get("annotations") or {}):
            return True
    apart = ("metadata", "status") if target.version.status or not served.custom else ("metadata",)
    return any(field not in apart and obj.get(field) != old.get(field) for field in obj.keys() | old.keys())


def is_finished(obj: Json) -> bool:
    """Deletion was asked for and nothing holds the object any more."""
    meta = obj["metadata"]
    if not meta.get("deletionTimestamp") or meta.get("finalizers") or meta.get("deletionGracePeriodSeconds"):
        return False
    return not (obj["kind"] == "Namespace" and obj["apiVersion"] == "v1" and (obj.get("spec") or {}).get("finalizers"))
