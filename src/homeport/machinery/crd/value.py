"""Default values in a schema: each must be valid where it stands."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import orjson

from homeport.machinery.schema import violation as v
from homeport.machinery.schema.checker import compile_checker
from homeport.machinery.schema.explain import Explainer
from homeport.machinery.schema.invariant import embedded_violations
from homeport.machinery.schema.node import Schema
from homeport.machinery.schema.violation import Violation

Raw = Mapping[str, Any]

_META = ("metadata", "apiVersion", "kind")


def default_violations(schema: Raw, path: str) -> list[Violation]:
    """For a structural schema only. Fields of metadata are passed over: they may have no defaults at the root."""
    return list(_walk(schema, path, root=True))


def _walk(s: Raw, path: str, root: bool = False) -> Iterator[Violation]:
    if s.get("default") is not None:
        yield from _check(s, f"{path}.default")
    if isinstance(s.get("items"), Mapping):
        yield from _walk(s["items"], f"{path}.items")
    is_object = root or bool(s.get("x-kubernetes-embedded-resource"))
    for name, child in (s.get("properties") or {}).items():
        if not (is_object and name in _META):
            yield from _walk(child, f"{path}.properties[{name}]")


def _check(s: Raw, path: str) -> Iterator[Violation]:
    value = s["default"]
    holder = {"metadata": {}, "value": orjson.loads(orjson.dumps(value))}
    if compile_checker({"type": "object", "properties": {"value": s}}).prune(holder):
        yield v.invalid(path, value, "must not have unknown fields")
    node = Schema(s)
    wrong = list(embedded_violations(node, value, path, root=False)) or Explainer(node, within=path).explain(value)
    yield from wrong
    if not wrong and s.get("x-kubernetes-validations") is not None:
        yield from _break_rules(s, value, path)


def _break_rules(s: Raw, value: Any, path: str) -> Iterator[Violation]:
    from homeport.machinery.cel import Rules

    rules = Rules(dict(s), root=False)
    if rules.problems:  # told where the rules themselves are checked
        return
    for broken in rules.validate(value):
        joint = "" if not broken.path or broken.path.startswith("[") else "."
        yield v.broken_rule(f"{path}{joint}{broken.path}", broken.message, broken.reason, broken.value)
