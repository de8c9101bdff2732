"""homeport version"""

from __future__ import annotations

import click

from homeport import __version__


@click.command()
def command() -> None:
    """Print the version of Homeport and of the Kubernetes API it serves."""
    from homeport.apiserver.kinds import kubernetes_version

    click.echo(f"homeport {__version__} (Kubernetes API {kubernetes_version()})")
