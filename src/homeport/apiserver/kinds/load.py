"""Builds the built-in kinds from builtin.json."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache, cached_property
from importlib import resources
from typing import Any

import orjson

from homeport.api.meta import Resource
from homeport.apiserver.kinds.behaviour import behaviours
from homeport.apiserver.resource import Json, Scale, Served, Version
from homeport.machinery.schema import Schema, SchemaChecker, compile_checker

_REF = "#/components/schemas/"
_SCALE = Scale(".spec.replicas", ".status.replicas", ".spec.selector")


@cache
def _facts() -> Json:
    facts: Json = orjson.loads(resources.files(__package__).joinpath("builtin.json").read_bytes())
    return facts


def definitions() -> Json:
    """OpenAPI v3 schemas by name, with references among them."""
    found: Json = _facts()["definitions"]
    return found


def kubernetes_version() -> str:
    return str(_facts()["version"])


class _LazyChecker:
    """Compiled when the first object of the kind comes by: most kinds are never used in a given process."""

    def __init__(self, definition: str) -> None:
        self._definition = definition

    @cached_property
    def _checker(self) -> SchemaChecker:
        return compile_checker({"$ref": _REF + self._definition}, definitions=definitions())

    def prune(self, obj: Json) -> list[str]:
        return self._checker.prune(obj)

    def default(self, obj: Json) -> None:
        self._checker.default(obj)

    def validate(self, obj: Json, old: Json | None) -> Iterable[tuple[str, str, str]]:
        return self._checker.validate(obj, old)


def builtin_kinds() -> list[Served]:
    """Every built-in kind, ready to serve."""
    return [_served(facts) for facts in _facts()["resources"]]


def _served(facts: Json) -> Served:
    group, version, kind = facts["group"], facts["version"], facts["kind"]
    subresources: dict[str, Any] = facts["subresources"]
    behaviour = behaviours().get((group, kind))
    definition = facts["definition"]
    at = Version(
        resource=Resource(group, version, kind, facts["plural"], facts["namespaced"]),
        schema=Schema({"$ref": _REF + definition}, definitions()),
        checker=_LazyChecker(definition),
        status="status" in subresources,
        scale=_SCALE if "scale" in subresources else None,
        raw_schema={"$ref": _REF + definition},
    )
    served = Served(
        group=group,
        kind=kind,
        plural=facts["plural"],
        singular=facts["singular"],
        namespaced=facts["namespaced"],
        storage=version,
        versions={version: at},
        strategy=behaviour.strategy if behaviour else _default_strategy(at),
        list_kind=f"{kind}List",
        short_names=tuple(facts["shortNames"]),
        categories=tuple(facts["categories"]),
        verbs=tuple(facts["verbs"]),
        subresources={
            name: (sub["group"], sub["version"], sub["kind"])
            for name, sub in subresources.items()
            if name not in ("status", "scale")
        },
        etag=kubernetes_version(),
    )
    if behaviour is not None:
        behaviour.shape(served)
    return served


def _default_strategy(at: Version) -> Any:
    from homeport.apiserver.kinds.strategy import Plain, WithStatus

    return WithStatus() if at.status else Plain()
