"""Values of a chart and its subcharts, merged as Helm merges them.

What a user gives wins over the parent's values, which win over the subchart's own. Maps are merged, everything else is
replaced, and a null that a user gives removes the chart's default. `merge` keeps nulls, for values that are merged
again later.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from homeport.machinery.chart.error import ChartError
from homeport.machinery.chart.model import Chart, Json
from homeport.machinery.gotemplate.sprig.mapping import copied

GLOBAL = "global"


class Merger:
    """`major` is the version of Helm whose rules apply: 4 drops nulls of a chart's own defaults, 3 keeps them."""

    def __init__(self, major: int, warn: Callable[[str], None]) -> None:
        self._major = major
        self._warn = warn

    def values(self, chart: Chart, given: Json | None, *, merge: bool = False) -> Json:
        """All values of the chart: its own, those of its subcharts, and what is given. Raises ChartError."""
        made: Json = copied(given) if given else {}
        return self._chart(chart, made, "", merge)

    def _chart(self, chart: Chart, target: Json, prefix: str, merge: bool) -> Json:
        prefix = _joined(prefix, chart.name)
        self._defaults(chart, target, prefix, merge)
        for child in chart.charts:
            below = target.setdefault(child.name, {})
            if not isinstance(below, dict):
                raise ChartError(
                    f"chart {chart.name}: values: {_joined(prefix, child.name)} must be a map, because it has the "
                    f"values of the subchart {child.name}"
                )
            self._globals(below, target, prefix)
            self._chart(child, below, prefix, merge)
        return target

    def _defaults(self, chart: Chart, target: Json, prefix: str, merge: bool) -> None:
        names = {child.name for child in chart.charts}
        for key, value in copied(chart.values).items():
            if key not in target:
                if not merge and self._major >= 4:
                    if value is None:
                        continue
                    _drop_nulls(value)
                target[key] = value
            elif target[key] is None and not merge:
                del target[key]
            elif isinstance(target[key], dict):
                if isinstance(value, dict):
                    keep = merge or key in names
                    if not keep and self._major >= 4:
                        _drop_nulls(value)
                    self.tables(target[key], value, merge=keep, prefix=_joined(prefix, key))
                elif value is not None:
                    self._warn(f"value of {_joined(prefix, key)} ignored: the default is not a map, the given value is")

    def _globals(self, target: Json, source: Json, prefix: str) -> None:
        """Hands the globals of a chart down to a subchart."""
        known, given = target.get(GLOBAL, {}), source.get(GLOBAL, {})
        if not isinstance(known, dict) or not isinstance(given, dict):
            self._warn(f"{_joined(prefix, GLOBAL)} ignored: it is not a map")
            return
        for key, value in given.items():
            if not isinstance(value, dict):
                if isinstance(known.get(key), dict):
                    self._warn(f"{_joined(prefix, GLOBAL)}.{key} ignored: the subchart has a map there")
                else:
                    known[key] = value
            elif key not in known:
                known[key] = dict(value)
            elif isinstance(known[key], dict):
                known[key] = self.tables(dict(value), known[key], merge=True, prefix=_joined(prefix, key))
            else:
                self._warn(f"{_joined(prefix, GLOBAL)}.{key} ignored: the subchart has no map there")
        target[GLOBAL] = known

    def tables(self, target: Json, source: Json, *, merge: bool, prefix: str = "") -> Json:
        """Merges `source` into `target`, which wins. Changes both."""
        filled = {key for key, value in source.items() if value is not None}
        for key, value in target.items():
            if value is None:
                source[key] = None
        for key, value in source.items():
            if key not in target:
                target[key] = value
            elif target[key] is None and not merge and key in filled:
                del target[key]
            elif isinstance(value, dict):
                if isinstance(target[key], dict):
                    self.tables(target[key], value, merge=merge, prefix=_joined(prefix, key))
                else:
                    self._warn(f"{_joined(prefix, key)}: a value replaces the map of the chart's defaults")
            elif isinstance(target[key], dict) and value is not None:
                self._warn(f"{_joined(prefix, key)}: a map replaces the value of the chart's defaults")
        return target


def _joined(prefix: str, name: str) -> str:
    return f"{prefix}.{name}" if prefix else name


def _drop_nulls(value: Any) -> None:
    if isinstance(value, dict):
        for key in [key for key, below in value.items() if below is None]:
            del value[key]
        for below in value.values():
            _drop_nulls(below)


def table(values: Json, path: str) -> Json | None:
    """The map at the end of a path with dots."""
    found: Any = values
    for name in path.split("."):
        found = found.get(name) if isinstance(found, dict) else None
    return found if isinstance(found, dict) else None
