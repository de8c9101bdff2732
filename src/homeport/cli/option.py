"""Options that several verbs share."""

from __future__ import annotations

from pathlib import Path

import click

data = click.option(
    "--data",
    metavar="DIR",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("~/.homeport"),
    show_default=True,
    envvar="HOMEPORT_DATA",
    help="Keep the plane's database, keys and kubeconfig in DIR.",
)
