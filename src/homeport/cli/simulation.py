"""The options of `homeport up` about simulators."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from homeport.app.settings import Simulators, parse_listen

F = TypeVar("F", bound=Callable[..., Any])

SPEEDS = "instant, real, x10 (ten times faster than real), 2s, 2s~30% (with jitter), reads:3, never"
_FILE = click.Path(path_type=Path, dir_okay=False)
_OPTIONS = (
    click.option(
        "--sim",
        metavar="[NAME,...]",
        is_flag=False,
        flag_value="all",
        help="run simulated infrastructures beside the plane: prism; without a name all that there are",
    ),
    click.option("--speed", default="instant", show_default=True, help=f"of what is simulated: {SPEEDS}"),
    click.option("--sim-world", metavar="FILE", type=_FILE, help="what the simulated world begins with"),
    click.option("--sim-faults", metavar="FILE", type=_FILE, help="what goes wrong in it, as YAML"),
    click.option(
        "--sim-listen",
        metavar="HOST:PORT",
        default="",
        envvar="HOMEPORT_SIM_LISTEN",
        help="where Prism Central is served; default: 127.0.0.1:9440, or a free port if that is taken",
    ),
    click.option("--sim-reset", is_flag=True, help="forget what was simulated before, and begin anew"),
)


def options(command: F) -> F:
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def read_simulation(
    sim: str | None, speed: str, sim_world: Path | None, sim_faults: Path | None, sim_listen: str, sim_reset: bool
) -> Simulators | None:
    """Raises SettingsError."""
    if sim is None:
        return None
    listen = parse_listen(sim_listen if ":" in sim_listen else f"{sim_listen}:9440", option="--sim-listen")
    return Simulators(
        Simulators.named(sim),
        speed,
        _absolute(sim_world),
        _absolute(sim_faults),
        listen if sim_listen else None,
        sim_reset,
    )


def _absolute(path: Path | None) -> Path | None:
    return None if path is None else path.expanduser().absolute()


def write_simulation(simulators: Simulators | None) -> list[str]:
    """The same options for another process."""
    if simulators is None:
        return []
    found = [f"--sim={','.join(simulators.names)}", f"--speed={simulators.speed}"]
    found += [f"--sim-world={simulators.world}"] if simulators.world else []
    found += [f"--sim-faults={simulators.faults}"] if simulators.faults else []
    if simulators.listen is not None:
        host, port = simulators.listen
        found.append(f"--sim-listen={f'[{host}]' if ':' in host else host}:{port}")
    return [*found, *(["--sim-reset"] if simulators.reset else [])]
