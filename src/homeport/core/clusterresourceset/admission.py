"""What a ClusterResourceSet and its bindings may say, and what is filled in when they do not."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from homeport.api.addons.v1beta2 import ClusterResourceSet, ClusterResourceSetBinding
from homeport.client.errors import Cause
from homeport.core.clusterresourceset.plan import APPLY_ONCE
from homeport.machinery.selector import SelectorError, from_label_selector
from homeport.runtime.webhook.hook import Hooks

Json = dict[str, Any]


def register(hooks: Hooks) -> None:
    hooks.add(ClusterResourceSet, default=default, validate=validate)
    hooks.add(ClusterResourceSetBinding, validate=validate_binding)


def default(found: Json, old: Json | None) -> None:
    spec = found["spec"]
    if not spec.get("strategy"):
        spec["strategy"] = APPLY_ONCE


def validate(found: Json, old: Json | None) -> list[Cause]:
    spec = found.get("spec") or {}
    before = None if old is None else old.get("spec") or {}
    return [*_selector(spec), *_unchanged(spec, before)]


def validate_binding(found: Json, old: Json | None) -> list[Cause]:
    before = ((old or {}).get("spec") or {}).get("clusterName")
    after = (found.get("spec") or {}).get("clusterName")
    if before and before != after:
        return [
            _immutable("spec.clusterName", after, "a binding belongs to one Cluster: delete it and create another one")
        ]
    return []


def _selector(spec: Json) -> Iterator[Cause]:
    try:
        selector = from_label_selector(spec.get("clusterSelector") or {})
    except SelectorError as error:
        yield Cause.invalid("spec.clusterSelector", error)
        return
    if selector.empty:
        yield Cause.required("spec.clusterSelector", "select Clusters by labels; an empty selector matches nothing")


def _unchanged(spec: Json, before: Json | None) -> Iterator[Cause]:
    if before is None:
        return
    why = "create another ClusterResourceSet instead"
    if before.get("strategy") and before["strategy"] != spec.get("strategy"):
        yield _immutable("spec.strategy", spec.get("strategy"), why)
    if (before.get("clusterSelector") or {}) != (spec.get("clusterSelector") or {}):
        yield _immutable("spec.clusterSelector", spec.get("clusterSelector"), why)


def _immutable(field: str, value: Any, why: str) -> Cause:
    return Cause.invalid(field, f'"{value}": it can\'t be changed; {why}')
