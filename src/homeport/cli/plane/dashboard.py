"""homeport dashboard"""

from __future__ import annotations

import asyncio
import webbrowser
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from homeport.app.plane.instance import read_instance
from homeport.cli.where import Where, located

if TYPE_CHECKING:
    from homeport.client.config import Config
    from homeport.dashboard.installed import Installed
    from homeport.dashboard.service import ServiceOptions


@click.command()
@located
@click.option("--open/--no-open", "launch", default=False, show_default=True, help="Open the link in a browser.")
@click.option(
    "--address",
    metavar="URL",
    default="",
    help="Log in to the dashboard at this address (default: that of the plane or of the installation).",
)
@click.option(
    "--ca",
    metavar="FILE",
    type=click.Path(path_type=Path, dir_okay=False, exists=True),
    help="Trust these CA certificates (PEM) for --address, besides those of the system and of the installation.",
)
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
    help="Listen at this address, with --serve or when a port is forwarded; port 0 is any free one. Only --serve --tls "
    "listens beyond loopback.",
)
@click.option(
    "--tls",
    metavar="FOLDER",
    type=click.Path(path_type=Path, file_okay=False),
    help="With --serve, use HTTPS with tls.crt and tls.key of this folder, which are read again when they change.",
)
@click.option(
    "--host",
    "hosts",
    metavar="NAME",
    multiple=True,
    help="With --serve, answer under this name, too: NAME or NAME:PORT of a load balancer or an ingress. Repeatable.",
)
@click.option("--health", metavar="HOST:PORT", default="", help="With --serve, serve /healthz and /readyz there.")
@click.option(
    "--kubernetes",
    is_flag=True,
    help="With --serve, serve the cluster of the Pod that this runs in, without a service account: users log in with "
    "'homeport dashboard' on their machines.",
)
def command(where: Where, launch: bool, serve: bool, **more: Any) -> None:
    """Print a link that opens the dashboard, logged in as the user of the kubeconfig.

    The link works once, within a minute. The dashboard has no rights of its own: it shows and changes what your
    kubeconfig may. If only the API server leads to the dashboard of an installation, the command forwards its port
    until Ctrl-C.
    """
    from homeport.client.config import ConfigError
    from homeport.client.errors import ApiError
    from homeport.dashboard.certificate import CertificateError
    from homeport.dashboard.login import LoginError
    from homeport.dashboard.service import ServiceError

    if not serve and (alone := [name for name in ("tls", "hosts", "health", "kubernetes") if more[name]]):
        raise click.UsageError(f"--{alone[0].removesuffix('s')} applies to --serve only: add --serve")
    trusted = more["ca"].read_text() if more["ca"] is not None else ""
    try:
        if serve:
            asyncio.run(_serve(where, launch, **more))
        else:
            asyncio.run(_link(where, launch, more["address"], trusted, more["listen"]))
    except ServiceError as error:
        raise click.UsageError(str(error)) from error
    except (ConfigError, ApiError, LoginError, CertificateError, OSError) as error:
        raise click.ClickException(str(error)) from error


async def _link(where: Where, launch: bool, address: str, trusted: str, listen: str) -> None:
    from homeport.client.http import HttpClient
    from homeport.dashboard.installed import find
    from homeport.dashboard.login import log_in

    config = where.load()
    address = address or _address(where, config)
    if address.startswith("http:"):
        return _show(*await log_in(config, address), launch)
    async with HttpClient(config) as client:
        found = await find(client)
    if found is None and not address:
        raise click.ClickException(
            f"no dashboard is known for {config.server}: start a plane with 'homeport up', install one with 'homeport "
            f"install', or serve one from here with 'homeport dashboard --serve{where.arguments()}'"
        )
    known = found.ca if found is not None else ""
    if address or (found is not None and found.address):
        link = await log_in(config, address or (found.address if found is not None else ""), known + trusted)
        return _show(*link, launch)
    assert found is not None
    return await _forward(where, config, found, listen, launch)


def _address(where: Where, config: Config) -> str:
    """That of the plane in the data directory, if the kubeconfig leads to it."""
    instance = read_instance(where.data.expanduser().absolute())
    if instance is None and where.kubeconfig is not None:
        instance = read_instance(where.kubeconfig.absolute().parent)
    return instance.dashboard if instance is not None and instance.url == config.server else ""


async def _forward(where: Where, config: Config, found: Installed, listen: str, launch: bool) -> None:
    """Through the API server, to the Pod of an installation."""
    from homeport.app.kubernetes.dashboard.place import PORT
    from homeport.app.plane.show import stop_event
    from homeport.client.http import HttpClient
    from homeport.dashboard.installed import find_pod
    from homeport.dashboard.login import log_in
    from homeport.dashboard.tunnel import LocalPort

    host, port = _loopback(listen)
    stopping = stop_event()
    async with HttpClient(config) as client:
        pod = await find_pod(client, f"homeport dashboard --serve{where.arguments()}")
        local = LocalPort(lambda: client.port_forward(pod, PORT), found.ca)
        try:
            port = await local.start(host, port)
            shown = f"[{host}]" if ":" in host else host
            _show(*await log_in(config, f"http://{shown}:{port}"), launch)
            click.echo(f"port {port} leads to Pod {pod}; Ctrl-C ends it, 'Log out' in the page ends the session")
            await stopping.wait()
        finally:
            await local.stop()


async def _serve(where: Where, launch: bool, kubernetes: bool, **more: Any) -> None:
    from homeport.app.plane.show import stop_event
    from homeport.client import kubeconfig
    from homeport.dashboard.login import log_in
    from homeport.dashboard.service import serve

    options = _options(**more)
    options.check()
    config = kubeconfig.cluster_of_pod() if kubernetes else where.load()
    stopping = stop_event()

    async def ready(address: str) -> None:
        if kubernetes or options.tls is not None:
            click.echo(f"the dashboard of {config.server} is served at {address}")
        else:
            _show(*await log_in(config, address), launch)
            click.echo("Ctrl-C ends the dashboard; 'Log out' in the page ends the session")
        await stopping.wait()

    await serve(config, options, ready)


def _options(listen: str, tls: Path | None, hosts: tuple[str, ...], health: str, **_: Any) -> ServiceOptions:
    from homeport.app.settings import SettingsError, parse_listen
    from homeport.dashboard.service import ServiceOptions

    try:
        where = parse_listen(health, option="--health") if health else None
        return ServiceOptions(parse_listen(listen), tls, hosts, where)
    except SettingsError as error:
        raise click.UsageError(str(error)) from error


def _loopback(listen: str) -> tuple[str, int]:
    from homeport.app.settings import SettingsError, parse_listen
    from homeport.dashboard.guard import is_loopback

    try:
        host, port = parse_listen(listen)
    except SettingsError as error:
        raise click.UsageError(str(error)) from error
    if not is_loopback(host):
        raise click.UsageError(f"--listen {listen!r}: a forwarded port listens on loopback only")
    return host, port


def _show(link: str, user: str, launch: bool) -> None:
    click.echo(f"{link}\nThe link logs {user} in. It works once, within a minute.")
    if launch and not webbrowser.open(link):
        click.echo("no browser could be opened: open the link yourself", err=True)
