"""homeport completion"""

from __future__ import annotations

import click


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def command(shell: str) -> None:
    """Print a script that completes homeport's commands and options in SHELL.

    \b
    bash:  source <(homeport completion bash)                      in ~/.bashrc
    zsh:   source <(homeport completion zsh)                       in ~/.zshrc
    fish:  homeport completion fish > ~/.config/fish/completions/homeport.fish
    """
    from click.shell_completion import BashComplete, FishComplete, ZshComplete

    from homeport.cli.main import group

    chosen = {"bash": BashComplete, "zsh": ZshComplete, "fish": FishComplete}[shell]
    click.echo(chosen(group, {}, "homeport", "_HOMEPORT_COMPLETE").source())
