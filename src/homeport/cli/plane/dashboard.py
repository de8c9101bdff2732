"""homeport dashboard"""

from __future__ import annotations

import asyncio
import webbrowser
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from homeport.app.plane.instance import read_instance
from homeport.cli.where import Where, located

if TYPE_CHECKING:
    from homeport.client.config import Config


@click.command()
@located
@click.option("--open/--no-open", "launch", default=False, show_default=True, help="Open the link in a browser.")
@click.option(
    "--serve",
    is_flag=True,
    help="Serve the dashboard from this command until Ctrl-C, for a cluster that does not serve it itself.",
)
@click.option(
    "--listen",
    metavar="HOST:PORT",
    default="127.0.0.1:0",
    show_default=True,
    help="With --serve, listen at this address of the loopback network; port 0 is any free one.",
)
def command(where: Where, launch: bool, serve: bool, listen: str) -> None:
    """Print a link that opens the dashboard, logged in as the user of the kubeconfig.

    The link works once, within a minute. The dashboard has no rights of its own: it shows and changes what your
    kubeconfig may.
    """
    from homeport.client.config import ConfigError
    from homeport.client.errors import ApiError
    from homeport.dashboard.login import LoginError

    try:
        config = where.load()
        asyncio.run(_serve(config, listen, launch) if serve else _link(where, config, launch))
    except (ConfigError, ApiError, LoginError) as error:
        raise click.ClickException(str(error)) from error


async def _link(where: Where, config: Config, launch: bool) -> None:
    from homeport.dashboard.login import log_in

    address = _address(where, config)
    if not address:
        raise click.ClickException(
            f"no dashboard is known for {config.server}: start a plane with 'homeport up', or serve one from here "
            f"with 'homeport dashboard --serve{where.arguments()}'"
        )
    _show(*await log_in(config, address), launch)


def _address(where: Where, config: Config) -> str:
    """That of the plane in the data directory, if the kubeconfig leads to it."""
    instance = read_instance(where.data.expanduser().absolute())
    if instance is None and where.kubeconfig is not None:
        instance = read_instance(where.kubeconfig.absolute().parent)
    return instance.dashboard if instance is not None and instance.url == config.server else ""


async def _serve(config: Config, listen: str, launch: bool) -> None:
    from homeport.app.plane.show import stop_event
    from homeport.app.settings import SettingsError, parse_listen
    from homeport.client.credential import Static
    from homeport.dashboard.guard import is_loopback
    from homeport.dashboard.login import log_in
    from homeport.dashboard.wire.server import Dashboard

    try:
        host, port = parse_listen(listen)
    except SettingsError as error:
        raise click.UsageError(str(error)) from error
    if not is_loopback(host):
        raise click.UsageError(f"--listen {listen!r}: only addresses of this machine's loopback network are served")
    stopping = stop_event()
    dashboard = Dashboard()
    address = await dashboard.start(replace(config, credential=Static()), host, port)
    try:
        _show(*await log_in(config, address), launch)
        click.echo("Ctrl-C ends the dashboard; 'Log out' in the page ends the session")
        await stopping.wait()
    finally:
        await dashboard.stop()


def _show(link: str, user: str, launch: bool) -> Any:
    click.echo(f"{link}\nThe link logs {user} in. It works once, within a minute.")
    if launch and not webbrowser.open(link):
        click.echo("no browser could be opened: open the link yourself", err=True)
