"""homeport logs"""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from homeport.cli.output import output_option, print_data
from homeport.cli.where import Where, ask, located

if TYPE_CHECKING:
    from homeport.app.machine.record import Line
    from homeport.client.http import HttpClient
    from homeport.client.protocol import Key

_CLUSTERS = ("cluster", "tenantcluster", "clusterdeployment")


@click.command()
@click.argument("thing", metavar="KIND/NAME")
@click.option(
    "--tail", metavar="N", type=click.IntRange(1), help="Print the last N lines (default: all that are kept)."
)
@output_option("json", "yaml")
@located
def command(where: Where, thing: str, tail: int | None, output: str | None) -> None:
    """Print what the controllers have logged about one object, in order of time.

    For cluster/NAME (or tenantcluster/NAME, clusterdeployment/NAME), these are the lines about the cluster and
    everything that belongs to it; for machine/NAME and others, the lines about objects of this name. The plane
    keeps the newest lines of each controller in memory.
    """
    from homeport.app.machine.record import NoLog, read_lines
    from homeport.app.tree.read import NoCluster

    kind, slash, name = thing.partition("/")
    if not slash or not name or not kind:
        raise click.UsageError(f"{thing!r}: expected KIND/NAME, for example cluster/harbour")

    async def work(client: HttpClient, key: Key) -> list[Line]:
        from homeport.app.doctor.diagnosis import Commands
        from homeport.app.doctor.gather import gather

        if kind.lower() not in _CLUSTERS:
            lines = await read_lines(client, [str(key)])
            if not lines:  # objects that are gone may have some
                await _require(client, kind, key)
            return lines
        facts = await gather(client, key, Commands())
        return await read_lines(client, [f"{each.namespace}/{each.name}" for each in facts.objects])

    found = ask(where, name, work, NoCluster, NoLog)
    found = found[-tail:] if tail else found
    if output is not None:
        print_data([each._asdict() for each in found], output)
        return
    for each in found:
        click.echo(f"{each.time[:19]} {each.level:<7} {each.controller} {each.object}: {each.text}")
    if not found:
        click.echo(f"no controller has logged anything about {thing} yet", err=True)


async def _require(client: HttpClient, kind: str, key: Key) -> None:
    """Raises NotFound: a name without a log may be a mistyped one."""
    from homeport.client.errors import NotFound
    from homeport.client.protocol import Key as Name
    from homeport.client.restmapper import RestMapper

    listed = await RestMapper(client).listed()
    kinds = [each for each in listed if kind.lower() in (each.kind.lower(), each.plural)]
    if not kinds:
        raise click.ClickException(f"{kind!r}: the plane has no such kind")
    for number, each in enumerate(kinds, start=1):
        try:
            await client.get(each, key if each.namespaced else Name("", key.name))
            return
        except NotFound:
            if number == len(kinds):
                raise
