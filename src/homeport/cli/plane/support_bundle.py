"""homeport support-bundle"""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

from homeport.app.settings import Settings
from homeport.cli.output import check_folder
from homeport.cli.where import Where, ask, located

if TYPE_CHECKING:
    from homeport.client.http import HttpClient
    from homeport.client.protocol import Key

_NAMED = 5  # of what is not included; the archive lists all


@click.command()
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False), required=False)
@located
def command(where: Where, file: Path | None) -> None:
    """Write objects, Events, logs, consoles, metrics, findings and versions to FILE, without secrets.

    FILE is a tar.gz archive (default: homeport-support-TIME.tar.gz in this directory) that only you can read. Values of
    Secrets, bootstrap data, kubeconfigs, tokens and passwords are removed from all of it. Look through it before you
    send it to anybody.
    """
    from homeport.app.support.bundle import Bundle

    target = file or Path(time.strftime("homeport-support-%Y%m%d-%H%M%S.tar.gz"))
    check_folder(target)

    async def work(client: HttpClient, key: Key) -> Bundle:
        del key
        made = Bundle(client)
        logs = [] if where.kubeconfig is not None or where.from_environment else _logs(where)
        await made.collect(os.environ, logs)
        return made

    made = ask(where, "", work)
    made.write(target)
    click.echo(f"{target}: {len(made.files)} files, {target.stat().st_size // 1024} KiB, secrets removed")
    for each in made.missing[:_NAMED]:
        click.echo(f"not included: {each}", err=True)
    if len(made.missing) > _NAMED:
        click.echo(f"and {len(made.missing) - _NAMED} more are not included: see missing.txt in the archive", err=True)


def _logs(where: Where) -> list[Path]:
    log = Settings.make(where.data).log
    return [log, *(log.with_name(f"{log.name}.{number}") for number in (1, 2, 3))]
