"""homeport top"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any

import click

from homeport.cli.group import Group
from homeport.cli.output import output_option, print_data, print_table
from homeport.cli.where import Where, ask, located

if TYPE_CHECKING:
    from homeport.app.machine.size import Size
    from homeport.client.http import HttpClient
    from homeport.client.protocol import Key

_CLUSTER = "cluster.x-k8s.io/cluster-name"


@click.group(cls=Group)
def command() -> None:
    """Show how much CPU, memory and disk clusters and machines have at their provider."""


@command.command()
@click.option("-A", "--all-namespaces", is_flag=True, help="Show the clusters of all namespaces.")
@output_option("json", "yaml")
@located
def clusters(where: Where, all_namespaces: bool, output: str | None) -> None:
    """Show the sums of each cluster's machines, the largest memory first."""
    from homeport.app.machine.size import shown, total

    sizes: dict[tuple[str, str], list[Size]] = defaultdict(list)
    for machine in _read(where, all_namespaces):
        sizes[machine["namespace"], machine["cluster"]].append(machine["size"])
    sums = sorted(((key, len(each), total(each)) for key, each in sizes.items()), key=lambda e: -e[2].memory_bytes)
    if output is not None:
        print_data([{"namespace": k[0], "cluster": k[1], "machines": n, **_plain(s)} for k, n, s in sums], output)
        return
    rows = [
        (namespace, name, str(count), f"{size.cpus:g}", shown(size.memory_bytes), shown(size.disk_bytes))
        for (namespace, name), count, size in sums
    ]
    print_table([("NAMESPACE", "CLUSTER", "MACHINES", "CPU", "MEMORY", "DISK"), *rows])


@command.command()
@click.option("-A", "--all-namespaces", is_flag=True, help="Show the machines of all namespaces.")
@output_option("json", "yaml")
@located
def machines(where: Where, all_namespaces: bool, output: str | None) -> None:
    """Show each machine, the largest memory first."""
    from homeport.app.machine.size import shown

    found = sorted(_read(where, all_namespaces), key=lambda each: -each["size"].memory_bytes)
    if output is not None:
        plain = [{**{k: v for k, v in each.items() if k != "size"}, **_plain(each["size"])} for each in found]
        print_data(plain, output)
        return
    rows = []
    for each in found:
        size = each["size"]
        numbers = (f"{size.cpus:g}" if size.cpus else "-", shown(size.memory_bytes), shown(size.disk_bytes))
        rows.append((each["namespace"], each["machine"], each["cluster"], *numbers))
    print_table([("NAMESPACE", "MACHINE", "CLUSTER", "CPU", "MEMORY", "DISK"), *rows])


def _plain(size: Size) -> dict[str, Any]:
    import msgspec

    made: dict[str, Any] = msgspec.to_builtins(size)
    return made


def _read(where: Where, everywhere: bool) -> list[dict[str, Any]]:
    """Every Machine with the size of its infrastructure object."""
    from homeport.app.machine.find import MACHINE
    from homeport.app.machine.size import Size, size_of
    from homeport.client.errors import NotFound
    from homeport.client.protocol import Query
    from homeport.client.restmapper import RestMapper

    async def work(client: HttpClient, key: Key) -> list[dict[str, Any]]:
        space = "" if everywhere else key.namespace
        kinds = RestMapper(client)
        infra: dict[tuple[str, str, str], Size] = {}
        for api, kind in (
            ("infrastructure.cluster.x-k8s.io/v1beta1", "NutanixMachine"),
            ("infrastructure.cluster.x-k8s.io/v1alpha1", "KubevirtMachine"),
        ):
            try:
                listed = await client.list(await kinds.find(api, kind), Query(namespace=space))
            except NotFound:
                continue  # its provider is not installed
            infra |= {(kind, each.namespace, each.name): size_of({**each, "kind": kind}) for each in listed.items}
        made = []
        for each in (await client.list(MACHINE, Query(namespace=space))).items:
            ref = (each.get("spec") or {}).get("infrastructureRef") or {}
            size = infra.get((str(ref.get("kind")), each.namespace, str(ref.get("name"))), Size())
            cluster = str((each.get("spec") or {}).get("clusterName") or "")
            made.append({"namespace": each.namespace, "machine": each.name, "cluster": cluster, "size": size})
        return made

    return ask(where, "", work)
