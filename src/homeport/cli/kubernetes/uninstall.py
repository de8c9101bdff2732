"""homeport uninstall"""

from __future__ import annotations

from pathlib import Path

import click

from homeport.cli import option
from homeport.cli.kubernetes.install import run


@click.command()
@click.option(
    "--kubeconfig",
    metavar="FILE",
    type=click.Path(path_type=Path, dir_okay=False, exists=True),
    required=True,
    help="Use the cluster of this kubeconfig.",
)
@option.context
@click.option(
    "--crds",
    is_flag=True,
    help="Also remove the definitions of all kinds. Refused while objects of these kinds exist.",
)
def command(kubeconfig: Path, context: str, *, crds: bool) -> None:
    """Remove Homeport's controllers and their permissions from a Kubernetes cluster.

    Objects of users, the definitions of their kinds and all machines stay. `homeport install` continues with them.
    """
    run(_uninstall(kubeconfig, context, definitions=crds))


async def _uninstall(kubeconfig: Path, context: str, *, definitions: bool) -> None:
    from homeport.app.kubernetes.uninstall import uninstall
    from homeport.app.platform import chosen
    from homeport.client import kubeconfig as files
    from homeport.client.http import HttpClient

    async with HttpClient(files.load(kubeconfig, context=context)) as client:
        await uninstall(client, chosen(), click.echo, definitions=definitions)
