"""Variables of a ClusterClass: what a Cluster sets, what the class fills in, and what is wrong with it. Pure.

Definitions come from `spec.variables`: they count from the moment the class is written, so nobody has to wait for a
controller to copy them to the status. Where values are lists they are those of `spec.topology`: `{name, value}`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

import orjson

from homeport.api.cluster.v1beta2 import ClusterClass, ClusterVariable
from homeport.api.meta import wire
from homeport.client.errors import Cause
from homeport.machinery.cel import Rules
from homeport.machinery.schema import violation as v
from homeport.machinery.schema.checker import SchemaChecker, compile_checker

Json = dict[str, Any]
Value = Mapping[str, Any] | ClusterVariable
Fault = tuple[str, str]  # path and message

_HOLDER: Final = "value"  # schemas are made for objects: a value of any type is held in one


@dataclass(frozen=True, slots=True)
class Definition:
    """One variable of a class."""

    name: str
    required: bool
    schema: Mapping[str, Any]

    @property
    def has_default(self) -> bool:
        return self.schema.get("default") is not None

    def defaulted(self, value: object) -> Any:
        """The value with what its schema fills in; None, where nothing is set, becomes the default of the whole."""
        held = {_HOLDER: orjson.loads(orjson.dumps(value))}
        _compiled(_text(self.schema)).checker.default(held)
        return held.get(_HOLDER)

    def violations(self, value: object, old: object = None) -> Iterator[v.Violation]:
        """Fields are below `value`. `old` is what rules about changes compare with."""
        compiled = _compiled(_text(self.schema))
        held = {_HOLDER: orjson.loads(orjson.dumps(value))}
        found = compiled.checker.validate(held)
        if found:
            yield from found
            return
        for unknown in compiled.checker.prune(orjson.loads(orjson.dumps(held))):
            yield v.forbidden(unknown, "the class does not define this field of the variable")
        if compiled.rules is not None:
            yield from _broken(compiled.rules, held, None if old is None else {_HOLDER: old})


def _broken(rules: Rules, held: Json, old: Json | None) -> Iterator[v.Violation]:
    # Once without the old value, for a rule counts though the value is as it was; then what compares with it.
    found = rules.validate(held)
    if old is not None:
        found += [each for each in rules.validate(held, old) if each not in found]
    for each in found:
        yield v.broken_rule(each.path, each.message, each.reason, each.value)


@dataclass(frozen=True, slots=True)
class _Compiled:
    checker: SchemaChecker
    rules: Rules | None


@lru_cache(maxsize=512)
def _compiled(text: bytes) -> _Compiled:
    schema = {"type": "object", "properties": {_HOLDER: orjson.loads(text)}}
    rules = Rules(schema)
    return _Compiled(compile_checker(schema), rules if rules or rules.problems else None)


def _text(schema: Mapping[str, Any]) -> bytes:
    return orjson.dumps(schema, option=orjson.OPT_SORT_KEYS)


def definitions(cluster_class: ClusterClass | Mapping[str, Any]) -> dict[str, Definition]:
    """The variables of a class by name, in alphabetical order: defaults are added in this order."""
    raw = cluster_class if isinstance(cluster_class, Mapping) else wire(cluster_class)
    found = {}
    for each in sorted((raw.get("spec") or {}).get("variables") or (), key=lambda each: str(each["name"])):
        schema = (each.get("schema") or {}).get("openAPIV3Schema") or {}
        found[each["name"]] = Definition(each["name"], bool(each.get("required")), schema)
    return found


def defaulted(
    values: Iterable[Value], definitions: Mapping[str, Definition], *, overrides: bool = False
) -> list[dict[str, Any]]:
    """Values with defaults; those that are not set come last. Nothing is added to `overrides`, which say what differs.

    The same values in the same order when called again. What the class does not define stays for `invalid` to tell.
    """
    entries = [_entry(each) for each in values]
    found = [
        {"name": name, "value": definitions[name].defaulted(value) if name in definitions else value}
        for name, value in entries
    ]
    if not overrides:
        known = {name for name, _ in entries}
        found += [
            {"name": name, "value": each.defaulted(None)}
            for name, each in definitions.items()
            if name not in known and each.has_default
        ]
    return found


def invalid(
    values: Iterable[Value],
    definitions: Mapping[str, Definition],
    *,
    old: Iterable[Value] | None = None,
    path: str,
    overrides: bool = False,
) -> list[Fault]:
    """What is wrong with values, as path and message."""
    return [(c.field, c.message) for c in causes(values, definitions, old=old, path=path, overrides=overrides)]


def causes(
    values: Iterable[Value],
    definitions: Mapping[str, Definition],
    *,
    old: Iterable[Value] | None = None,
    path: str,
    overrides: bool = False,
) -> list[Cause]:
    """As `invalid`, as causes of an admission response."""
    entries = [_entry(each) for each in values]
    before = dict(_entry(each) for each in old or ())
    found = [] if overrides else list(_missing({name for name, _ in entries}, definitions, path))
    seen: set[str] = set()
    for name, value in entries:
        place = f"{path}[{name}]"
        if name in seen:
            found.append(Cause(v.DUPLICATE, f'Duplicate value: "{name}": set it once', place))
        elif name not in definitions:
            found.append(Cause(v.INVALID, f'Invalid value: "{name}": {_unknown(definitions)}', place))
        else:
            wrong = definitions[name].violations(value, before.get(name))
            found += [Cause(each.reason, each.message, _below(place, each.field)) for each in wrong]
        seen.add(name)
    return found


def _missing(names: set[str], definitions: Mapping[str, Definition], path: str) -> Iterator[Cause]:
    for name, definition in definitions.items():
        if definition.required and name not in names:
            yield Cause(v.REQUIRED, f'Required value: the class has no default for variable "{name}": set it', path)


def _unknown(definitions: Mapping[str, Definition]) -> str:
    known = ", ".join(definitions)
    return (
        f"the class does not define this variable: expected one of {known}"
        if known
        else "the class defines no variables"
    )


def _below(place: str, field: str) -> str:
    return place if not field or field == v.NOWHERE else f"{place}.{field}"


def effective(values: Iterable[Value], overrides: Sequence[Value] = ()) -> dict[str, Any]:
    """Values by name for one part of the Cluster: its overrides before those of the whole."""
    return {**dict(_entry(each) for each in values), **dict(_entry(each) for each in overrides)}


def _entry(value: Value) -> tuple[str, Any]:
    if isinstance(value, ClusterVariable):
        return value.name, value.value
    return str(value.get("name") or ""), value.get("value")
