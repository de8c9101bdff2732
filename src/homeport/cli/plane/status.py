"""homeport status"""

from __future__ import annotations

import contextlib
import shutil
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING

import click
import msgspec

from homeport.app.hint import up_command
from homeport.cli.output import listing_option, print_data, print_found, print_lines, reader_gone
from homeport.cli.plane.target import Down, Target, choose, place
from homeport.cli.where import Where, located

if TYPE_CHECKING:
    from homeport.app.report.description import Description
    from homeport.cli.plane.overview import Line

NOT_RUNNING = 3
_UNFINISHED = 20
_WATCH_SECONDS = 2.0
_LEAST_ROWS = 10  # of clusters and what is stuck
_LEAST_WATCHED = 5  # on a terminal that is not even that high


@click.command()
@click.option("--controllers", is_flag=True, help="Also show components, controllers and every unfinished object.")
@listing_option
@click.option("-w", "--watch", is_flag=True, help="Show it again whenever it changes, until Ctrl-C.")
@located
def command(where: Where, controllers: bool, output: str | None, watch: bool) -> None:
    """Show a plane: its address, its clusters, what is in progress and what is stuck.

    The plane is that of --kubeconfig, else of --data, else of $KUBECONFIG, else the one that runs on ~/.homeport. The
    output names the one that was used. On a Kubernetes cluster it shows the Deployments of Homeport and what the
    objects report. With --namespace, only clusters of that namespace are shown.

    The exit code is 0 if the plane runs, 3 if it does not run, and 1 if it runs but does not answer.
    """
    try:
        target = choose(where)
    except Down as down:
        _not_running(down, output)
        raise SystemExit(NOT_RUNNING) from None
    show = partial(_show, target, output, controllers=controllers, watched=watch)

    def ask() -> Description:
        return _within(target.ask(), where.namespace)

    if not watch:
        show(ask())
        return
    with contextlib.suppress(KeyboardInterrupt):
        _watch(ask, show)


def _within(found: Description, namespace: str) -> Description:
    if not namespace:
        return found
    return msgspec.structs.replace(found, clusters=[each for each in found.clusters if each.namespace == namespace])


def _show(target: Target, output: str | None, found: Description, *, controllers: bool, watched: bool) -> None:
    print_found(
        output,
        {**target.facts, **msgspec.to_builtins(found)},
        ((each.kind, each.name) for each in found.clusters),
        lambda wide: print_lines(_lines(target, found, controllers=controllers or wide, watched=watched)),
    )


def _watch(ask: Callable[[], Description], show: Callable[[Description], None]) -> None:
    """On a terminal in place; elsewhere one after the other, and only what has changed."""
    before: object = None
    while not reader_gone():
        found = ask()
        steady = [msgspec.structs.replace(each, seconds=0.0) for each in found.clusters]
        now = (steady, found.stuck, found.under_way)
        if sys.stdout.isatty():
            click.clear()
            show(found)
        elif now != before:
            if before is not None:
                click.echo("---")
            show(found)
            sys.stdout.flush()
        before = now
        time.sleep(_WATCH_SECONDS)


def _rows(lines: Sequence[str], width: int) -> int:
    """On a terminal, where long lines wrap."""
    return sum(max(1, -(-len(each) // width)) for each in lines)


def _not_running(down: Down, output: str | None) -> None:
    if output in ("json", "yaml"):
        print_data({**place(down.settings), "running": False}, output)
        return
    click.echo(str(down), err=output == "name")
    click.echo(f"next: {up_command(down.settings)}", err=output == "name")


def _lines(target: Target, found: Description, *, controllers: bool, watched: bool) -> Iterator[Line]:
    from homeport.cli.plane.overview import Line, overview, unfinished
    from homeport.cli.plane.overview import controllers as table

    head = list(target.head(found))
    body = partial(overview, found, command=target.command)
    width, height = shutil.get_terminal_size() if sys.stdout.isatty() else (None, None)
    fitting = None
    if width is not None and height is not None and not controllers:
        if watched and _rows(head, width) + len(body(width=width)) + 2 > height:
            # What changes is watched: the rest would push it off the screen.
            head = [each[:width] for each in head[: 1 if height < _LEAST_ROWS + 4 else 2]]
        fitting = max(_LEAST_WATCHED if watched else _LEAST_ROWS, height - _rows(head, width) - 2)
    for text in head:
        yield Line(text)
    yield Line("")
    for line in body(width=width, height=fitting):
        # A line that wraps would push the first ones off the screen.
        yield line._replace(text=line.text[:width]) if watched and width is not None else line
    if controllers:
        yield Line("")
        for part in found.parts:
            crashed = f", {part.crashes} crashes, the last: {part.error}" if part.crashes else ""
            yield Line(f"component {part.name}: {part.state}{crashed}")
        yield Line(f"{sum(found.objects.values())} objects of {len(found.objects)} kinds, revision {found.revision}")
        if found.controllers:
            yield Line("")
            yield from table(found.controllers)
            yield from unfinished(found.controllers, _UNFINISHED)
