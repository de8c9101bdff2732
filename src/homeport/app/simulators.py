"""The simulators that can run beside the plane. Adding one takes its folder and one line here."""

from __future__ import annotations

import importlib
from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from homeport.sim.simulator import Simulator

# By the name of --sim. Imported when they are asked for: planes that simulate nothing don't load simulators.
_SIMULATORS = {
    "prism": "homeport.sim.prism.simulator:SIMULATOR",
    "harvester": "homeport.sim.harvester.simulator:SIMULATOR",
}
NAMES = tuple(_SIMULATORS)


def load(names: Iterable[str]) -> tuple[Simulator, ...]:
    """In this order. A name is that of a built-in simulator, or MODULE:NAME of a plugin. Raises SimulatorError."""
    return tuple(_load(name) for name in names)


def is_plugin(name: str) -> bool:
    module, colon, attribute = name.partition(":")
    return bool(module and colon and attribute)


def _load(name: str) -> Simulator:
    from homeport.sim.simulator import Simulator, SimulatorError

    module, _, attribute = _SIMULATORS.get(name, name).partition(":")
    try:
        found = getattr(importlib.import_module(module), attribute, None)
    except ImportError as error:
        raise SimulatorError(f"--sim {name!r}: module {module} can't be imported: {error}") from error
    if not isinstance(found, Simulator):
        raise SimulatorError(f"--sim {name!r}: module {module} has no Simulator {attribute}")
    return found
