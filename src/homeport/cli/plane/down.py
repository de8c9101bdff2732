"""homeport down"""

from __future__ import annotations

from pathlib import Path

import click

from homeport.app.plane.instance import read_instance, stop
from homeport.cli.option import data as data_option


@click.command()
@data_option
def command(data: Path) -> None:
    """Stop the plane that runs on DIR. It finishes the requests in progress first."""
    data = data.expanduser().absolute()
    instance = read_instance(data)
    if instance is None:
        click.echo(f"no plane is running on {data}")
        return
    if not stop(instance):
        raise click.ClickException(
            f"process {instance.pid} did not stop within 30 s. See {data / 'homeport.log'}; "
            f"'kill -9 {instance.pid}' is safe: no stored object is lost"
        )
    click.echo(f"stopped (process {instance.pid})")
