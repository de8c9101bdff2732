"""ConfigMap and LimitRange.

Not checked: which names of resources a LimitRange may use.
"""

from __future__ import annotations

from collections.abc import Iterator

from homeport.apiserver.kinds.check import (
    config_key,
    duplicate,
    forbidden,
    invalid,
    label_key,
    named,
    required,
    too_long,
)
from homeport.apiserver.kinds.strategy import Plain
from homeport.apiserver.resource import Json
from homeport.client.errors import Cause
from homeport.machinery.quantity import parse_quantity

SIZE_LIMIT = 1024 * 1024
FROZEN = "field is immutable when `immutable` is set"


def frozen(obj: Json, old: Json, *fields: str) -> Iterator[Cause]:
    """What may not change once an object says that it is immutable."""
    if not old.get("immutable"):
        return
    if not obj.get("immutable"):
        yield forbidden("immutable", FROZEN)
    for field in fields:
        if (obj.get(field) or {}) != (old.get(field) or {}):
            yield forbidden(field, FROZEN)


def decoded_size(text: str) -> int:
    """Bytes that base64 text stands for."""
    return len(text) // 4 * 3 - text.count("=")


class ConfigMap(Plain):
    def validate(self, obj: Json, old: Json | None) -> list[Cause]:
        causes = list(frozen(obj, old, "data", "binaryData")) if old is not None else []
        data, binary = obj.get("data") or {}, obj.get("binaryData") or {}
        for key in data:
            if wrong := config_key(key):
                causes.append(invalid(f"data[{key}]", key, wrong))
            if key in binary:
                causes.append(invalid(f"data[{key}]", key, "duplicate of key present in binaryData"))
        for key in binary:
            if wrong := config_key(key):
                causes.append(invalid(f"binaryData[{key}]", key, wrong))
        size = sum(len(text.encode()) for text in data.values()) + sum(decoded_size(text) for text in binary.values())
        if size > SIZE_LIMIT:
            causes.append(too_long("[]", SIZE_LIMIT))
        return causes


class LimitRange(Plain):
    def default(self, obj: Json) -> None:
        for limit in (obj.get("spec") or {}).get("limits") or ():
            if limit.get("type") != "Container":
                continue
            limits = {**(limit.get("max") or {}), **(limit.get("default") or {})}
            requests = {**(limit.get("min") or {}), **limits, **(limit.get("defaultRequest") or {})}
            for field, found in (("default", limits), ("defaultRequest", requests)):
                if found:
                    limit[field] = found

    def validate(self, obj: Json, old: Json | None) -> list[Cause]:
        causes: list[Cause] = []
        seen: set[str] = set()
        for i, limit in enumerate((obj.get("spec") or {}).get("limits") or ()):
            field, kind = f"spec.limits[{i}]", limit.get("type", "")
            if not kind:
                causes.append(required(f"{field}.type"))
            if kind in seen:
                causes.append(duplicate(f"{field}.type", kind))
            seen.add(kind)
            causes += _limit(field, limit)
        return causes


# Which of two bounds has to be the smaller one, what the message is about, and how it names both.
_ORDERS = (
    ("min", "max", "min", "min", "max"),
    ("min", "defaultRequest", "defaultRequest", "min", "default request"),
    ("defaultRequest", "max", "defaultRequest", "default request", "max"),
    ("defaultRequest", "default", "defaultRequest", "default request", "default limit"),
    ("min", "default", "default", "min", "default"),
    ("default", "max", "default", "default", "max"),
)


def _limit(field: str, limit: Json) -> Iterator[Cause]:
    if limit.get("type") == "Pod":
        for name in ("default", "defaultRequest"):
            if limit.get(name):
                yield forbidden(f"{field}.{name}", "may not be specified when `type` is 'Pod'")
    keys = sorted({key for name in ("min", "max", "default", "defaultRequest") for key in limit.get(name) or ()})
    for key in keys:
        yield from named(f"{field}.max[{key}]", key, label_key)
        for low, high, about, low_name, high_name in _ORDERS:
            small, large = (limit.get(low) or {}).get(key), (limit.get(high) or {}).get(key)
            if small is not None and large is not None and parse_quantity(large) < parse_quantity(small):
                value = {low: small, high: large}[about]
                detail = f"{low_name} value {small} is greater than {high_name} value {large}"
                yield invalid(f"{field}.{about}[{key}]", value, detail)
