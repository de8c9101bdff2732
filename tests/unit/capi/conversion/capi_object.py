"""Objects that fit a schema, for property tests.

They are built by a seeded generator, not by strategies for each field: a control plane has some thousand of those.
"""

from __future__ import annotations

import re
from functools import cache
from random import Random
from typing import Any

from hypothesis import Phase, settings
from hypothesis import strategies as st

from homeport.api.meta import Object
from homeport.machinery.crd.generate import generate

Json = dict[str, Any]

# Durations are plain strings to the schema of an older version.
_DURATION = re.compile(r"(Timeout|Period|^ttl|^timeout|^timeoutForControlPlane)$")
# Explaining failures would trace every line, which takes minutes here.
PROPERTY = settings(
    max_examples=60, deadline=None, phases=[Phase.explicit, Phase.reuse, Phase.generate, Phase.shrink], derandomize=True
)
_LETTERS = "abcdefghijklmnopqrstuvwxyz"


def objects(cls: type[Object]) -> st.SearchStrategy[Json]:
    """Whole objects of a kind, valid but for CEL rules and patterns, and never with an empty value."""
    return st.builds(
        lambda seed, share: Builder(seed, share).build(cls), st.integers(0, 2**32), st.sampled_from([0.1, 0.3, 0.7])
    )


@cache
def _schema(cls: type[Object]) -> Json:
    return generate(cls)


class Builder:
    def __init__(self, seed: int, share: float) -> None:
        self._random = Random(seed)
        self._share = share  # of the optional fields that are there

    def build(self, cls: type[Object]) -> Json:
        resource, properties = cls.__resource__, _schema(cls)["properties"]
        body = {name: self._value(properties[name], name) for name in ("spec", "status") if name in properties}
        return {
            "apiVersion": resource.api_version,
            "kind": resource.kind,
            "metadata": {"name": "a", "namespace": "ns", "annotations": {"kept": "yes"}},
            **{name: part for name, part in body.items() if part},
        }

    def _value(self, schema: Json, name: str) -> Any:
        pick = self._random
        if schema.get("x-kubernetes-int-or-string"):
            return pick.choice([1, 7, "10%"])
        if "enum" in schema:
            return pick.choice([value for value in schema["enum"] if value])
        match schema.get("type"):
            case "string":
                return self._string(schema, name)
            case "integer":
                low = max(1, schema.get("minimum", 1))
                return pick.randint(low, schema.get("maximum", low + 100_000))
            case "number":
                return pick.randint(1, 9)
            case "boolean":
                return True
            case "array":
                return self._array(schema, name)
            case "object":
                return self._object(schema)
        return pick.choice([7, "text", True, {"a": {"b": 1}}, [1, {"c": "d"}]])

    def _word(self) -> str:
        return "".join(self._random.choices(_LETTERS, k=5))

    def _string(self, schema: Json, name: str) -> str:
        pick = self._random
        if schema.get("format") == "date-time":
            return f"20{pick.randint(10, 99)}-01-02T03:04:05Z"
        if name == "apiVersion":
            return pick.choice(["g.example.com/v1beta1", "g.example.com/v1alpha3", "v1"])
        if _DURATION.search(name) and "minLength" not in schema:
            return pick.choice(["1s", "59s", "1m0s", "5m30s", "1h0m0s", "100h0m1s", "1.5s", "250ms"])
        return self._word()

    def _array(self, schema: Json, name: str) -> list[Any]:
        found = [self._value(schema["items"], name) for _ in range(self._random.randint(1, 2))]
        return [item for item in found if item] or [self._value(schema["items"], name) or {"name": "x"}]

    def _object(self, schema: Json) -> Json:
        properties = schema.get("properties")
        if properties is None:
            each = schema.get("additionalProperties")
            return {self._word(): self._value(each, "") if each else self._word() for _ in range(2)}
        needed = schema.get("required", ())
        chosen = [name for name in properties if name in needed or self._random.random() < self._share]
        found = {name: self._value(properties[name], name) for name in chosen}
        return {name: value for name, value in found.items() if value not in ({}, [])}
