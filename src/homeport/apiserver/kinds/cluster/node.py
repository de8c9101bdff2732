"""Node: taints, what may be set only once, and resources.

A new node gets the taint node.kubernetes.io/not-ready. The controller that takes it away again is not here: the status
that says that the node is ready does it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from homeport.apiserver.kinds.check import (
    Struct,
    cidr,
    duplicate,
    forbidden,
    invalid,
    label_key,
    label_value,
    named,
    required,
    shown,
    unsupported,
)
from homeport.apiserver.kinds.strategy import Plain
from homeport.apiserver.resource import Json
from homeport.apiserver.verb.admission import Attributes
from homeport.client.errors import Cause
from homeport.machinery.quantity import parse_quantity

NOT_READY = "node.kubernetes.io/not-ready"
_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")


class Node(Plain):
    def default(self, obj: Json) -> None:
        status = obj.get("status") or {}
        if status.get("capacity") and not status.get("allocatable"):
            status["allocatable"] = dict(status["capacity"])
        spec = obj.get("spec") or {}
        _sync_cidrs(spec)

    def validate(self, obj: Json, old: Json | None) -> list[Cause]:
        spec, status = obj.get("spec") or {}, obj.get("status") or {}
        causes = list(taints("metadata.taints", spec.get("taints") or ()))
        for field in ("capacity", "allocatable"):
            for key, amount in (status.get(field) or {}).items():
                if parse_quantity(amount).amount < 0:
                    where = f"status.{field}.{key}"
                    causes.append(invalid(where, amount, "must be greater than or equal to 0"))
        for i, value in enumerate(spec.get("podCIDRs") or ()):
            causes += cidr(f"spec.podCIDRs[{i}]", value)
        if old is not None:
            causes += _changed(spec, old.get("spec") or {}, status)
        return causes

    def fields(self, obj: Json) -> Mapping[str, str]:
        return {"spec.unschedulable": "true" if (obj.get("spec") or {}).get("unschedulable") else "false"}


def taint_new(attributes: Attributes) -> None:
    assert attributes.object is not None
    spec = attributes.object.setdefault("spec", {})
    given = spec.get("taints") or []
    if not any(_is_not_ready(taint) for taint in given):
        spec["taints"] = [*given, {"key": NOT_READY, "effect": "NoSchedule"}]


def _is_not_ready(taint: Json) -> bool:
    return taint.get("key") == NOT_READY and taint.get("effect") == "NoSchedule"


class Status:
    """nodes/status."""

    def prepare(self, obj: Json, old: Json) -> None:
        conditions = (obj.get("status") or {}).get("conditions") or ()
        if not any(c.get("type") == "Ready" and c.get("status") == "True" for c in conditions):
            return
        spec = obj["spec"] = dict(obj.get("spec") or {})
        kept = [taint for taint in spec.get("taints") or () if not _is_not_ready(taint)]
        if kept:
            spec["taints"] = kept
        else:
            spec.pop("taints", None)

    def validate(self, obj: Json, old: Json) -> list[Cause]:
        return Node().validate(obj, old)


def _sync_cidrs(spec: Json) -> None:
    """podCIDR is the first of podCIDRs, whichever of the two was given."""
    one, many = spec.get("podCIDR"), spec.get("podCIDRs")
    if many and not one:
        spec["podCIDR"] = many[0]
    elif one and (not many or many[0] != one):
        spec["podCIDRs"] = [one]


def _changed(spec: Json, old: Json, status: Json) -> Iterator[Cause]:
    seen: list[Any] = []
    for i, address in enumerate(status.get("addresses") or ()):
        if address in seen:
            yield duplicate(f"status.addresses[{i}]", address)
        seen.append(address)
    if old.get("podCIDRs") and spec.get("podCIDRs") != old["podCIDRs"]:
        yield forbidden("spec.podCIDRs", 'node updates may not change podCIDR except from "" to valid')
    before, now = old.get("providerID"), spec.get("providerID")
    if before and now and before != now:
        yield invalid("spec.providerID", None, "field cannot be modified once set")
    if before and not now:
        yield invalid("spec.providerID", None, "field cannot be cleared once set")


def taints(field: str, found: list[Json] | tuple[()]) -> Iterator[Cause]:
    seen: set[tuple[str, str]] = set()
    for i, taint in enumerate(found):
        subfield, key, effect = f"{field}[{i}]", taint.get("key", ""), taint.get("effect", "")
        yield from named(f"{subfield}.key", key, label_key)
        yield from named(f"{subfield}.value", taint.get("value", ""), label_value)
        yield from taint_effect(f"{subfield}.effect", effect)
        if (key, effect) in seen:
            detail = "taints must be unique by key and effect pair"
            shape = Struct(Key=key, Value=taint.get("value", ""), Effect=effect, TimeAdded=taint.get("timeAdded"))
            yield Cause("FieldValueDuplicate", f"Duplicate value: {shown(shape)}: {detail}", subfield)
        seen.add((key, effect))


def taint_effect(field: str, effect: str, *, optional: bool = False) -> Iterator[Cause]:
    if not effect:
        if not optional:
            yield required(field)
    elif effect not in _EFFECTS:
        yield unsupported(field, effect, _EFFECTS)
