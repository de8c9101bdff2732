"""Which subcharts are used, under which names, and which of their values the parent imports."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from typing import Any, Final

from homeport.machinery.chart.error import ChartError
from homeport.machinery.chart.model import Chart, Dependency, Json
from homeport.machinery.chart.values import Merger, table
from homeport.machinery.gotemplate.error import CallError
from homeport.machinery.gotemplate.printer import shown
from homeport.machinery.gotemplate.sprig.mapping import copied
from homeport.machinery.gotemplate.sprig.semver import satisfies

_MOST_CHARTS: Final = 1000


class Resolver:
    """Works on a copy of the chart: `resolved` leaves the given chart as it is."""

    def __init__(self, merger: Merger, warn: Callable[[str], None]) -> None:
        self._merger = merger
        self._warn = warn
        self._charts = 0

    def resolved(self, chart: Chart, given: Json) -> Chart:
        """The chart with the subcharts that its conditions and tags enable. Raises ChartError."""
        made = _copied(chart)
        self._enable(made, given, "")
        self._import(made)
        return made

    # -- conditions, tags and aliases ------------------------------------------------------------------------------

    def _enable(self, chart: Chart, given: Json, path: str) -> None:
        wanted = chart.metadata.dependencies
        if wanted is None:
            return
        chart.charts = [
            *(each for each in chart.charts if not any(_fits(each, dependency) for dependency in wanted)),
            *(each for each in (_aliased(chart.charts, dependency) for dependency in wanted) if each is not None),
        ]
        self._count(chart)
        for dependency in wanted:
            dependency.name = dependency.alias or dependency.name
            dependency.enabled = True
        values = self._merger.values(chart, given)
        tags = values.get("tags")
        for dependency in wanted:
            if isinstance(tags, dict):
                self._apply_tags(dependency, tags)
            self._apply_conditions(dependency, values, path)
        disabled = {each.name for each in wanted if not each.enabled}
        chart.charts = [each for each in chart.charts if each.name not in disabled]
        chart.metadata.dependencies = [each for each in wanted if each.name not in disabled]
        for child in chart.charts:
            self._enable(child, values, f"{path}{child.name}.")

    def _count(self, chart: Chart) -> None:
        """Aliases of charts that have aliases multiply."""
        self._charts += len(chart.charts)
        if self._charts > _MOST_CHARTS:
            raise ChartError(f"chart {chart.name}: its dependencies become more than {_MOST_CHARTS} charts")

    def _apply_tags(self, dependency: Dependency, tags: Json) -> None:
        """Enabled if one of its tags is true, disabled if some are false and none is true."""
        found: list[bool] = []
        for tag in dependency.tags:
            if isinstance(tags.get(tag), bool):
                found.append(tags[tag])
            elif tag in tags:
                self._warn(f"tags.{tag} of dependency {dependency.name} ignored: expected true or false")
        dependency.enabled = any(found) or not found

    def _apply_conditions(self, dependency: Dependency, values: Json, path: str) -> None:
        """The first of its paths that leads to true or false decides."""
        for condition in dependency.condition.strip().split(","):
            if not condition:
                continue
            before, _, key = f"{path}{condition}".rpartition(".")
            found = table(values, before) if before else values
            value = found.get(key) if found is not None else None
            if isinstance(value, bool):
                dependency.enabled = value
                return
            if found is not None and key in found and not isinstance(value, dict):
                self._warn(f"condition {condition} of dependency {dependency.name} ignored: expected true or false")

    # -- import-values ---------------------------------------------------------------------------------------------

    def _import(self, chart: Chart) -> None:
        for child in chart.charts:
            self._import(child)
        if chart.metadata.dependencies is None:
            return
        values = self._merger.values(chart, None, merge=True)
        imported: Json = {}
        for dependency in chart.metadata.dependencies:
            dependency.import_values = [
                pair for each in dependency.import_values if (pair := self._pair(each)) is not None
            ]
            for pair in dependency.import_values:
                found = table(values, f"{dependency.name}.{pair['child']}")
                if found is None:
                    self._warn(f"import-values of dependency {dependency.name}: map {pair['child']} not found")
                    continue
                self._merger.tables(imported, _nested(pair["parent"], found), merge=True)
        chart.values = self._merger.tables(copied(values), imported, merge=True)

    def _pair(self, entry: Any) -> dict[str, str] | None:
        if isinstance(entry, str):
            return {"child": f"exports.{entry}", "parent": "."}
        if isinstance(entry, dict):
            return {key: shown(entry.get(key)) for key in ("child", "parent")}
        return None


def _nested(path: str, value: Json) -> Json:
    if path == ".":
        return value
    for name in reversed(path.split(".")):
        value = {name: value}
    return value


def _copied(chart: Chart) -> Chart:
    """Whatever resolving changes: names, dependencies and the tree of charts."""
    made = copy(chart)
    made.metadata = copy(chart.metadata)
    if chart.metadata.dependencies is not None:
        made.metadata.dependencies = [copy(each) for each in chart.metadata.dependencies]
    made.charts = [_copied(each) for each in chart.charts]
    return made


def _fits(chart: Chart, dependency: Dependency) -> bool:
    return chart.name == dependency.name and compatible(dependency.version, chart.version)


def compatible(constraint: str, version: str) -> bool:
    try:
        return satisfies(constraint, version)
    except CallError:
        return False


def _aliased(charts: list[Chart], dependency: Dependency) -> Chart | None:
    found = next((each for each in charts if _fits(each, dependency)), None)
    if found is None:
        return None
    made = _copied(found)
    made.metadata.name = dependency.alias or made.metadata.name
    return made


def missing(chart: Chart) -> list[str]:
    """Dependencies of Chart.yaml that no chart of charts/ has the name of."""
    names = {each.name for each in chart.charts}
    return [each.name for each in chart.metadata.dependencies or [] if each.name not in names]
