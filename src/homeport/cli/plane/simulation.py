"""The options of `homeport up` about simulators."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import click

from homeport.app.settings import SettingsError, Simulators, parse_by_name, parse_listen, parse_names
from homeport.app.simulators import NAMES

F = TypeVar("F", bound=Callable[..., Any])

NOTHING = "none"  # of --sim
SPEEDS = "instant, real, x10 (ten times faster than real), 2s, 2s~30% (with jitter), reads:3, never"
_OPTIONS = (
    click.option(
        "--sim",
        metavar="[NAME,...]",
        is_flag=False,
        flag_value="all",
        help=f"Run simulated infrastructure with the plane: {', '.join(NAMES)} (--sim alone: all of them), a Simulator "
        f"of a plugin as MODULE:NAME, or {NOTHING} (default: as at the last start on DIR, at first {NOTHING}).",
    ),
    click.option(
        "--speed",
        default="instant",
        show_default=True,
        help=f"Set how fast simulated tasks and machines finish: {SPEEDS}.",
    ),
    click.option(
        "--sim-world",
        metavar="[NAME=]FILE",
        multiple=True,
        help="Load a simulator's initial state from this YAML file (default: the built-in world).",
    ),
    click.option(
        "--sim-faults",
        metavar="[NAME=]FILE",
        multiple=True,
        help="Inject the faults in this YAML file into a simulator.",
    ),
    click.option(
        "--sim-listen",
        metavar="[NAME=]HOST:PORT",
        multiple=True,
        envvar="HOMEPORT_SIM_LISTEN",
        help="Serve a simulator at this address (default: its usual port on 127.0.0.1, or a free port if that is "
        "taken).",
    ),
    click.option("--sim-reset", is_flag=True, help="Discard the simulators' saved state."),
)


def options(command: F) -> F:
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def read_simulation(
    sim: str | None,
    speed: str,
    sim_world: Sequence[str],
    sim_faults: Sequence[str],
    sim_listen: Sequence[str],
    sim_reset: bool,
) -> Simulators | None:
    """Raises SettingsError."""
    if sim is None:
        return None
    names = parse_names(sim)
    return Simulators(
        names,
        speed,
        _files("--sim-world", sim_world, names),
        _files("--sim-faults", sim_faults, names),
        {name: _address(name, text) for name, text in parse_by_name("--sim-listen", sim_listen, names).items()},
        sim_reset,
    )


def _files(option: str, values: Sequence[str], names: Sequence[str]) -> dict[str, Path]:
    found = {name: Path(text).expanduser().absolute() for name, text in parse_by_name(option, values, names).items()}
    for path in found.values():
        if path.is_dir():
            raise SettingsError(f"{option} {path}: is a directory; a file is required")
    return found


def _address(name: str, text: str) -> tuple[str, int]:
    port = 9440 if name == "prism" else 6443
    return parse_listen(text if ":" in text else f"{text}:{port}", option="--sim-listen")


def write_simulation(simulators: Simulators | None) -> list[str]:
    """The same options for another process."""
    if simulators is None:
        return []
    found = [f"--sim={','.join(simulators.names)}", f"--speed={simulators.speed}"]
    found += [f"--sim-world={name}={path}" for name, path in simulators.world.items()]
    found += [f"--sim-faults={name}={path}" for name, path in simulators.faults.items()]
    for name, (host, port) in simulators.listen.items():
        found.append(f"--sim-listen={name}={f'[{host}]' if ':' in host else host}:{port}")
    return [*found, *(["--sim-reset"] if simulators.reset else [])]
