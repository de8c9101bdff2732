"""homeport top"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from homeport.cli.group import Group
from homeport.cli.output import listing_option, print_found, print_table
from homeport.cli.where import Where, ask, located

if TYPE_CHECKING:
    from homeport.app.machine.load import ClusterLoad, MachineLoad
    from homeport.app.machine.size import Size
    from homeport.app.machine.usage import Measured, Usage
    from homeport.client.http import HttpClient
    from homeport.client.protocol import Key

_FIGURES = ("CPU", "USED", "MEMORY", "USED", "DISK")


@click.group(cls=Group)
def command() -> None:
    """Show CPU, memory and disk of clusters and machines: what they have at their provider, and what they use.

    Usage comes from the metrics-server of each workload cluster. Without one it is shown as "-".
    """


@command.command()
@click.option("-A", "--all-namespaces", is_flag=True, help="Show the clusters of all namespaces.")
@listing_option
@located
def clusters(where: Where, all_namespaces: bool, output: str | None) -> None:
    """Show the sums of each cluster's machines, the largest memory first."""
    from homeport.app.machine.load import sum_clusters

    found = sum_clusters(*_read(where, all_namespaces))

    def text(wide: bool) -> None:
        more = ("MEASURED",) if wide else ()
        print_table([("NAMESPACE", "CLUSTER", "MACHINES", *_FIGURES, *more), *(_cluster_row(e, wide) for e in found)])
        _notes(found)

    print_found(output, found, (("cluster", each.cluster) for each in found), text)


def _cluster_row(each: ClusterLoad, wide: bool) -> tuple[str, ...]:
    more = (f"{each.measured} of {each.machines}",) if wide else ()
    figures = _figures(each.size, each.used if each.measured else None)
    return (each.namespace, each.cluster, str(each.machines), *figures, *more)


@command.command()
@click.option("-A", "--all-namespaces", is_flag=True, help="Show the machines of all namespaces.")
@listing_option
@located
def machines(where: Where, all_namespaces: bool, output: str | None) -> None:
    """Show each machine, the largest memory first."""
    from homeport.app.machine.load import sum_clusters

    read, measured = _read(where, all_namespaces)
    found = sorted(read, key=lambda each: (-each.size.memory_bytes, each.namespace, each.machine))

    def text(wide: bool) -> None:
        more = ("NODE",) if wide else ()
        print_table([("NAMESPACE", "MACHINE", "CLUSTER", *_FIGURES, *more), *(_machine_row(e, wide) for e in found)])
        _notes(sum_clusters(read, measured))

    print_found(output, found, (("machine", each.machine) for each in found), text)


def _machine_row(each: MachineLoad, wide: bool) -> tuple[str, ...]:
    more = (each.node or "-",) if wide else ()
    return (each.namespace, each.machine, each.cluster, *_figures(each.size, each.used), *more)


def _figures(size: Size, used: Usage | None) -> tuple[str, ...]:
    from homeport.app.machine.size import shown

    cpus = f"{size.cpus:g}" if size.cpus else "-"
    busy = "-" if used is None else f"{used.cpus:.2f}"
    memory = "-" if used is None else f"{used.memory_bytes / 1024**3:.1f}Gi"
    return (cpus, busy, shown(size.memory_bytes), memory, shown(size.disk_bytes))


def _notes(found: Sequence[ClusterLoad]) -> None:
    """Why usage is missing, on stderr: the table stays a table."""
    if not found:
        click.echo("there are no Machines here (-A shows all namespaces)", err=True)
    for each in found:
        if each.unmeasured:
            click.echo(f"usage of cluster {each.namespace}/{each.cluster} is unknown: {each.unmeasured}", err=True)


def _read(where: Where, everywhere: bool) -> tuple[list[MachineLoad], dict[Key, Measured]]:
    from homeport.app.machine.load import read_load
    from homeport.cli.reach import read_dial

    async def work(client: HttpClient, key: Key) -> tuple[list[MachineLoad], dict[Key, Measured]]:
        dial = await read_dial(client, "", None)
        return await read_load(client, "" if everywhere else key.namespace, dial.proxy)

    return ask(where, "", work)
