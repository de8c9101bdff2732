"""homeport console"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from homeport.cli.plane.dial import options as dial_options
from homeport.cli.reach import read_dial
from homeport.cli.where import Where, ask, located

if TYPE_CHECKING:
    from homeport.client.http import HttpClient
    from homeport.client.protocol import Key


@click.command()
@click.argument("machine")
@click.option(
    "--tail", metavar="N", type=click.IntRange(1), help="Print the last N lines (default: all that are kept)."
)
@dial_options
@located
def command(where: Where, machine: str, tail: int | None, proxy: str, trust: Path | None) -> None:
    """Print the console log of the VM of Machine MACHINE.

    It shows what the image, cloud-init, kubeadm or k0s print while the machine starts. Simulated machines have one,
    and Harvester keeps one unless this is turned off; you need the right to read the credentials of the Cluster.
    Prism Central has no API for console logs: the message then says where to look.
    """
    from homeport.app.doctor.console import read_simulated
    from homeport.app.machine.console import elsewhere, read_kept
    from homeport.app.machine.find import NoMachine, find_machine

    async def work(client: HttpClient, key: Key) -> list[str]:
        found = await find_machine(client, key)
        consoles = await read_simulated(client)
        if found.vm in consoles:
            return consoles[found.vm]
        kept = await read_kept(client, found, await read_dial(client, proxy, trust))
        if kept:
            return kept
        raise NoMachine(elsewhere(found, where.arguments(), simulated=bool(consoles)))

    lines = ask(where, machine, work, NoMachine)
    for line in lines[-tail:] if tail else lines:
        click.echo(line)
