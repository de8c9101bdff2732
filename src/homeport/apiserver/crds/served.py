"""From a definition to a kind that can be served. Nothing is compiled here: each part is when it is first used."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from homeport.api.meta import Resource
from homeport.apiserver.crds.strategy import CustomStrategy
from homeport.apiserver.resource import Column, Json, Scale, ServedKind, Version
from homeport.machinery.jsonpath import compile_path, render
from homeport.machinery.schema import Schema, Violation, compile_checker
from homeport.machinery.schema import violation as v

_INT32_MAX: Final = 2**31 - 1
_ANYTHING: Final = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
_VERBS: Final = ("delete", "deletecollection", "get", "list", "patch", "create", "update", "watch")

Convert = Callable[[Json, str], Json]


def build_served(crd: Json, convert: Convert | None = None, *, names: Mapping[str, Any] | None = None) -> ServedKind:
    """The kind of a definition. `names` are the accepted ones, if they are not those that the definition asks for."""
    spec = crd["spec"]
    names = names or spec["names"]
    meta, group = crd["metadata"], spec["group"]
    versions = {each["name"]: _version(each, spec, names) for each in spec["versions"]}
    with_status = frozenset(version.resource.api_version for version in versions.values() if version.status)
    terminating = bool(meta.get("deletionTimestamp"))
    return ServedKind(
        group=group,
        kind=names["kind"],
        plural=names["plural"],
        singular=names.get("singular") or names["kind"].lower(),
        namespaced=spec["scope"] == "Namespaced",
        storage=next(each["name"] for each in spec["versions"] if each.get("storage")),
        versions=versions,
        strategy=CustomStrategy(with_status, (group, names["plural"]) if terminating else None),
        list_kind=names.get("listKind") or f"{names['kind']}List",
        short_names=tuple(names.get("shortNames") or ()),
        categories=tuple(names.get("categories") or ()),
        custom=True,
        verbs=_VERBS,
        convert=convert,
        etag=f"{meta.get('uid', '')}/{meta.get('generation', 0)}{'/terminating' if terminating else ''}",
    )


def _version(raw: Json, spec: Json, names: Mapping[str, Any]) -> Version:
    schema = (raw.get("schema") or {}).get("openAPIV3Schema") or _ANYTHING
    if spec.get("preserveUnknownFields"):
        schema = {**schema, "x-kubernetes-preserve-unknown-fields": True}
    subresources = raw.get("subresources") or {}
    scale = _scale(subresources.get("scale"))
    resource = Resource(spec["group"], raw["name"], names["kind"], names["plural"], spec["scope"] == "Namespaced")
    return Version(
        resource=resource,
        schema=Schema(schema),
        checker=compile_checker(
            schema,
            rules=lambda: _rules(schema),
            also=None if scale is None else lambda obj: _scale_violations(obj, scale),
        ),
        served=bool(raw.get("served")),
        status="status" in subresources,
        scale=scale,
        columns=tuple(_column(each) for each in raw.get("additionalPrinterColumns") or ()),
        selectable=tuple(each["jsonPath"] for each in raw.get("selectableFields") or ()),
        deprecation=_deprecation(raw, resource),
        raw_schema=schema,
    )


def _rules(schema: Mapping[str, Any]) -> Any:
    from homeport.machinery.cel import compile_rules

    rules, _ = compile_rules(schema)
    return rules


def _deprecation(raw: Json, resource: Resource) -> str:
    if not raw.get("deprecated"):
        return ""
    return raw.get("deprecationWarning") or f"{resource.api_version} {resource.kind} is deprecated"


def _scale(raw: Json | None) -> Scale | None:
    if raw is None:
        return None
    return Scale(raw["specReplicasPath"], raw["statusReplicasPath"], raw.get("labelSelectorPath") or "")


def _column(raw: Json) -> Column:
    path, type_ = raw["jsonPath"], raw["type"]
    found: Callable[[Any], list[Any]] | None = None

    def read(obj: Json) -> Any:
        nonlocal found
        if found is None:
            found = _finder(path)
        values = found(obj)
        if not values or values[0] is None:
            return None
        return render(values[0]) if type_ == "string" else values[0]

    return Column(
        name=raw["name"],
        type=type_,
        format=raw.get("format") or "",
        priority=raw.get("priority") or 0,
        description=raw.get("description") or f"Custom resource definition column (in JSONPath format): {path}",
        read=read,
    )


def _finder(path: str) -> Callable[[Any], list[Any]]:
    """A path that can't be read makes an empty column, not a broken list."""
    try:
        return compile_path(path)
    except ValueError:
        return lambda obj: []


# -- the rules of scalable objects


def _scale_violations(obj: Json, scale: Scale) -> Iterator[Violation]:
    for path in (scale.spec_replicas, scale.status_replicas):
        value, wrong = _nested(obj, path, int)
        if wrong:
            yield v.invalid(path, 0, wrong)
        elif value is not None and value < 0:
            yield v.invalid(path, value, "should be a non-negative integer")
        elif value is not None and value > _INT32_MAX:
            yield v.invalid(path, value, f"should be less than or equal to {_INT32_MAX}")
    if scale.selector:
        _, wrong = _nested(obj, scale.selector, str)
        if wrong:
            yield v.invalid(scale.selector, "", wrong)


def _nested(obj: Any, path: str, wanted: type) -> tuple[Any, str]:
    names = path.removeprefix(".").split(".")
    walked: list[str] = []
    for name in names:
        if obj is None and walked:
            return None, ""
        if not isinstance(obj, dict):
            return None, _accessor_error(names, obj, "map[string]interface{}")
        walked.append(name)
        if name not in obj:
            return None, ""
        obj = obj[name]
    if not isinstance(obj, wanted) or isinstance(obj, bool):
        return None, _accessor_error(names, obj, "int64" if wanted is int else "string")
    return obj, ""


def _accessor_error(names: list[str], value: Any, expected: str) -> str:
    whole = isinstance(value, float) and value.is_integer() and abs(value) < 1e21  # which Go shows without a point
    shown = value if isinstance(value, str) else v.encode(int(value) if whole else value)
    go_types = {
        str: "string",
        bool: "bool",
        int: "int64",
        float: "float64",
        list: "[]interface {}",
        type(None): "<nil>",
    }
    found = go_types.get(type(value), "map[string]interface {}")
    return f".{'.'.join(names)} accessor error: {shown} is of the type {found}, expected {expected}"
