"""homeport console"""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from homeport.cli.where import Where, ask, located

if TYPE_CHECKING:
    from homeport.client.http import HttpClient
    from homeport.client.protocol import Key


@click.command()
@click.argument("machine")
@click.option(
    "--tail", metavar="N", type=click.IntRange(1), help="Print the last N lines (default: all that are kept)."
)
@located
def command(where: Where, machine: str, tail: int | None) -> None:
    """Print the console log of the VM of Machine MACHINE.

    It shows what the image, cloud-init, kubeadm or k0s print while the machine starts. Simulated machines have one.
    Prism Central and Harvester have no API for the log of a console: the message then says where to look.
    """
    from homeport.app.doctor.console import read_simulated
    from homeport.app.machine.console import elsewhere
    from homeport.app.machine.find import NoMachine, find_machine

    async def work(client: HttpClient, key: Key) -> list[str]:
        found = await find_machine(client, key)
        consoles = await read_simulated(client)
        if found.vm in consoles:
            return consoles[found.vm]
        raise NoMachine(elsewhere(found, where.arguments(), simulated=bool(consoles)))

    lines = ask(where, machine, work, NoMachine)
    for line in lines[-tail:] if tail else lines:
        click.echo(line)
