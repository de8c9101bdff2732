"""The templates that a class is made of. Pure, on objects as they are written."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from homeport.core.topology.part import WORKERS
from homeport.machinery.gvk import parse_api_version


class TemplateRef(NamedTuple):
    """A reference to a template, and the field that holds it. It can be used as a reference by contract."""

    path: str
    api_version: str
    kind: str
    name: str

    @property
    def api_group(self) -> str:
        return parse_api_version(self.api_version).group

    @property
    def version(self) -> str:
        return parse_api_version(self.api_version).version

    def __str__(self) -> str:
        return f"{self.kind} {self.name}"


def templates(cluster_class: Mapping[str, Any]) -> list[TemplateRef]:
    """Every reference, in the order in which the class names them. The same template may be named more than once."""
    return list(_references(cluster_class.get("spec") or {}))


def _references(spec: Mapping[str, Any]) -> Iterator[TemplateRef]:
    yield from _reference(spec.get("infrastructure"), "spec.infrastructure")
    plane = spec.get("controlPlane") or {}
    yield from _reference(plane, "spec.controlPlane")
    yield from _reference(plane.get("machineInfrastructure"), "spec.controlPlane.machineInfrastructure")
    for part in WORKERS:
        for i, each in enumerate((spec.get("workers") or {}).get(part) or ()):
            for field in ("bootstrap", "infrastructure"):
                yield from _reference(each.get(field), f"spec.workers.{part}[{i}].{field}")


def _reference(holder: Mapping[str, Any] | None, path: str) -> Iterator[TemplateRef]:
    ref = (holder or {}).get("templateRef")
    if ref:
        said = (str(ref.get(field) or "") for field in ("apiVersion", "kind", "name"))
        yield TemplateRef(f"{path}.templateRef", *said)
