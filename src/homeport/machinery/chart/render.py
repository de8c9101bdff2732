"""A chart, values and a release to objects."""

from __future__ import annotations

import posixpath
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from homeport.machinery.chart.context import (
    Capabilities,
    Files,
    OldValues,
    ReleaseInfo,
    Values,
    capabilities_of,
    chart_of,
    plain_kube_version,
    release_of,
)
from homeport.machinery.chart.dependency import Resolver, compatible, missing
from homeport.machinery.chart.engine import Engine, Lookup, Source
from homeport.machinery.chart.error import ChartError, shallow
from homeport.machinery.chart.manifest import Hook, Manifest, crd_manifests, sorted_manifests
from homeport.machinery.chart.model import Chart, Json, placed
from homeport.machinery.chart.schema import check_schema
from homeport.machinery.chart.values import Merger
from homeport.machinery.gotemplate.sprig.mapping import copied
from homeport.machinery.gotemplate.value import Bytes, Int64, octets, text_of

_NOTES: Final = "NOTES.txt"
_MANIFEST_ENDINGS: Final = (".yaml", ".yml", ".json")


@dataclass(frozen=True, slots=True)
class Rendered:
    """All that a chart becomes. `manifests` and `hooks` are in the order of installation.

    `config` is what the user gave, `values` what the templates saw. `warnings` are about values that had no effect.
    """

    manifests: tuple[Manifest, ...]
    hooks: tuple[Hook, ...]
    crds: tuple[Manifest, ...]
    notes: str
    config: Json
    values: Json
    warnings: tuple[str, ...]


@shallow
def render(
    chart: Chart,
    values: Mapping[str, Any],
    release: ReleaseInfo,
    capabilities: Capabilities | None = None,
    lookup: Lookup | None = None,
    *,
    subchart_notes: bool = False,
    check_values: bool = True,
) -> Rendered:
    """Raises ChartError. The chart and the values stay as they are."""
    capabilities = capabilities or Capabilities()
    major = capabilities.major
    warnings: list[str] = []
    merger = Merger(major, warnings.append)
    _check_usable(chart, capabilities)
    given = _numbers(values)
    made = Resolver(merger, warnings.append).resolved(chart, given)
    placed(made)
    merged = merger.values(made, given)
    if check_values:
        check_schema(made, merged)
    sources: dict[str, Source] = {}
    named = OldValues if major == 3 else Values
    _collect(made, merged, (release_of(release), capabilities_of(capabilities)), named, sources)
    final = copied(merged)
    texts = Engine(major, release, lookup).render(sources)
    notes = _notes(texts, made, subchart_notes)
    manifests, hooks = sorted_manifests(
        {path: text for path, text in texts.items() if not path.endswith(_NOTES)}, major
    )
    return Rendered(
        tuple(manifests), tuple(hooks), tuple(_crds(made)), notes, copied(given), final, tuple(dict.fromkeys(warnings))
    )


@shallow
def crds_of(chart: Chart, values: Mapping[str, Any], capabilities: Capabilities | None = None) -> tuple[Manifest, ...]:
    """The files of crds/, those of enabled subcharts included: what must exist before the chart is rendered."""
    merger = Merger((capabilities or Capabilities()).major, lambda warning: None)
    made = Resolver(merger, lambda warning: None).resolved(chart, _numbers(values))
    placed(made)
    return tuple(_crds(made))


def _check_usable(chart: Chart, capabilities: Capabilities) -> None:
    if chart.is_library:
        raise ChartError(f"chart {chart.name}: a library chart can't be installed; make it a dependency of another")
    absent = missing(chart)
    if absent:
        raise ChartError(
            f"chart {chart.name}: Chart.yaml names dependencies that charts/ does not have: {', '.join(absent)}; "
            "run 'helm dependency build' before packaging the chart"
        )
    wanted, version = chart.metadata.kube_version, plain_kube_version(capabilities)
    if wanted and not compatible(wanted, version):
        raise ChartError(f"chart {chart.name}: it needs Kubernetes {wanted}; the cluster has {version}")


def _numbers(value: Any) -> Any:
    """Numbers of values are float64 to templates, except those that say they are int64."""
    if isinstance(value, Mapping):
        return {str(key): _numbers(below) for key, below in value.items()}
    if isinstance(value, list | tuple):
        return [_numbers(below) for below in value]
    if isinstance(value, int) and not isinstance(value, bool | Int64):
        return float(value)
    return value


def _collect(
    chart: Chart, values: Json, shared: tuple[Json, Any], named: type[Values], sources: dict[str, Source]
) -> Values:
    """The context of the chart; adds its templates and those of its subcharts."""
    subcharts: Json = {}
    context = named(
        {
            "Chart": chart_of(chart, 3 if named is OldValues else 4),
            "Files": Files({path: Bytes(content) for path, content in chart.files.items()}),
            "Release": shared[0],
            "Capabilities": shared[1],
            "Values": named(values),
            "Subcharts": subcharts,
        }
    )
    for child in chart.charts:
        below = context["Values"].get(child.name)
        subcharts[child.name] = _collect(child, below if isinstance(below, dict) else {}, shared, named, sources)
    for path, content in chart.templates.items():
        if not chart.is_library or posixpath.basename(path).startswith("_"):
            sources[f"{chart.path}/{path}"] = Source(text_of(content), context, f"{chart.path}/templates")
    return context


def _notes(texts: Mapping[str, str], chart: Chart, subcharts: bool) -> str:
    own = f"{chart.path}/templates/{_NOTES}"
    chosen = [path for path in sorted(texts) if path.endswith(_NOTES) and (subcharts or path == own)]
    made = ""
    for path in chosen:
        made += ("\n" if made else "") + texts[path]
    return octets(made).decode("utf-8", "replace")


def _crds(chart: Chart) -> list[Manifest]:
    made: list[Manifest] = []
    for path, content in chart.files.items():
        if path.startswith("crds/") and path.lower().endswith(_MANIFEST_ENDINGS):
            made += crd_manifests(f"{chart.path}/{path}", content)
    for child in chart.charts:
        made += _crds(child)
    return made
