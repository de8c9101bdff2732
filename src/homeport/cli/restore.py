"""homeport restore"""

from __future__ import annotations

from pathlib import Path

import click

from homeport.app.hint import up_command
from homeport.app.settings import Settings
from homeport.cli.option import data as data_option


@click.command()
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
@data_option
def command(file: Path, data: Path) -> None:
    """Put the backup FILE in place of what DIR holds. The plane must be down; the old state is kept aside."""
    from homeport.app.archive import ArchiveError, restore_archive
    from homeport.store import StoreError

    settings = Settings.make(data)
    site = settings.simulated_before
    try:
        restored = restore_archive(file.absolute(), settings.database, settings.pki, settings.simulated)
    except (ArchiveError, StoreError) as error:
        raise click.ClickException(str(error)) from error
    click.echo(f"restored {restored.objects} objects from {file} into {settings.data}")
    if restored.replaced is not None:
        click.echo(f"what was there is kept as {restored.replaced}")
    if site:
        click.echo(
            f"the simulated site in {settings.simulated} stays as it is, with all that happened since the backup"
        )
    click.echo(f"next: {up_command(settings)}")
