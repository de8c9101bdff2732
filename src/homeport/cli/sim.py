"""homeport sim"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING

import click

from homeport.cli import option
from homeport.cli.group import Group
from homeport.cli.option import FILE
from homeport.cli.option import data as data_option
from homeport.cli.plane.simulation import SPEEDS

if TYPE_CHECKING:
    from homeport.sim.harvester.serve import Running as HarvesterRunning
    from homeport.sim.prism.serve import Running

_LOOPBACK = ("127.0.0.1", "::1", "localhost")


@click.group(cls=Group)
def command() -> None:
    """Simulate infrastructure, for Homeport and for your own clients and scripts."""


@command.command()
@data_option
@click.option(
    "--listen",
    metavar="HOST:PORT",
    default="127.0.0.1:9440",
    show_default=True,
    envvar="HOMEPORT_SIM_LISTEN",
    help="Serve the simulator at this address.",
)
@option.admin_port
@option.world
@option.faults
@click.option("--save", metavar="FILE", type=FILE, help="Save the state to FILE at exit.")
@click.option(
    "--speed",
    default="instant",
    show_default=True,
    help=f"Set how fast tasks and machines finish: {SPEEDS}.",
)
@click.option(
    "--seed",
    type=int,
    default=0,
    show_default=True,
    help="Seed random numbers: the same seed gives the same IDs and faults.",
)
@click.option(
    "--session-seconds",
    type=click.FloatRange(min=0),
    default=900.0,
    show_default=True,
    help="Expire session cookies after this time.",
)
@click.option(
    "--api-version",
    type=click.Choice(["v3", "v4.0", "v4.1", "v4.2", "v4.3", "v4.4"]),
    default="v4.4",
    show_default=True,
    help="Offer API versions up to this one. With v3, Prism Central has no API v4.",
)
@click.option("--print-world", is_flag=True, help="Print the built-in world as a starting point for --world.")
def prism(
    data: Path,
    listen: str,
    admin_port: int,
    world: Path | None,
    faults: Path | None,
    save: Path | None,
    speed: str,
    seed: int,
    session_seconds: float,
    api_version: str,
    print_world: bool,
) -> None:
    """Simulate Nutanix Prism Central (API v3 and v4) with the clusters, subnets and images of the guides."""
    if print_world:
        _print_world()
        return
    from homeport.app.settings import SettingsError, parse_listen
    from homeport.client.wire.quick import import_aiohttp

    import_aiohttp()
    from homeport.sim.engine.wire import StartError
    from homeport.sim.prism.serve import Options, run

    try:
        host, port = parse_listen(listen if ":" in listen else f"{listen}:9440")
    except SettingsError as error:
        raise click.UsageError(str(error)) from error
    _warn(host, "its passwords are public")
    options = Options(
        data=data.expanduser().absolute(),
        host=host,
        port=port,
        admin_port=admin_port,
        world=world,
        faults=faults,
        save=save,
        speed=speed,
        seed=seed,
        session_seconds=session_seconds,
        newest_minor=None if api_version == "v3" else int(api_version[-1]),
    )
    try:
        asyncio.run(run(options, _ready))
    except StartError as error:
        raise click.ClickException(str(error)) from error


@command.command()
@data_option
@click.option(
    "--listen",
    metavar="HOST:PORT",
    default="127.0.0.1:16443",
    show_default=True,
    help="Serve the Kubernetes API at this address.",
)
@option.admin_port
@option.world
@option.faults
@click.option(
    "--state", metavar="FILE", type=FILE, help="Keep the state in FILE, and continue with it (default: in memory)."
)
@click.option(
    "--speed",
    default="instant",
    show_default=True,
    help="Set how fast images and machines are ready: instant, real, x10 (ten times faster than real).",
)
@click.option(
    "--seed",
    type=int,
    default=0,
    show_default=True,
    help="Seed random numbers: the same seed gives the same names and faults.",
)
@click.option("--print-world", is_flag=True, help="Print the built-in world as a starting point for --world.")
@click.option(
    "--print-rke2",
    is_flag=True,
    help="Print the kubeconfig that a node has in /etc/rancher/rke2/rke2.yaml: its server is 127.0.0.1:6443.",
)
def harvester(
    data: Path,
    listen: str,
    admin_port: int,
    world: Path | None,
    faults: Path | None,
    state: Path | None,
    speed: str,
    seed: int,
    print_world: bool,
    print_rke2: bool,
) -> None:
    """Simulate Harvester (Kubernetes with KubeVirt) with the networks, images and keys of the guides."""
    from homeport.app.settings import SettingsError, parse_listen
    from homeport.client.wire.quick import import_aiohttp

    import_aiohttp()
    from homeport.app import log
    from homeport.sim.engine.wire import StartError
    from homeport.sim.harvester.serve import PORT, Options, rke2, run

    log.configure(level="warning")
    folder = data.expanduser().absolute()
    try:
        if print_world:
            from homeport.sim.harvester.world import default_text

            click.echo(default_text(), nl=False)
            return
        if print_rke2:
            click.echo(rke2(folder), nl=False)
            return
        host, port = parse_listen(listen if ":" in listen else f"{listen}:{PORT}")
        _warn(host, "its kubeconfig gives full access")
        kept = state.expanduser().absolute() if state is not None else None
        options = Options(folder, host, port, admin_port, world, faults, kept, speed, seed)
        asyncio.run(run(options, _harvester_ready))
    except SettingsError as error:
        raise click.UsageError(str(error)) from error
    except StartError as error:
        raise click.ClickException(str(error)) from error


def _harvester_ready(running: HarvesterRunning) -> None:
    click.echo(f"Simulated Harvester is ready at {running.url}")
    click.echo(f"kubeconfig: {running.kubeconfig}")
    click.echo(f"kubeconfig of a node, with 127.0.0.1 as its server: {running.rke2}")
    click.echo(f"admin (faults, journal): curl -H @{running.admin_header} {running.admin_url}")
    click.echo(f"next: kubectl --kubeconfig {running.kubeconfig} get nodes")


def _warn(host: str, why: str) -> None:
    if host not in _LOOPBACK:
        click.echo(f"warning: {host} is not a loopback address: others can reach this simulator, and {why}", err=True)


def _ready(running: Running) -> None:
    click.echo(f"Simulated Prism Central is ready at {running.url}")
    click.echo(f"certificate authority: {running.authority}")
    click.echo(f"admin (world, faults, journal): curl -H @{running.admin_header} {running.admin_url}")
    click.echo(f"next: {running.next_step}")


def _print_world() -> None:
    from homeport.sim.prism.world import default_text

    click.echo(default_text(), nl=False)
