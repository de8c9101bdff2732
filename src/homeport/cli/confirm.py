"""Asks before something that can't be taken back."""

from __future__ import annotations

import click


def confirm(question: str) -> None:
    """Goes on only after a yes. Without an answer, as in a script, the error names the option that replaces it."""
    try:
        yes = click.confirm(question, err=True)
    except click.Abort:
        click.echo(err=True)
        raise click.ClickException("no answer, so nothing was changed: add --yes to go on without a question") from None
    if not yes:
        raise click.ClickException("nothing was changed")
