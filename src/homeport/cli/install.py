"""homeport install"""

from __future__ import annotations

import asyncio
import shlex
from pathlib import Path

import click

from homeport.cli import option


@click.command()
@click.option(
    "--kubeconfig",
    metavar="FILE",
    type=click.Path(path_type=Path, dir_okay=False, exists=True),
    required=True,
    help="Prepare the cluster of this kubeconfig.",
)
@option.context
@click.option(
    "--without", metavar="COMPONENT", multiple=True, help="Leave out a component, for example nutanix or ccm."
)
def command(kubeconfig: Path, context: str, without: tuple[str, ...]) -> None:
    """Prepare a Kubernetes cluster for Homeport's controllers: definitions of all kinds, namespaces and the inventory.

    Run it again after an update of Homeport. It starts nothing: `homeport up --kubeconfig FILE` does.
    """
    from homeport.app.kubernetes.install import InstallError
    from homeport.app.platform import PluginError
    from homeport.client.config import ConfigError
    from homeport.client.errors import ApiError
    from homeport.client.quick import import_aiohttp

    import_aiohttp()
    try:
        asyncio.run(_install(kubeconfig, context, without))
    except (ApiError, ConfigError, InstallError, PluginError) as error:
        raise click.ClickException(str(error)) from error
    place = f"--kubeconfig {shlex.quote(str(kubeconfig))}" + (f" --context {shlex.quote(context)}" if context else "")
    click.echo(f"next: homeport up {place} --namespace homeport-system")


async def _install(kubeconfig: Path, context: str, without: tuple[str, ...]) -> None:
    from homeport.app.kubernetes.install import install
    from homeport.app.platform import chosen
    from homeport.client import kubeconfig as files
    from homeport.client.http import HttpClient

    async with HttpClient(files.load(kubeconfig, context=context)) as client:
        await install(client, chosen(without=without), click.echo)
