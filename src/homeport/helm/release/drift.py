"""What is not on the cluster as a release says, found by asking the cluster what an apply would change."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from homeport.client.errors import NotFound
from homeport.helm.release.content import removes_itself
from homeport.helm.release.target import Target

Json = dict[str, Any]

_SERVERS: Final = ("managedFields", "resourceVersion", "generation", "uid", "creationTimestamp", "selfLink")


@dataclass(frozen=True, slots=True)
class Drift:
    """An object that is missing, or whose `fields` differ from the release."""

    object: Json
    missing: bool
    fields: tuple[str, ...] = ()


async def observe_drift(target: Target, objects: Iterable[Json]) -> tuple[Drift, ...]:
    found = []
    for obj in objects:
        live = await target.get(obj)
        if live is None:
            if not removes_itself(obj):
                found.append(Drift(obj, missing=True))
            continue
        if live.metadata.get("deletionTimestamp"):
            continue  # It can't be repaired before it is gone.
        try:
            wanted = await target.apply(obj, dry_run=True)
        except NotFound:
            continue
        fields = tuple(_differences(_compared(live), _compared(wanted)))
        if fields:
            found.append(Drift(obj, missing=False, fields=fields))
    return tuple(found)


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
