"""The kinds that Harvester brings: CustomResourceDefinitions as facts, without prose. tools/gen_harvester.py writes
the file."""

from __future__ import annotations

from functools import cache
from importlib import resources
from typing import Any

import orjson

Json = dict[str, Any]
_REFERENCE = "$shared"


@cache
def definitions() -> tuple[Json, ...]:
    """All CustomResourceDefinitions. Parts are shared among them: callers must not change any."""
    facts = orjson.loads(resources.files(__package__).joinpath("definitions.json").read_bytes())
    shared: list[Any] = []
    for each in facts["shared"]:
        shared.append(_resolved(each, shared))
    return tuple(_resolved(each, shared) for each in facts["definitions"])


def _resolved(value: Any, shared: list[Any]) -> Any:
    if isinstance(value, list):
        return [_resolved(each, shared) for each in value]
    if not isinstance(value, dict):
        return value
    if _REFERENCE in value:
        return shared[value[_REFERENCE]]
    return {key: _resolved(each, shared) for key, each in value.items()}
