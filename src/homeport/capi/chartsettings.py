"""Where this plane gets charts from."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from homeport.client.dial import DIRECT, DialOptions


@dataclass(frozen=True, slots=True)
class ChartSettings:
    """`folder` takes precedence over `mirror`, and `mirror` over the address that a chart has by itself."""

    folder: Path | None = None  # charts and archives on this machine: nothing is fetched from anywhere else
    mirror: str = ""  # oci:// or https:// address that has all charts
    simulated: bool = False  # charts of the catalogue are replaced by small ones for simulated clusters
    cache: Path | None = None  # for archives that were fetched
    dial: DialOptions = DIRECT  # in simulation, registries are those of the simulated network


OWN_ADDRESSES = ChartSettings()  # each chart from the address that it has by itself
