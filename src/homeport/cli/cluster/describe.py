"""homeport describe"""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from homeport.cli.cluster.tree import show, tree_options
from homeport.cli.where import Where, cluster_name

if TYPE_CHECKING:
    from homeport.app.tree.branch import Branch, Tree
    from homeport.cli.plane.overview import Line


@click.command()
@click.argument("what", metavar="[cluster] NAME", nargs=-1, required=True)
@tree_options
def command(
    where: Where, what: tuple[str, ...], everything: bool, conditions: bool, watch: bool, output: str | None
) -> None:
    """Show how cluster NAME is, why it is not ready, and the tree of its objects.

    NAME is a Cluster, a TenantCluster or a ClusterDeployment. The tree has the platform's object, the Cluster, its
    infrastructure, its control plane, its machines with their Nodes, and its add-ons.
    """

    def view(trees: Sequence[Tree], width: int | None) -> list[Line]:
        from homeport.cli.cluster.drawing import draw
        from homeport.cli.plane.overview import Line

        [tree] = trees
        return [*_head(tree, width), Line(""), *draw(tree, width=width, conditions=conditions), *_notes(tree)]

    show(where, cluster_name(what), view, everything=everything, watch=watch, output=output)


def _head(tree: Tree, width: int | None) -> list[Line]:
    from homeport.cli.plane.overview import Line

    root = tree.root
    machines = [each for each in root.walk() if each.kind == "Machine"]
    ready = sum(each.healthy is True for each in machines)
    made = [
        Line(f"{root.kind} {root.name} in namespace {root.namespace}", "bold"),
        Line(f"State:     {root.state or 'not reported yet'}{_paused(root)}", "" if root.healthy else "red"),
        Line(f"Version:   {', '.join(_versions(root)) or '-'}"),
        Line(f"Machines:  {ready} of {len(machines)} ready"),
    ]
    if tree.cause:
        text = f"Cause:     {tree.cause}"
        lines = [text] if width is None else textwrap.wrap(text, width, subsequent_indent=" " * 11)
        made += [Line(line, "red" if not root.healthy else "yellow") for line in lines]
        if tree.since:
            made.append(Line(f"Since:     {tree.since}"))
    return made


def _paused(root: Branch) -> str:
    from homeport.capi.name import Condition
    from homeport.machinery.condition import is_true

    clusters = [each for each in root.walk() if each.kind == "Cluster"]
    return ", paused" if any(is_true(each.conditions, Condition.PAUSED) for each in clusters) else ""


def _versions(root: Branch) -> list[str]:
    """Of the Machines; of the control plane if there are none."""
    found = {each.version for each in root.walk() if each.kind == "Machine"} or {each.version for each in root.walk()}
    return sorted(found - {""})


def _notes(tree: Tree) -> list[Line]:
    from homeport.cli.plane.overview import Line

    if not tree.unreadable:
        return []
    return [Line(""), Line(f"Not shown, because you may not list them: {', '.join(tree.unreadable)}", "dim")]
