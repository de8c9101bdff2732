"""Where a Cluster sets variables: for the whole, and again for single parts of it. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from homeport.client.errors import Cause
from homeport.core.topology.part import WORKERS
from homeport.core.topology.variable import variable
from homeport.core.topology.variable.variable import Definition

Json = dict[str, Any]

_PATH = "spec.topology"


class Values(NamedTuple):
    """One list of values: what holds it and by which field, the path that leads to it, and whose it is."""

    holder: Json
    field: str
    path: str
    owner: tuple[str, ...]  # () for the whole

    @property
    def listed(self) -> list[Any]:
        return list(self.holder.get(self.field) or ())

    @property
    def overrides(self) -> bool:
        return bool(self.owner)


def values_of(topology: Json) -> Iterator[Values]:
    """The one of the whole, which may be empty, and then every one that overrides something."""
    yield Values(topology, "variables", f"{_PATH}.variables", ())
    parts: list[tuple[Json, str, tuple[str, ...]]] = [
        (topology.get("controlPlane") or {}, f"{_PATH}.controlPlane", ("controlPlane",))
    ]
    for kind in WORKERS:
        for i, each in enumerate((topology.get("workers") or {}).get(kind) or ()):
            parts.append((each, f"{_PATH}.workers.{kind}[{i}]", (kind, str(each.get("name")))))
    for part, path, owner in parts:
        held = part.get("variables") or {}
        if held.get("overrides"):
            yield Values(held, "overrides", f"{path}.variables.overrides", owner)


def fill_in(topology: Json, definitions: Mapping[str, Definition]) -> None:
    """Writes the defaults of the class into the topology."""
    for each in values_of(topology):
        filled = variable.defaulted(each.listed, definitions, overrides=each.overrides)
        if filled:
            each.holder[each.field] = filled


def value_causes(topology: Json, definitions: Mapping[str, Definition], old: Json | None = None) -> Iterator[Cause]:
    """What is wrong with all values; rules about changes compare with those of the same part of `old`."""
    before = {each.owner: each.listed for each in values_of(old or {})}
    for each in values_of(topology):
        yield from variable.causes(
            each.listed, definitions, old=before.get(each.owner), path=each.path, overrides=each.overrides
        )
