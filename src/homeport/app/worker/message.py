"""What a plane and its workers tell each other, one JSON text per line."""

from __future__ import annotations

from pathlib import Path

import msgspec

from homeport.app.report.description import ClusterState, ControllerState
from homeport.capi.chartsettings import ChartSettings
from homeport.client.dial import DialOptions

NAMESPACE = "kube-system"  # exists from the first moment on
LEASE = "homeport-workers"


class Order(msgspec.Struct, frozen=True):
    """What a worker is to do: the first line that it reads. When there are no more lines, the plane has ended."""

    identity: str
    kubeconfig: str
    data: str
    parent: int  # process number of the plane
    log_level: str
    json: bool
    proxy: str = ""
    ca_pem: bytes = b""
    chart_folder: str = ""
    chart_mirror: str = ""
    chart_proxy: str = ""
    chart_ca_pem: bytes = b""
    simulated: bool = False
    chart_cache: str = ""
    images: str = ""
    ccm_image: str = ""
    plugins: tuple[str, ...] = ()
    without: tuple[str, ...] = ()

    @property
    def dial(self) -> DialOptions:
        return DialOptions(self.proxy, self.ca_pem)

    @property
    def charts(self) -> ChartSettings:
        dial = DialOptions(self.chart_proxy, self.chart_ca_pem)
        return ChartSettings(_path(self.chart_folder), self.chart_mirror, self.simulated, _path(self.chart_cache), dial)


def _path(text: str) -> Path | None:
    return Path(text) if text else None


class Report(msgspec.Struct, frozen=True):
    """How a worker is."""

    working: bool = False  # its controllers run
    controllers: list[ControllerState] = []
    clusters: list[ClusterState] = []  # those that it works on
    blind: dict[str, str] = {}
    ranges: dict[str, str] = {}  # addresses of Services that its controllers hand out themselves
