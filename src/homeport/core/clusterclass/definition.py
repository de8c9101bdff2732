"""What the variables of a class may look like: names, and schemas that values can be checked by. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

import msgspec

from homeport.api.cluster.v1beta2.variable import JSONSchemaProps
from homeport.client.errors import Cause
from homeport.machinery.cel import compile_rules
from homeport.machinery.crd.openapi import openapi_violations
from homeport.machinery.crd.structural import structural_violations
from homeport.machinery.crd.value import default_violations
from homeport.machinery.schema import violation as v
from homeport.machinery.schema.explain import Explainer
from homeport.machinery.schema.name import label_key, label_value
from homeport.machinery.schema.node import Schema
from homeport.machinery.schema.pattern import PatternError, search
from homeport.machinery.schema.violation import Violation

Raw = Mapping[str, Any]

BUILTIN: Final = "builtin"
_HOLDER: Final = "variable"
# Go's types say false where a schema has to say nothing.
_FLAGS: Final = (
    "uniqueItems",
    "exclusiveMaximum",
    "exclusiveMinimum",
    "x-kubernetes-preserve-unknown-fields",
    "x-kubernetes-int-or-string",
)
_SINGLE, _MANY = ("items", "not", "additionalProperties"), ("allOf", "anyOf", "oneOf")


def definition_causes(variables: list[Raw]) -> Iterator[Cause]:
    """What is wrong with `spec.variables`."""
    seen: set[str] = set()
    for i, each in enumerate(variables):
        name = str(each.get("name") or "")
        path = f"spec.variables[{i}]"
        yield from _name(name, seen, f"{path}.name")
        seen.add(name)
        yield from _metadata(each.get("deprecatedV1Beta1Metadata") or {}, f"{path}.deprecatedV1Beta1Metadata")
        schema = (each.get("schema") or {}).get("openAPIV3Schema")
        if isinstance(schema, Mapping):
            yield from schema_causes(schema, f"{path}.schema.openAPIV3Schema")


def _name(name: str, seen: set[str], path: str) -> Iterator[Cause]:
    if not name:
        yield Cause(v.REQUIRED, "Required value: Clusters set it by its name", path)
    if name in seen:
        yield Cause(v.DUPLICATE, f'Duplicate value: "{name}": there is another variable with this name', path)
    if name == BUILTIN:
        yield _invalid(path, name, "this name is reserved for builtin variables: choose another name")
    if "." in name:
        yield _invalid(path, name, "must not contain a dot: a dot selects a field of a variable")


def schema_causes(schema: Raw, path: str) -> Iterator[Cause]:
    """A schema that passes can be used for values; what does not is reported with its place."""
    try:
        plain = _plain(schema)
    except _NoSchema as error:
        yield Cause(v.TYPE_INVALID, f"Invalid value: {error.why}", f"{path}{error.path}")
        return
    found = [*_violations(plain, path), *_words(plain, path)]
    if not found:
        found += _rules(plain, path)
    for each in found:
        yield Cause(each.reason, each.message, each.field)
    yield from _marks(schema, path)


def _violations(schema: Raw, path: str) -> list[Violation]:
    held, place = _held(schema), f"{path}.properties[{_HOLDER}]"
    wrong = structural_violations(held, path)
    if not wrong:
        wrong = default_violations(held, path)
    # Lists of distinct items are small here, and those who set them are trusted.
    wrong += [each for each in openapi_violations(held, path) if not each.field.endswith(".uniqueItems")]
    return [each._replace(field=each.field.replace(place, path, 1)) for each in wrong]


def _rules(schema: Raw, path: str) -> list[Violation]:
    _, problems = compile_rules(_held(schema), path=path)
    place = f"{path}.properties[{_HOLDER}]"
    return [Violation(v.INVALID, f"Invalid value: {p.message}", p.path.replace(place, path, 1)) for p in problems]


def _words(schema: Raw, path: str) -> Iterator[Violation]:
    """Patterns that compile, examples and choices that are values."""
    if schema.get("pattern"):
        try:
            search(str(schema["pattern"]))
        except PatternError as error:
            yield v.invalid(f"{path}.pattern", schema["pattern"], str(error))
            return
    values = [("example", schema.get("example"))]
    values += [(f"enum[{i}]", each) for i, each in enumerate(schema.get("enum") or ())]
    for field, value in values:
        if value is not None:
            yield from Explainer(Schema(schema), within=f"{path}.{field}").explain(value)
    for step, child in _children(schema):
        yield from _words(child, f"{path}.{step}")


def _marks(schema: Raw, path: str) -> Iterator[Cause]:
    """Labels and annotations on a schema, for those who show it."""
    yield from _metadata(schema.get("x-metadata") or {}, f"{path}.x-metadata")
    for step, child in _children(schema):
        yield from _marks(child, f"{path}.{step}")


def _metadata(metadata: Raw, path: str) -> Iterator[Cause]:
    for key, value in (metadata.get("labels") or {}).items():
        for wrong in (*label_key(key), *label_value(value)):
            yield _invalid(f"{path}.labels", key, wrong)
    for key in metadata.get("annotations") or {}:
        for wrong in label_key(key.lower()):
            yield _invalid(f"{path}.annotations", key, wrong)


def _held(schema: Raw) -> dict[str, Any]:
    """Schemas of whole objects are objects at their root; a variable may be anything."""
    return {"type": "object", "properties": {_HOLDER: schema}}


def _children(schema: Raw) -> Iterator[tuple[str, Raw]]:
    for name, child in (schema.get("properties") or {}).items():
        yield f"properties[{name}]", child
    for field in _SINGLE:
        if isinstance(schema.get(field), Mapping):
            yield field, schema[field]
    for field in _MANY:
        for i, child in enumerate(schema.get(field) or ()):
            yield f"{field}[{i}]", child


class _NoSchema(Exception):
    """Something stands where a schema should, or another kind of value where a keyword has its own."""

    def __init__(self, path: str, why: str = "must be a schema: an object with a type") -> None:
        super().__init__(f"{path}: {why}")
        self.path = path
        self.why = why


def _plain(schema: Any, path: str = "") -> dict[str, Any]:
    """The schema without what says nothing; raises where there is none. Below the first level nobody else looks."""
    if not isinstance(schema, Mapping):
        raise _NoSchema(path)
    try:
        msgspec.convert(schema, JSONSchemaProps)
    except msgspec.ValidationError as error:
        why, _, where = str(error).partition(" - at `$")
        raise _NoSchema(f"{path}{where.removesuffix('`')}", why[:1].lower() + why[1:]) from None
    plain = {key: value for key, value in schema.items() if not (key in _FLAGS and value is False)}
    properties = plain.get("properties")
    if properties is not None:
        if not isinstance(properties, Mapping):
            raise _NoSchema(f"{path}.properties")
        plain["properties"] = {k: _plain(child, f"{path}.properties[{k}]") for k, child in properties.items()}
    for field in _SINGLE:
        if plain.get(field) is not None and plain[field] is not True:
            plain[field] = _plain(plain[field], f"{path}.{field}")
    for field in _MANY:
        if plain.get(field):
            if not isinstance(plain[field], list):
                raise _NoSchema(f"{path}.{field}", "must be a list of schemas")
            plain[field] = [_plain(child, f"{path}.{field}[{i}]") for i, child in enumerate(plain[field])]
    return plain


def _invalid(path: str, value: str, why: str) -> Cause:
    return Cause(v.INVALID, f'Invalid value: "{value}": {why}', path)
