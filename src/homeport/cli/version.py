"""homeport version"""

from __future__ import annotations

import click

from homeport import __version__
from homeport.cli.output import output_option, print_data


@click.command()
@output_option("json", "yaml")
def command(output: str | None) -> None:
    """Print the version of Homeport and of the Kubernetes API it serves."""
    from homeport.apiserver.kinds import kubernetes_version

    if output:
        print_data({"homeport": __version__, "kubernetes": kubernetes_version()}, output)
        return
    click.echo(f"homeport {__version__} (Kubernetes API {kubernetes_version()})")
