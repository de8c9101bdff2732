"""homeport move"""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click
from click.core import ParameterSource

from homeport.cli.option import data as data_option
from homeport.cli.where import Where

if TYPE_CHECKING:
    from homeport.move.graph import Selection
    from homeport.move.mover import Mover
    from homeport.move.side import Side

_PLACE = click.Path(path_type=Path, exists=True)


@click.command()
@click.option(
    "--to", metavar="KUBECONFIG|DIR", type=_PLACE, required=True, help="Move to this plane, or into this directory."
)
@click.option("--to-context", metavar="NAME", default="", help="Use this context of --to (default: the current one).")
@click.option(
    "--from",
    "from_",
    metavar="KUBECONFIG|DIR",
    type=_PLACE,
    help="Move from this plane, or out of this directory (default: $KUBECONFIG, or else the plane in --data).",
)
@click.option(
    "--from-context", metavar="NAME", default="", help="Use this context of --from (default: the current one)."
)
@click.option("-n", "--namespace", default="", help="Move only this namespace (default: all namespaces).")
@click.option("--dry-run", is_flag=True, help="Print what would move, in order, and every problem; change nothing.")
@click.option("--abort", is_flag=True, help="Undo a move that has not deleted anything yet, and resume the source.")
@data_option
@click.pass_context
def command(
    ctx: click.Context,
    to: Path,
    to_context: str,
    from_: Path | None,
    from_context: str,
    namespace: str,
    dry_run: bool,
    abort: bool,
    data: Path,
) -> None:
    """Move clusters, and everything that belongs to them, to another plane. Their machines keep running.

    Run the same command again after any interruption: it continues.
    """
    if dry_run and abort:
        raise click.UsageError("--dry-run and --abort exclude each other")
    named = ctx.get_parameter_source("data") is ParameterSource.COMMANDLINE
    source = Where(data, named, from_, from_context, namespace)
    target = Where(data, False, to, to_context, namespace)
    _call(source, target, "dry-run" if dry_run else "abort" if abort else "move")


def _call(source: Where, target: Where, action: str) -> None:
    from homeport.client.config import ConfigError
    from homeport.client.errors import ApiError
    from homeport.client.wire.quick import import_aiohttp
    from homeport.move import MoveRefused

    import_aiohttp()
    try:
        asyncio.run(_work(source, target, action))
    except MoveRefused as error:
        raise click.ClickException("the move is not possible:\n  " + "\n  ".join(error.problems)) from error
    except ConfigError as error:
        raise click.ClickException(str(error)) from error
    except ApiError as error:
        advice = "If the move has started, the source is paused: run the same command again to continue it"
        raise click.ClickException(f"{error}\n{advice}, or with --abort to undo it.") from error


async def _work(source: Where, target: Where, action: str) -> None:
    from homeport.move.mover import Mover, Options

    async with _side(source) as here, _side(target, scratch=action == "dry-run") as there:
        options = Options(source.namespace, str(target.kubeconfig))
        mover = Mover(here, there, options, click.echo)
        await _prepare(here, there)
        if action == "dry-run":
            await _show(mover)
        elif action == "abort":
            done = await mover.abort()
            click.echo("the move is aborted, and the source is resumed" if done else "no move is in progress")
        else:
            await _move(mover, target)
            _clear(here)


async def _prepare(here: Side, there: Side) -> None:
    from homeport.move.directory import Directory

    if isinstance(here, Directory):
        here.check_source()
    if isinstance(there, Directory):
        await there.prepare(here)


async def _move(mover: Mover, target: Where) -> None:
    count = await mover.run()
    if count:
        click.echo(f"moved {count} objects to {target.kubeconfig}")
    else:
        click.echo("there is nothing to move")


def _clear(here: Side) -> None:
    from homeport.move.directory import Directory

    if isinstance(here, Directory):
        here.clear()


async def _show(mover: Mover) -> None:
    from homeport.capi.name import MOVE_LABEL
    from homeport.move import MoveRefused

    selection, problems = await mover.plan()
    for number, line in enumerate(_lines(selection), 1):
        click.echo(f"{number:>4}  {line}")
    click.echo(f"{len(selection.nodes)} objects would be created in this order, and deleted in the reverse order")
    for node in selection.left:
        click.echo(f"stays: {node} belongs to nothing that moves (the label {MOVE_LABEL} would move it)")
    if problems:
        raise MoveRefused(problems)


def _lines(selection: Selection) -> list[str]:
    paused = {node.uid for node in selection.roots() if not node.paused}
    found = []
    for node in (node for group in selection.groups() for node in group):
        notes = ["paused first"] if node.uid in paused else []
        notes += ["also stays on the source"] if node.uid in selection.kept else []
        found.append(f"{node}{'  (' + ', '.join(notes) + ')' if notes else ''}")
    return found


@asynccontextmanager
async def _side(where: Where, *, scratch: bool = False) -> AsyncIterator[Side]:
    """`scratch`: a directory is not written to; another one stands in for it."""
    from homeport.client.http import HttpClient
    from homeport.move.directory import Directory

    if where.kubeconfig is not None and where.kubeconfig.is_dir():
        with tempfile.TemporaryDirectory() as empty:
            yield Directory(Path(empty) if scratch else where.kubeconfig)
        return
    async with HttpClient(where.load()) as client:
        yield client
