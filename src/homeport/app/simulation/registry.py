"""Charts that the simulated internet serves: small ones of Homeport, under the addresses that guides use."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path

from homeport.addons.catalogue import catalogue
from homeport.addons.catalogue.standin import standin_chart
from homeport.app.components import COMPONENTS
from homeport.capi.component import ChartFolder
from homeport.runtime.clock import Clock
from homeport.sim.engine.tls import Authority
from homeport.sim.network import Network
from homeport.sim.registry.server import ChartRegistry
from homeport.sim.registry.shelf import PublishedChart, Shelf

_CSI = "nutanix-csi"
# Guides have the old address of the repository, and a version that the catalogue no longer has.
_CSI_REPOSITORY, _CSI_VERSION = "https://nutanix.github.io/helm/", "3.0.0"


def published_charts() -> Iterator[PublishedChart]:
    csi = catalogue()[_CSI]
    files = functools.partial(standin_chart, csi, _CSI_VERSION)
    yield PublishedChart(_CSI_REPOSITORY, csi.chart.name, _CSI_VERSION, files)
    for entry in catalogue().values():
        for version in entry.versions:
            files = functools.partial(standin_chart, entry, version)
            yield PublishedChart(entry.chart.repository, entry.chart.name, version, files)
    for component in COMPONENTS:
        for folder in component.charts:
            files = functools.partial(read_folder, folder)
            yield PublishedChart(folder.repository, folder.name, folder.version, files)


@functools.cache
def read_folder(folder: ChartFolder) -> dict[str, bytes]:
    return dict(_read(resources.files(folder.package) / folder.name, ""))


def _read(folder: Traversable, path: str) -> Iterator[tuple[str, bytes]]:
    for each in folder.iterdir():
        if each.is_dir():
            yield from _read(each, f"{path}{each.name}/")
        else:
            yield f"{path}{each.name}", each.read_bytes()


def start_registry(network: Network, folder: Path, clock: Clock) -> ChartRegistry:
    """Answers on the network at once. `folder`: of the authority that signs its certificate. Close what it returns."""
    shelf = Shelf()
    shelf.publish(*published_charts())
    certificate = Authority.ensure(folder, clock).called("registry", sorted(shelf.hosts()), clock)
    registry = ChartRegistry(shelf, certificate, clock.now)
    registry.attach(network)
    return registry
