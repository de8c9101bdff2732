"""Spellings that are about, turned into one: what users wrote for other tools works here as well."""

from __future__ import annotations

import uuid
from typing import Any

Json = dict[str, Any]
POOL_GROUP = "ipam.cluster.x-k8s.io"


def normalise_machine(spec: Json) -> None:
    """`categories` is additionalCategories, `subnets` is subnet, and a bare string is a name or a UUID."""
    for field in ("image", "cluster", "project"):
        _normalise_field(spec, field)
    _rename_list(spec, "subnets", "subnet")
    _normalise_list(spec, "subnet")
    _rename_list(spec, "categories", "additionalCategories")
    for pool in _dicts(spec.get("addressesFromPools")):
        pool.setdefault("apiGroup", POOL_GROUP)
    for disk in _dicts(spec.get("dataDisks")):
        _normalise_field(disk, "dataSource")
        if isinstance(disk.get("storageConfig"), dict):
            _normalise_field(disk["storageConfig"], "storageContainer")


def normalise_cluster(spec: Json) -> None:
    for domain in _dicts(spec.get("failureDomains")):
        _normalise_field(domain, "cluster")
        _rename_list(domain, "subnet", "subnets")
        _normalise_list(domain, "subnets")


def normalise_domain(spec: Json) -> None:
    _normalise_field(spec, "prismElementCluster")
    _normalise_list(spec, "subnets")


def normalise_recovery(spec: Json) -> None:
    _normalise_field(spec, "protectionPolicy")
    for group in _dicts(spec.get("movementGroups")):
        for plan in _dicts(group.get("categoryRecoveryPlans")):
            _normalise_field(plan, "recoveryPlan")


def _normalise_field(parent: Json, field: str) -> None:
    if field in parent and parent[field] is not None:
        parent[field] = identifier(parent[field])


def _normalise_list(parent: Json, field: str) -> None:
    value = parent.get(field)
    if value is None:
        return
    parent[field] = [identifier(each) for each in (value if isinstance(value, list) else [value])]


def _rename_list(parent: Json, other: str, field: str) -> None:
    """What both names say is joined, each entry once."""
    if other not in parent:
        return
    more = parent.pop(other) or []
    held = parent.get(field) or []
    held = held if isinstance(held, list) else [held]
    joined = [*held, *(more if isinstance(more, list) else [more])]
    parent[field] = [each for number, each in enumerate(joined) if each not in joined[:number]]


def identifier(value: object) -> Any:
    """`x` > {type: name, name: x}; {name: x} and {uuid: x} get their type. What is no identifier stays as it is."""
    if isinstance(value, str):
        kind = "uuid" if _is_uuid(value) else "name"
        return {"type": kind, kind: value}
    if isinstance(value, dict) and not value.get("type"):
        for kind in ("uuid", "name"):
            if value.get(kind):
                return {**value, "type": kind}
    return value


def _is_uuid(text: str) -> bool:
    try:
        return str(uuid.UUID(text)) == text.lower()
    except ValueError:
        return False


def _dicts(value: Any) -> list[Json]:
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []
