"""Pods from templates. Pure."""

from __future__ import annotations

import copy
import hashlib
from collections.abc import Mapping
from typing import Any

import orjson

from homeport.api.meta import Resource, Unstructured
from homeport.runtime.workload.kind import controller_ref

HASH_LABEL = "pod-template-hash"
REVISION_LABEL = "controller-revision-hash"
# Letters that can't form words, as Kubernetes takes them for generated names.
_LETTERS = "bcdfghjklmnpqrstvwxz2456789"


def short_hash(value: object, salt: int = 0) -> str:
    """Ten letters that stand for a value; `salt` gives another for the same value."""
    digest = hashlib.sha256(orjson.dumps([value, salt] if salt else value, option=orjson.OPT_SORT_KEYS)).digest()
    return "".join(_LETTERS[byte % len(_LETTERS)] for byte in digest[:10])


def same_template(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    return _bare(one) == _bare(other)


def _bare(template: Mapping[str, Any]) -> dict[str, Any]:
    """A template without the label that tells the versions of a Deployment apart."""
    meta = dict(template.get("metadata") or {})
    meta.pop("creationTimestamp", None)
    labels = {k: v for k, v in (meta.pop("labels", None) or {}).items() if k != HASH_LABEL}
    return {"meta": {k: v for k, v in meta.items() if v}, "labels": labels, "spec": template.get("spec") or {}}


def pod_of(owner: Unstructured, kind: Resource, template: Mapping[str, Any], name: str = "") -> dict[str, Any]:
    """A Pod for `owner`: named `name`, or after the owner with letters of the server's choice."""
    given = template.get("metadata") or {}
    meta: dict[str, Any] = {
        "namespace": owner.namespace,
        "labels": dict(given.get("labels") or {}),
        "annotations": dict(given.get("annotations") or {}),
        "finalizers": list(given.get("finalizers") or ()),
        "ownerReferences": [controller_ref(owner, kind)],
    }
    meta.update({"name": name} if name else {"generateName": f"{owner.name}-"})
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {k: v for k, v in meta.items() if v},
        "spec": copy.deepcopy(dict(template.get("spec") or {})),
    }


def share_of(value: str | int | None, total: int, *, up: bool) -> int:
    """An absolute number, or a percentage of `total` rounded up or down."""
    if isinstance(value, str) and value.endswith("%"):
        part = int(value[:-1]) * total
        return -(-part // 100) if up else part // 100
    return int(value or 0)
