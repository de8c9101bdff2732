"""Whether Clusters can go from one class, or one state of it, to another: kinds stay, versions and names may change."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from homeport.client.errors import Cause
from homeport.core.topology.part import WORKERS

Json = Mapping[str, Any]


def incompatible(old: Json, new: Json) -> Iterator[Cause]:
    """Fields of the new class that keep Clusters of the old one from following."""
    was, now = old.get("spec") or {}, new.get("spec") or {}
    yield from _template(was.get("infrastructure"), now.get("infrastructure"), "spec.infrastructure")
    plane, plane_now = was.get("controlPlane") or {}, now.get("controlPlane") or {}
    yield from _template(plane, plane_now, "spec.controlPlane")
    machines = "machineInfrastructure"
    yield from _template(plane.get(machines), plane_now.get(machines), f"spec.controlPlane.{machines}")
    for part in WORKERS:
        known = classes(old, part)
        for i, each in enumerate((now.get("workers") or {}).get(part) or ()):
            before = known.get(each.get("class"))
            if before is not None:
                field = f"spec.workers.{part}[{i}].infrastructure"
                yield from _template(before.get("infrastructure"), each.get("infrastructure"), field)


def classes(cluster_class: Json, part: str) -> dict[Any, Json]:
    """Classes of workers by name."""
    listed = ((cluster_class.get("spec") or {}).get("workers") or {}).get(part) or ()
    return {each.get("class"): each for each in listed}


def _template(old: Json | None, new: Json | None, path: str) -> Iterator[Cause]:
    was, now = (old or {}).get("templateRef") or {}, (new or {}).get("templateRef") or {}
    for field, before, after in (
        ("apiVersion", _group(was), _group(now)),
        ("kind", str(was.get("kind") or ""), str(now.get("kind") or "")),
    ):
        if before != after:
            yield Cause.forbidden(
                f"{path}.templateRef.{field}",
                f"can't change from {before or 'none'} to {after or 'none'}: existing Clusters can't change it",
            )


def _group(ref: Json) -> str:
    return str(ref.get("apiVersion") or "").rpartition("/")[0]
