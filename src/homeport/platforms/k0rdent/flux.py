"""CustomResourceDefinitions of the sources that templates refer to. Where Flux runs, its own definitions stay."""

from __future__ import annotations

from typing import Any

from homeport.api.flux.v1 import GitRepository, HelmChart, HelmRepository, OCIRepository
from homeport.capi.definition.column import AGE, Column
from homeport.capi.definition.kind import Kind, render_definition
from homeport.capi.name import CLUSTERCTL_LABEL, MOVE_HIERARCHY_LABEL
from homeport.runtime.definition import SHARED_LABEL

# Templates that move need their sources.
_LABELS = {SHARED_LABEL: "true", CLUSTERCTL_LABEL: "", MOVE_HIERARCHY_LABEL: ""}

_URL = Column("URL", ".spec.url")
_KINDS: tuple[tuple[type[Any], str, tuple[Column, ...]], ...] = (
    (HelmRepository, "helmrepo", (_URL, AGE)),
    (
        HelmChart,
        "hc",
        (
            Column("Chart", ".spec.chart"),
            Column("Version", ".spec.version"),
            Column("Source Kind", ".spec.sourceRef.kind"),
            Column("Source Name", ".spec.sourceRef.name"),
            AGE,
        ),
    ),
    (OCIRepository, "ocirepo", (_URL, AGE)),
    (GitRepository, "gitrepo", (_URL, AGE)),
)


def definitions() -> list[dict[str, Any]]:
    return [_render(*each) for each in _KINDS]


def _render(cls: Any, short: str, columns: tuple[Column, ...]) -> dict[str, Any]:
    at = cls.__resource__
    kind, names = Kind(versions=(cls,), short=(short,)), {(at.kind, at.version): columns}
    found = render_definition(kind, names, _LABELS)
    del found["spec"]["names"]["categories"]
    return found
