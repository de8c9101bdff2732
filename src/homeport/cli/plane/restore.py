"""homeport restore"""

from __future__ import annotations

from pathlib import Path

import click
from msgspec import structs

from homeport.app.hint import up_command
from homeport.app.plane.earlier import read_earlier, write_earlier
from homeport.app.settings import Settings, simulated_sites
from homeport.app.simulators import NAMES
from homeport.cli.option import data as data_option


@click.command()
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
@data_option
def command(file: Path, data: Path) -> None:
    """Replace the contents of DIR with the backup FILE. Stop the plane first. The old state is kept next to it."""
    from homeport.app.backup.archive import ArchiveError, restore_archive
    from homeport.store import StoreError

    settings = Settings.make(data)
    site = settings.simulated_before
    held = any(settings.volumes.glob("*"))
    try:
        restored = restore_archive(
            file.absolute(), settings.database, settings.pki, settings.simulated, settings.volumes
        )
    except (ArchiveError, StoreError) as error:
        raise click.ClickException(str(error)) from error
    if not site and (names := [each for each in simulated_sites(settings.simulated) if each in NAMES]):
        # The next start would otherwise look for the machines of the restored site on the real network.
        write_earlier(settings.data, structs.replace(read_earlier(settings.data), simulators=tuple(names)))
    click.echo(f"restored {restored.objects} objects from {file} into {settings.data}")
    if restored.replaced is not None:
        click.echo(f"the previous data is kept in {restored.replaced}")
    if site:
        click.echo(
            f"the simulators' state in {settings.simulated} is unchanged: it includes changes made since the backup"
        )
    if held:
        click.echo(f"the volumes in {settings.volumes} are unchanged: they include changes made since the backup")
    click.echo(f"next: {up_command(settings)}")
