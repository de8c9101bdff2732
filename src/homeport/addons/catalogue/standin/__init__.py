"""Charts of the catalogue in small, for simulated clusters: the same names, kinds of workloads and values that matter.

They are Homeport's own and install nothing that works outside of the simulation: every object says so.
"""

from __future__ import annotations

import functools
import re
from importlib import resources
from importlib.resources.abc import Traversable

from homeport.addons.catalogue.entry import Entry

_VERSION = re.compile(rb"(?m)^(version|appVersion): .*$")


def standin_chart(entry: Entry, version: str) -> dict[str, bytes]:
    """The files of the chart, as if it were this version."""
    files = dict(_files(entry.chart.name))
    written = version.encode()
    files["Chart.yaml"] = _VERSION.sub(lambda found: found[1] + b": " + written, files["Chart.yaml"])
    return files


@functools.cache
def _files(chart: str) -> dict[str, bytes]:
    return dict(sorted(_read(resources.files(__name__) / chart, "")))


def _read(folder: Traversable, path: str) -> list[tuple[str, bytes]]:
    found = []
    for each in folder.iterdir():
        inner = f"{path}{each.name}"
        found.extend(_read(each, f"{inner}/") if each.is_dir() else [(inner, each.read_bytes())])
    return found
