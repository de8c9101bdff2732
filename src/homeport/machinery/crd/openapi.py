"""Keywords of a schema: which are known, which go together, what list and map types need."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from homeport.machinery.reading import reads
from homeport.machinery.schema import violation as v
from homeport.machinery.schema.violation import Violation

Raw = Mapping[str, Any]

_TYPES: Final = ("array", "boolean", "integer", "number", "object", "string")
_UNSUPPORTED: Final = ("id", "additionalItems", "patternProperties", "definitions", "dependencies", "$ref")
_META: Final = frozenset(("metadata", "kind", "apiVersion"))
_REASONS: Final = ("FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired")


@dataclass(frozen=True, slots=True)
class Place:
    """Where in the schema a node stands."""

    path: str
    root: bool = False
    inside_meta: bool = False
    no_default: str | None = None  # why defaults are forbidden here

    def below(self, step: str) -> Place:
        return replace(self, path=f"{self.path}.{step}", root=False)


def openapi_violations(schema: Raw, path: str) -> list[Violation]:
    return list(_walk(schema, Place(path, root=True)))


def _walk(s: Raw, place: Place) -> Iterator[Violation]:
    yield from _keywords(s, place)
    yield from _children(s, place)
    if s.get("x-kubernetes-preserve-unknown-fields") is False:
        yield v.invalid(f"{place.path}.x-kubernetes-preserve-unknown-fields", False, "must be true or undefined")
    yield from _map_type(s, place.path)
    yield from _list_type(s, place.path)
    yield from _keyed_list(s, place.path)
    yield from _rules(s, place.path)


def _keywords(s: Raw, place: Place) -> Iterator[Violation]:
    type_ = s.get("type")
    if type_ and type_ not in _TYPES:
        yield v.not_supported(f"{place.path}.type", type_, _TYPES)
    if s.get("default") is not None and place.no_default is not None:
        yield v.forbidden(f"{place.path}.default", f"must not be set {place.no_default}".rstrip())
    for key in _UNSUPPORTED:
        if s.get(key) not in (None, "", {}):
            yield v.forbidden(f"{place.path}.{key}", f"{key} is not supported")
    if type_ == "null":
        yield v.forbidden(f"{place.path}.type", "type cannot be set to null, use nullable as an alternative")
    if isinstance(s.get("items"), list):
        yield v.forbidden(f"{place.path}.items", "items must be a schema object and not an array")
    if place.inside_meta and s.get("x-kubernetes-embedded-resource"):
        yield v.forbidden(f"{place.path}.x-kubernetes-embedded-resource", "must not be used inside of resource meta")
    if s.get("uniqueItems"):
        yield v.forbidden(
            f"{place.path}.uniqueItems",
            "uniqueItems cannot be set to true since the runtime complexity becomes quadratic",
        )


def _children(s: Raw, place: Place) -> Iterator[Violation]:
    rest, properties = s.get("additionalProperties"), s.get("properties") or {}
    if rest is not None:
        if properties and rest is not True:
            yield v.forbidden(
                f"{place.path}.additionalProperties", "additionalProperties and properties are mutual exclusive"
            )
        if isinstance(rest, Mapping):
            below = place.below("additionalProperties")
            if place.inside_meta:
                below = replace(below, no_default="inside additionalProperties applying to object metadata")
            yield from _walk(rest, below)
    for name, child in properties.items():
        below = place.below(f"properties[{name}]")
        if name in _META and (place.root or s.get("x-kubernetes-embedded-resource")):
            below = replace(below, inside_meta=True)
            if place.root:
                below = replace(below, no_default=f"in top-level {name}")
        yield from _walk(child, below)
    for junctor in ("allOf", "oneOf", "anyOf"):
        for index, each in enumerate(s.get(junctor) or ()):
            yield from _walk(each, place.below(f"{junctor}[{index}]"))
    for single in ("not", "items"):
        if isinstance(s.get(single), Mapping):
            yield from _walk(s[single], place.below(single))


def _needs_type(s: Raw, path: str, keyword: str, wanted: str) -> Iterator[Violation]:
    type_ = s.get("type") or ""
    if s.get(keyword) is not None and type_ != wanted:
        detail = f"must be {wanted} if {keyword} is specified"
        yield v.invalid(f"{path}.type", type_, detail) if type_ else v.required(f"{path}.type", detail)


def _map_type(s: Raw, path: str) -> Iterator[Violation]:
    yield from _needs_type(s, path, "x-kubernetes-map-type", "object")
    map_type = s.get("x-kubernetes-map-type")
    if map_type is not None and map_type not in ("atomic", "granular"):
        yield v.not_supported(f"{path}.x-kubernetes-map-type", map_type, ("atomic", "granular"))


def _list_type(s: Raw, path: str) -> Iterator[Violation]:
    yield from _needs_type(s, path, "x-kubernetes-list-type", "array")
    list_type, keys = s.get("x-kubernetes-list-type"), s.get("x-kubernetes-list-map-keys")
    items = s.get("items") if isinstance(s.get("items"), Mapping) else None
    if list_type == "set" and s.get("type") == "array" and items is not None:
        detail = "must be atomic as item of a list with x-kubernetes-list-type=set"
        if items.get("type") == "array" and items.get("x-kubernetes-list-type", "atomic") != "atomic":
            yield v.invalid(f"{path}.items.x-kubernetes-list-type", items["x-kubernetes-list-type"], detail)
        elif items.get("type") == "object" and items.get("x-kubernetes-map-type") != "atomic":
            yield v.invalid(f"{path}.items.x-kubernetes-map-type", items.get("x-kubernetes-list-type"), detail)
    if list_type is not None and list_type not in ("atomic", "set", "map"):
        yield v.not_supported(f"{path}.x-kubernetes-list-type", list_type, ("atomic", "set", "map"))
    if keys and list_type != "map":
        detail = "must be map if x-kubernetes-list-map-keys is non-empty"
        place = f"{path}.x-kubernetes-list-type"
        yield v.required(place, detail) if list_type is None else v.invalid(place, list_type, detail)
    if list_type in ("set", "map") and items is not None and items.get("nullable"):
        yield v.forbidden(f"{path}.items.nullable", f"cannot be nullable when x-kubernetes-list-type is {list_type}")


def _keyed_list(s: Raw, path: str) -> Iterator[Violation]:
    if s.get("x-kubernetes-list-type") != "map":
        return
    keys, items = s.get("x-kubernetes-list-map-keys") or [], s.get("items")
    if not keys:
        detail = "must not be empty if x-kubernetes-list-type is map"
        yield v.required(f"{path}.x-kubernetes-list-map-keys", detail)
    if items is None:
        yield v.required(f"{path}.items", "must have a schema if x-kubernetes-list-type is map")
    if not isinstance(items, Mapping):
        return
    if items.get("type") != "object":
        detail = "must be object if parent array's x-kubernetes-list-type is map"
        yield v.invalid(f"{path}.items.type", items.get("type") or "", detail)
        return
    yield from _list_keys(keys, items, path)


def _list_keys(keys: list[str], items: Raw, path: str) -> Iterator[Violation]:
    properties, required = items.get("properties") or {}, items.get("required") or ()
    for index, key in enumerate(keys):
        child, place = properties.get(key), f"{path}.items.properties[{key}]"
        if child is None:
            yield v.invalid(f"{path}.x-kubernetes-list-map-keys", keys, "entries must all be names of item properties")
        elif child.get("type") in ("array", "object"):
            detail = "must be a scalar type if parent array's x-kubernetes-list-type is map"
            yield v.invalid(f"{place}.type", items["type"], detail)
        if key in keys[:index]:
            yield v.invalid(f"{path}.x-kubernetes-list-map-keys", keys, "must not contain duplicate entries")
        if child is not None:
            because = "this property is in x-kubernetes-list-map-keys, so it"
            if key not in required and child.get("default") is None:
                yield v.required(f"{place}.default", f"{because} must have a default or be a required property")
            if child.get("nullable"):
                yield v.forbidden(f"{place}.nullable", f"{because} cannot be nullable")


def _rules(s: Raw, path: str) -> Iterator[Violation]:
    """The shape of CEL rules; their expressions are compiled elsewhere."""
    for index, rule in enumerate(s.get("x-kubernetes-validations") or ()):
        place = f"{path}.x-kubernetes-validations[{index}]"
        text, message = rule.get("rule") or "", rule.get("message") or ""
        if not text.strip():
            yield v.required(f"{place}.rule", "rule is not specified")
        elif message and not message.strip():
            yield v.invalid(f"{place}.message", message, "must be non-empty if specified")
        elif _breaks(message.strip()):
            yield v.invalid(f"{place}.message", message, "must not contain line breaks")
        elif _breaks(text.strip()) and not message.strip():
            yield v.required(f"{place}.message", "message must be specified if rule contains line breaks")
        expression = rule.get("messageExpression") or ""
        if expression and not expression.strip():
            yield v.required(f"{place}.messageExpression", "messageExpression must be non-empty if specified")
        if rule.get("reason") is not None and rule["reason"] not in _REASONS:
            yield v.not_supported(f"{place}.reason", rule["reason"], _REASONS)
        field_path = rule.get("fieldPath") or ""
        if field_path and not field_path.strip():
            yield v.invalid(f"{place}.fieldPath", field_path, "must be non-empty if specified")
        if _breaks(field_path):
            yield v.invalid(f"{place}.fieldPath", field_path, "must not contain line breaks")
        if field_path and not _leads_somewhere(field_path, s):
            yield v.invalid(f"{place}.fieldPath", field_path, "must be a valid path")


def _leads_somewhere(field_path: str, s: Raw) -> bool:
    from homeport.machinery.cel.fieldpath import BadPath, resolve

    return reads(lambda given: resolve(given, s), field_path, BadPath)


def _breaks(text: str) -> bool:
    return "\n" in text or "\r" in text
