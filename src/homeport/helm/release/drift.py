"""What is not on the cluster as a release says, found by asking the cluster what an apply would change."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from homeport.api.meta import Unstructured
from homeport.client.errors import NotFound
from homeport.helm.release.content import removes_itself
from homeport.helm.release.target import Target

Json = dict[str, Any]

_SERVERS: Final = ("managedFields", "resourceVersion", "generation", "uid", "creationTimestamp", "selfLink")


@dataclass(frozen=True, slots=True)
class Comparison:
    """An object of a release and what the cluster has. It drifted if it is `missing` or `fields` differ."""

    object: Json
    live: Unstructured | None
    missing: bool = False
    fields: tuple[str, ...] = ()

    @property
    def drifted(self) -> bool:
        return self.missing or bool(self.fields)


async def compare(target: Target, objects: Iterable[Json]) -> tuple[Comparison, ...]:
    return tuple([await _compare(target, each) for each in objects])


async def _compare(target: Target, obj: Json) -> Comparison:
    live = await target.get(obj)
    if live is None:
        return Comparison(obj, None, missing=not removes_itself(obj))
    if live.metadata.get("deletionTimestamp"):
        return Comparison(obj, live)  # It can't be repaired before it is gone.
    try:
        wanted = await target.apply(obj, dry_run=True)
    except NotFound:
        return Comparison(obj, live)
    return Comparison(obj, live, fields=tuple(_differences(_compared(live), _compared(wanted))))


def _compared(obj: Mapping[str, Any]) -> Json:
    metadata = {name: value for name, value in (obj.get("metadata") or {}).items() if name not in _SERVERS}
    return {**{name: value for name, value in obj.items() if name != "status"}, "metadata": metadata}


def _differences(live: Any, wanted: Any, path: str = "") -> Iterable[str]:
    """Paths only: values may be secret."""
    if isinstance(live, Mapping) and isinstance(wanted, Mapping):
        for name in sorted({*live, *wanted}):
            yield from _differences(live.get(name), wanted.get(name), f"{path}.{name}" if path else name)
    elif isinstance(live, list) and isinstance(wanted, list) and len(live) == len(wanted):
        for index, (one, other) in enumerate(zip(live, wanted, strict=True)):
            yield from _differences(one, other, f"{path}[{index}]")
    elif live != wanted:
        yield path
