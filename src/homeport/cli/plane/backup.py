"""homeport backup"""

from __future__ import annotations

import shutil
import uuid
from dataclasses import dataclass
from pathlib import Path

import click

from homeport import __version__
from homeport.app.settings import Settings
from homeport.cli.option import data as data_option
from homeport.cli.output import check_folder


@click.command()
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
@data_option
@click.option("--force", is_flag=True, help="Replace FILE if it exists.")
def command(file: Path, data: Path, force: bool) -> None:
    """Write database, keys and volumes of DIR to FILE (mode 0600). Works whether or not the plane is running."""
    from homeport.app.backup.archive import write_archive
    from homeport.app.backup.note import note_backup
    from homeport.client.errors import ApiError
    from homeport.store import StoreError

    settings = Settings.make(data)
    target = file.expanduser().absolute()
    if target.exists() and not force:
        raise click.ClickException(f"{file} already exists: choose another name, or use --force to replace it")
    _check(settings, target)
    try:
        copied = _copy(settings)
    except (ApiError, StoreError, OSError) as error:
        raise click.ClickException(str(error)) from error
    try:
        write_archive(
            copied.database,
            settings.pki,
            target,
            version=__version__,
            simulated=copied.simulated,
            volumes=copied.volumes,
        )
        note_backup(settings.data, target)
    finally:
        copied.database.unlink(missing_ok=True)
        for folder in (copied.simulated, copied.volumes):
            if folder is not None and folder != settings.simulated:
                shutil.rmtree(folder, ignore_errors=True)
    click.echo(
        f"written: {file} ({target.stat().st_size / 1024 / 1024:.1f} MiB). It contains keys and secrets: store it "
        "safely"
    )


def _check(settings: Settings, target: Path) -> None:
    check_folder(target)
    if not settings.database.exists():
        raise click.ClickException(
            f"{settings.data} contains no database, so there is nothing to back up: check --data"
        )


@dataclass(frozen=True, slots=True)
class _Copied:
    database: Path
    simulated: Path | None = None
    volumes: Path | None = None


def _copy(settings: Settings) -> _Copied:
    """Consistent copies of the database, and of the simulated site and volumes, if there are any: by the running plane,
    or by ourselves when there is none."""
    from homeport.app.plane.instance import BACKUP_PATH, read_instance

    if read_instance(settings.data) is not None:
        from homeport.app.remote import ask

        found = {name: Path(path) for name, path in ask(settings.kubeconfig, BACKUP_PATH).items() if path}
        return _Copied(found["database"], found.get("simulated"), found.get("volumes"))
    import asyncio

    from homeport.app.backup.copy import copy_closed, copy_volumes

    site = settings.simulated if settings.simulated_before else None
    database = asyncio.run(copy_closed(settings))
    return _Copied(database, site, asyncio.run(copy_volumes(settings, uuid.uuid4().hex)))
