"""homeport ssh"""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import click

from homeport.cli.where import Where, ask, located

if TYPE_CHECKING:
    from homeport.client.http import HttpClient
    from homeport.client.protocol import Key


@click.command(context_settings={"ignore_unknown_options": True})
@click.argument("machine")
@click.argument("arguments", metavar="[COMMAND]...", nargs=-1, type=click.UNPROCESSED)
@click.option(
    "-l", "--user", default="", help="Log in as this user (default: the first user of the bootstrap configuration)."
)
@click.option(
    "-i",
    "--identity",
    metavar="FILE",
    type=click.Path(path_type=Path, dir_okay=False, exists=True),
    help="Use this private key (default: the one of ~/.ssh that the machine accepts).",
)
@click.option("--print", "only_print", is_flag=True, help="Print the ssh command instead of running it.")
@located
def command(
    where: Where, machine: str, arguments: tuple[str, ...], user: str, identity: Path | None, only_print: bool
) -> None:
    """Log in to Machine MACHINE with ssh, or run COMMAND there.

    Address, user and key come from the Machine and its bootstrap configuration. Simulated machines are reached through
    the proxy of their network. The exit code is that of ssh.
    """
    import shlex

    from homeport.app.machine import login
    from homeport.app.machine.find import NoMachine, find_machine

    own = login.read_public(Path("~/.ssh").expanduser())

    async def work(client: HttpClient, key: Key) -> list[str]:
        from homeport.cli.reach import read_dial

        found = await find_machine(client, key)
        chosen = user or login.choose_user(found)
        file = identity or login.choose_key(found, chosen, own)
        proxy = (await read_dial(client, "", None)).proxy
        return login.command(login.choose_address(found), chosen, file, proxy, arguments)

    words = ask(where, machine, work, NoMachine, login.NoLogin)
    if only_print:
        click.echo(shlex.join(words))
        return
    program = shutil.which("ssh")
    if program is None:
        raise click.ClickException(
            "ssh is not installed: install OpenSSH, or use --print and run the command elsewhere"
        )
    os.execv(program, words)  # noqa: S606  (the user asked for it)
