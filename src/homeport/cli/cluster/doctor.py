"""homeport doctor"""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING

import click

from homeport.app.settings import Settings
from homeport.cli.output import listing_option, print_found, print_lines
from homeport.cli.where import Where, ask, cluster_name, located

if TYPE_CHECKING:
    from homeport.app.doctor.diagnosis import Commands, Diagnosis
    from homeport.cli.plane.overview import Line
    from homeport.client.http import HttpClient
    from homeport.client.protocol import Key


@click.command()
@click.argument("what", metavar="[cluster NAME]", nargs=-1)
@click.option("-A", "--all-namespaces", is_flag=True, help="Examine the clusters of all namespaces.")
@listing_option
@located
def command(where: Where, what: tuple[str, ...], all_namespaces: bool, output: str | None) -> None:
    """Find out what is wrong with a cluster, or with all clusters of the namespace, and how to cure it.

    NAME is a Cluster, a TenantCluster or a ClusterDeployment. The doctor reads objects, consoles of machines and the
    workload cluster, and changes nothing. Causes come first; what follows from them is listed below them.

    The exit code is 0 if nothing is wrong, and 1 if something is, or if the plane does not answer.
    """
    from homeport.app.doctor.examine import examine
    from homeport.app.doctor.gather import gather
    from homeport.app.tree.read import NoCluster

    name = cluster_name(what)

    async def work(client: HttpClient, key: Key) -> list[Diagnosis]:
        # Without a name, only a namespace that is given limits the search.
        everywhere = all_namespaces or (not name and not where.namespace)
        return examine(await gather(client, key, _commands(where), everywhere=everywhere, ask_providers=True))

    found = ask(where, name, work, NoCluster)
    names = dict.fromkeys((each.kind, each.object.rpartition("/")[2]) for each in found)
    print_found(output, found, names, lambda wide: print_lines(_lines(found, wide=wide)))
    raise SystemExit(1 if any(each.serious for each in found) else 0)


def _commands(where: Where) -> Commands:
    from homeport.app.doctor.diagnosis import Commands

    if where.from_environment:
        return Commands("", where.place())
    file = where.kubeconfig or Settings.make(where.data).kubeconfig
    return Commands(str(file), where.place())


def _lines(found: list[Diagnosis], *, wide: bool = False) -> list[Line]:
    from homeport.cli.plane.overview import Line

    if not found:
        return [Line("nothing is wrong")]
    made: list[Line] = []
    for number, each in enumerate(found, 1):
        head, *rest = each.message.strip().split("\n")
        style = "red" if each.serious else "yellow"
        made.append(Line(f"{number}. {each.place}: {head} ({each.cause})", style))
        made += [Line(textwrap.indent(line, "   ")) for line in rest]
        if wide:
            made.append(
                Line(f"   layer: {each.layer}; {'serious' if each.serious else 'nothing is broken yet'}", "dim")
            )
        if each.consequences:
            made.append(Line(f"   consequences: {', '.join(each.consequences)}", "dim"))
        if each.cure:
            made.append(Line(f"   next: {each.cure}"))
    return made
