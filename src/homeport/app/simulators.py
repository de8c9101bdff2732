"""The simulators that can run beside the plane. Adding one takes its folder and a line in each place here."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from homeport.sim.simulator import Simulator

NAMES = ("prism", "harvester")


def load(names: Iterable[str]) -> tuple[Simulator, ...]:
    """Imports them only now: planes that simulate nothing don't load simulators."""
    found = []
    for name in names:
        if name == "prism":
            from homeport.sim.prism.simulator import SIMULATOR as PRISM

            found.append(PRISM)
        elif name == "harvester":
            from homeport.sim.harvester.simulator import SIMULATOR as HARVESTER

            found.append(HARVESTER)
    return tuple(found)
