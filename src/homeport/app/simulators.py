"""The simulators that can run beside the plane. Adding one takes its folder and a line in each place here."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from homeport.sim.simulator import Simulator

NAMES = ("prism",)


def load(names: Iterable[str]) -> tuple[Simulator, ...]:
    """Imports them only now: planes that simulate nothing don't load simulators."""
    from homeport.sim.prism.simulator import SIMULATOR as PRISM

    known = {each.name: each for each in (PRISM,)}
    return tuple(known[name] for name in names)
