"""homeport restore"""

from __future__ import annotations

from pathlib import Path

import click

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
    try:
        restored = restore_archive(file.absolute(), settings.database, settings.pki)
    except (ArchiveError, StoreError) as error:
        raise click.ClickException(str(error)) from error
    click.echo(f"restored {restored.objects} objects from {file} into {settings.data}")
    if restored.replaced is not None:
        click.echo(f"what was there is kept as {restored.replaced}")
    click.echo("next: homeport up")
