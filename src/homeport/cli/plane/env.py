"""homeport env"""

from __future__ import annotations

import os
import shlex
from pathlib import Path

import click

from homeport.app.hint import up_command
from homeport.app.plane.instance import read_instance
from homeport.app.settings import Settings
from homeport.cli.option import data as data_option


@click.command()
@data_option
@click.option(
    "--context",
    metavar="NAME",
    default="homeport",
    show_default=True,
    help="Make this the current context of kubectl: homeport, or harvester for the simulated Harvester.",
)
def command(data: Path, context: str) -> None:
    """Print shell commands that set up kubectl, curl and helm for the plane that runs on DIR.

    Run it as: eval "$(homeport env)"

    With --sim, the commands of guides then reach the simulators: KUBECONFIG has the contexts homeport and harvester,
    HTTPS_PROXY leads to the simulated network and nowhere else, and SSL_CERT_FILE trusts the simulated Prism Central
    besides the authorities of the system.
    """
    from homeport.app.shell import UnknownContext, prepare
    from homeport.cli.plane.target import ask_plane

    settings = Settings.make(data)
    instance = read_instance(settings.data)
    if instance is None:
        raise click.ClickException(f"no plane is running on {settings.data}: start it with '{up_command(settings)}'")
    simulators = ask_plane(settings, instance).simulators
    try:
        found = prepare(settings.data, settings.kubeconfig, simulators, os.environ, context)
    except UnknownContext as error:
        raise click.UsageError(f"--context: {error}") from error
    for name, value in found.items():
        # A shell that reads this without quotes joins the lines: each of them ends with a semicolon.
        click.echo(f"export {name}={shlex.quote(value)};")
