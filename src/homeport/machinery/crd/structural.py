"""When a schema is structural: every field has one type, said in one place, and conditions only restrict it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from homeport.machinery.schema import violation as v
from homeport.machinery.schema.pattern import PatternError, search
from homeport.machinery.schema.violation import Violation

Raw = Mapping[str, Any]

_INT_OR_STRING: Final = [{"type": "integer"}, {"type": "string"}]
_ROOT, _ITEM, _FIELD = "at the root", "for specified array items", "for specified object fields"

# What may not stand under allOf, anyOf, oneOf and not, and how the server puts it.
_NOT_NESTED: Final = {
    "type": "must be empty to be structural",
    "additionalProperties": "must be undefined to be structural",
    "default": "must be undefined to be structural",
    "title": "must be empty to be structural",
    "description": "must be empty to be structural",
    "nullable": "must be false to be structural",
    "x-kubernetes-preserve-unknown-fields": "must be false to be structural",
    "x-kubernetes-embedded-resource": "must be false to be structural",
    "x-kubernetes-int-or-string": "must be false to be structural",
    "x-kubernetes-list-map-keys": "must be empty to be structural",
    "x-kubernetes-list-type": "must be undefined to be structural",
    "x-kubernetes-map-type": "must be undefined to be structural",
    "x-kubernetes-validations": "must be empty to be structural",
}


def structural_violations(schema: Raw, path: str) -> list[Violation]:
    """Why the schema is not structural; nothing if it is."""
    found = [*_invariants(schema, _ROOT, path), *_completeness(schema, schema, path, path)]
    return sorted(found, key=lambda each: f"{each.field}: {each.message}")


def _invariants(s: Raw, level: str, path: str) -> Iterator[Violation]:
    if s.get("type") == "array" and s.get("items") is None:
        yield v.required(f"{path}.items", "must be specified")
    if isinstance(s.get("items"), Mapping):
        yield from _invariants(s["items"], _ITEM, f"{path}.items")
    for name, child in (s.get("properties") or {}).items():
        yield from _invariants(child, _FIELD, f"{path}.properties[{name}]")
    rest = s.get("additionalProperties")
    if rest is not None:
        if level == _ROOT:
            yield v.forbidden(f"{path}.additionalProperties", "must not be used at the root")
        if isinstance(rest, Mapping):
            yield from _invariants(rest, _FIELD, f"{path}.additionalProperties")
    yield from _extensions(s, path)
    yield from _conditions(s, path, any_of_is_type=_is_int_or_string(s), first_all_of_is_type=_starts_int_or_string(s))
    yield from _type(s, level, path)
    yield from _metadata(s, level, path)


def _extensions(s: Raw, path: str) -> Iterator[Violation]:
    if s.get("x-kubernetes-int-or-string"):
        for other in ("x-kubernetes-preserve-unknown-fields", "x-kubernetes-embedded-resource"):
            if s.get(other):
                yield v.invalid(f"{path}.{other}", True, "must be false if x-kubernetes-int-or-string is true")


def _type(s: Raw, level: str, path: str) -> Iterator[Violation]:
    type_, embedded = s.get("type") or "", s.get("x-kubernetes-embedded-resource")
    if embedded and type_ != "object":
        detail = "must be object if x-kubernetes-embedded-resource is true"
        yield v.invalid(f"{path}.type", type_, detail) if type_ else v.required(f"{path}.type", detail)
    elif not type_ and not s.get("x-kubernetes-int-or-string") and not s.get("x-kubernetes-preserve-unknown-fields"):
        yield v.required(f"{path}.type", f"must not be empty {level}")
    if embedded and s.get("additionalProperties") is not None:
        yield v.forbidden(f"{path}.additionalProperties", "must not be used if x-kubernetes-embedded-resource is set")
    if embedded and not s.get("x-kubernetes-preserve-unknown-fields") and not s.get("properties"):
        yield v.required(
            f"{path}.properties",
            "must not be empty if x-kubernetes-embedded-resource is true without x-kubernetes-preserve-unknown-fields",
        )
    if level == _ROOT and type_ not in ("", "object"):
        yield v.invalid(f"{path}.type", type_, "must be object at the root")


def _metadata(s: Raw, level: str, path: str) -> Iterator[Violation]:
    properties = s.get("properties") or {}
    is_object = level == _ROOT or bool(s.get("x-kubernetes-embedded-resource"))
    if is_object:
        for name in ("kind", "apiVersion"):
            if name in properties and properties[name].get("type") != "string":
                type_ = properties[name].get("type") or ""
                yield v.invalid(f"{path}.properties[{name}].type", type_, "must be string")
    if "metadata" not in properties:
        return
    metadata, place = properties["metadata"], f"{path}.properties[metadata]"
    if is_object and metadata.get("type") != "object":
        yield v.invalid(f"{place}.type", metadata.get("type") or "", "must be object")
    if level == _ROOT and not _restricts_names_only(metadata):
        yield v.forbidden(
            place, "must not specify anything other than name and generateName, but metadata is implicitly specified"
        )


def _restricts_names_only(metadata: Raw) -> bool:
    said = {key for key, value in metadata.items() if value not in (None, False, "", [], {})}
    if not said <= {"type", "default", "properties"}:
        return False
    return set(metadata.get("properties") or ()) <= {"name", "generateName"}


def _is_int_or_string(s: Raw) -> bool:
    return bool(s.get("anyOf") == _INT_OR_STRING)


def _starts_int_or_string(s: Raw) -> bool:
    all_of = s.get("allOf")
    return bool(all_of) and _is_int_or_string(all_of[0])  # type: ignore[index]


def _conditions(
    s: Raw, path: str, *, any_of_is_type: bool = False, first_all_of_is_type: bool = False
) -> Iterator[Violation]:
    if not any_of_is_type:
        for index, each in enumerate(s.get("anyOf") or ()):
            yield from _nested(each, f"{path}.anyOf[{index}]")
    for index, each in enumerate(s.get("allOf") or ()):
        skip = first_all_of_is_type and index == 0
        yield from _nested(each, f"{path}.allOf[{index}]", any_of_is_type=skip)
    for index, each in enumerate(s.get("oneOf") or ()):
        yield from _nested(each, f"{path}.oneOf[{index}]")
    if isinstance(s.get("not"), Mapping):
        yield from _nested(s["not"], f"{path}.not")
    if s.get("pattern"):
        try:
            search(s["pattern"])
        except PatternError as error:
            detail = f"must be a valid regular expression, but isn't: {error}"
            yield v.invalid(f"{path}.pattern", s["pattern"], detail)


def _nested(s: Raw, path: str, *, any_of_is_type: bool = False) -> Iterator[Violation]:
    yield from _conditions(s, path, any_of_is_type=any_of_is_type)
    if isinstance(s.get("items"), Mapping):
        yield from _nested(s["items"], f"{path}.items")
    properties = s.get("properties") or {}
    for name, child in properties.items():
        yield from _nested(child, f"{path}.properties[{name}]")
    for key, why in _NOT_NESTED.items():
        if s.get(key) not in (None, False, "", []):
            yield v.forbidden(f"{path}.{key}", why)
    if "metadata" in properties:
        yield v.forbidden(f"{path}.properties[metadata]", "must not be specified in a nested context")


def _completeness(condition: Raw, s: Raw | None, s_path: str, c_path: str) -> Iterator[Violation]:
    """Everything that a condition speaks of is declared outside of it."""
    for junctor in ("allOf", "anyOf", "oneOf"):
        for index, each in enumerate(condition.get(junctor) or ()):
            yield from _nested_completeness(each, s, s_path, f"{c_path}.{junctor}[{index}]")
    if isinstance(condition.get("not"), Mapping):
        yield from _nested_completeness(condition["not"], s, s_path, f"{c_path}.not")


def _nested_completeness(condition: Raw, s: Raw | None, s_path: str, c_path: str) -> Iterator[Violation]:
    if s is None:
        yield v.required(s_path, f"because it is defined in {c_path}")
        return
    yield from _completeness(condition, s, s_path, c_path)
    if isinstance(condition.get("items"), Mapping):
        items = s.get("items") if isinstance(s.get("items"), Mapping) else None
        yield from _nested_completeness(condition["items"], items, f"{s_path}.items", f"{c_path}.items")
    declared = s.get("properties") or {}
    for name, child in (condition.get("properties") or {}).items():
        yield from _nested_completeness(
            child, declared.get(name), f"{s_path}.properties[{name}]", f"{c_path}.properties[{name}]"
        )
