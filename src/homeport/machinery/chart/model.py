"""What a chart is made of."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from homeport.machinery.gotemplate.number import general
from homeport.machinery.gotemplate.value import Strings

Json = dict[str, Any]


@dataclass(slots=True)
class Dependency:
    """An entry of `dependencies` in Chart.yaml."""

    name: str = ""
    version: str = ""
    repository: str = ""
    condition: str = ""
    tags: list[str] = field(default_factory=list)
    enabled: bool = False
    import_values: list[Any] = field(default_factory=list)
    alias: str = ""


@dataclass(slots=True)
class Maintainer:
    name: str = ""
    email: str = ""
    url: str = ""


@dataclass(slots=True)
class Metadata:
    """Chart.yaml. `dependencies` is None where the file has none: then all charts of charts/ are used as they are."""

    name: str = ""
    home: str = ""
    sources: list[str] = field(default_factory=Strings)
    version: str = ""
    description: str = ""
    keywords: list[str] = field(default_factory=Strings)
    maintainers: list[Maintainer] = field(default_factory=list)
    icon: str = ""
    api_version: str = ""
    condition: str = ""
    tags: str = ""
    app_version: str = ""
    deprecated: bool = False
    annotations: dict[str, str] = field(default_factory=dict)
    kube_version: str = ""
    dependencies: list[Dependency] | None = None
    type: str = ""


@dataclass(slots=True)
class Chart:
    """A chart with its subcharts. Paths are relative to its own root."""

    metadata: Metadata
    values: Json = field(default_factory=dict)
    schema: bytes | None = None
    templates: dict[str, bytes] = field(default_factory=dict)
    files: dict[str, bytes] = field(default_factory=dict)
    lock: Json | None = None
    charts: list[Chart] = field(default_factory=list)
    path: str = ""  # of a rendered chart: parent/charts/name
    is_root: bool = True

    @property
    def name(self) -> str:
        return self.metadata.name

    @property
    def version(self) -> str:
        return self.metadata.version

    @property
    def is_library(self) -> bool:
        return self.metadata.type.lower() == "library"


def as_text(value: Any) -> str | None:
    """A value of YAML where Helm expects a string: numbers and booleans are taken as such. None for lists and maps."""
    if value is None or isinstance(value, str):
        return value or ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return general(value, -1)
    return str(value) if isinstance(value, int) else None


def placed(chart: Chart, parent: str = "") -> None:
    """Gives the chart and its subcharts the paths that their templates are named by."""
    chart.is_root = not parent
    chart.path = f"{parent}/charts/{chart.name}" if parent else chart.name
    for child in chart.charts:
        placed(child, chart.path)
