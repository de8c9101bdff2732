"""homeport tree"""

from __future__ import annotations

import asyncio
import shutil
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar, cast

import click

from homeport.cli.output import listing_option, print_data, print_lines, print_names, reader_gone
from homeport.cli.where import Where, ask, cluster_name, located

if TYPE_CHECKING:
    from homeport.app.tree.branch import Tree
    from homeport.cli.plane.overview import Line
    from homeport.client.protocol import Client, Key

F = TypeVar("F", bound=Callable[..., Any])
View = Callable[[Sequence["Tree"], "int | None"], "list[Line]"]

_PAUSE_SECONDS = 2.0
_CLEAR = "\x1b[H\x1b[J"


def tree_options(fn: F) -> F:
    """Options of every command that draws trees."""
    made: Any = fn
    for decorate in (
        listing_option,
        click.option("-w", "--watch", is_flag=True, help="Show changes as they happen, until Ctrl-C."),
        click.option("--conditions", is_flag=True, help="Show all conditions of every object."),
        click.option("--all", "everything", is_flag=True, help="Also show templates, configurations and MachineSets."),
    ):
        made = decorate(made)
    return cast(F, located(made))


@click.command()
@click.argument("what", metavar="[[cluster] NAME]", nargs=-1)
@click.option("-A", "--all-namespaces", is_flag=True, help="Show the clusters of all namespaces.")
@tree_options
def command(
    where: Where,
    what: tuple[str, ...],
    all_namespaces: bool,
    everything: bool,
    conditions: bool,
    watch: bool,
    output: str | None,
) -> None:
    """Draw the objects of cluster NAME as a tree, or of all clusters in the namespace if no NAME is given.

    NAME is a Cluster, a TenantCluster or a ClusterDeployment.
    """
    from homeport.cli.cluster.drawing import draw
    from homeport.cli.plane.overview import Line

    def view(trees: Sequence[Tree], width: int | None) -> list[Line]:
        made: list[Line] = []
        for tree in trees:
            made += [*([Line("")] if made else []), *draw(tree, width=width, conditions=conditions)]
        return made or [Line("No clusters here. Create one with 'homeport create cluster NAME'")]

    name = cluster_name(what)
    if name and all_namespaces:
        raise click.UsageError("use either NAME or --all-namespaces")
    show(where, name, view, everything=everything, watch=watch, output=output, anywhere=all_namespaces)


def show(
    where: Where, name: str, view: View, *, everything: bool, watch: bool, output: str | None, anywhere: bool = False
) -> None:
    """Reads the trees and prints them: once, or again and again."""
    from homeport.app.tree.read import NoCluster

    if watch and output not in (None, "wide"):
        raise click.UsageError(f"--watch shows text: use either --watch or -o {output}")

    async def work(client: Client, key: Key) -> None:
        from homeport.app.tree.grow import grow
        from homeport.app.tree.read import Reader
        from homeport.runtime.clock import SystemClock

        reader, last = Reader(client), None
        while True:
            found = await (reader.read(key) if name else reader.read_all("" if anywhere else key.namespace))
            trees = grow(found, SystemClock().now(), everything=everything or output == "wide")
            if output in ("json", "yaml"):
                print_data(trees[0] if name else trees, output)
                return
            if output == "name":
                print_names((each.kind, each.name) for tree in trees for each in tree.root.walk())
                return
            last = _print(view, trees, last, watch=watch)
            if not watch or reader_gone():
                return
            await asyncio.sleep(_PAUSE_SECONDS)

    try:
        ask(where, name, work, NoCluster)
    except KeyboardInterrupt:
        raise SystemExit(0) from None


def _print(view: View, trees: Sequence[Tree], last: object, *, watch: bool) -> object:
    """On a terminal the new view replaces the old one; elsewhere it is printed if more than ages has changed."""
    terminal = sys.stdout.isatty()
    size = shutil.get_terminal_size()
    lines = view(trees, size.columns if terminal else None)
    if watch and terminal:
        fitting = lines[: size.lines - 1]
        click.echo(_CLEAR, nl=False)
        print_lines(fitting)
        if len(fitting) < len(lines):
            click.secho(f"and {len(lines) - len(fitting)} more lines", dim=True, nl=False)
        return None
    essence = _without_ages(trees)
    if essence != last:
        if last is not None:
            click.echo()
        print_lines(lines)
    return essence


def _without_ages(trees: Sequence[Tree]) -> object:
    return [
        [(each.kind, each.name, each.state, each.replicas, each.version, each.problem) for each in tree.root.walk()]
        for tree in trees
    ]
