"""Helm charts, rendered without helm and without I/O.

    chart = load_chart(unpack(archive))
    rendered = render(chart, {"replicas": 3}, ReleaseInfo("web", "default"))

The text of every object equals what `helm template` gives, for the rules of the version that the capabilities name.
Templates come from others, so their work is bounded.
"""

from __future__ import annotations

from homeport.machinery.chart.archive import unpack
from homeport.machinery.chart.context import Capabilities, ReleaseInfo
from homeport.machinery.chart.engine import Lookup
from homeport.machinery.chart.error import ChartError
from homeport.machinery.chart.ignore import without_ignored
from homeport.machinery.chart.load import load_chart, read_values
from homeport.machinery.chart.manifest import Hook, Manifest, kind_order
from homeport.machinery.chart.model import Chart, Dependency, Metadata
from homeport.machinery.chart.render import Rendered, crds_of, render
from homeport.machinery.chart.schema import schema_problems

__all__ = [
    "Capabilities",
    "Chart",
    "ChartError",
    "Dependency",
    "Hook",
    "Lookup",
    "Manifest",
    "Metadata",
    "ReleaseInfo",
    "Rendered",
    "crds_of",
    "kind_order",
    "load_chart",
    "read_values",
    "render",
    "schema_problems",
    "unpack",
    "without_ignored",
]
