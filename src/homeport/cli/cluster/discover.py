"""homeport discover"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from homeport.cli.output import listing_option, print_found, print_table
from homeport.cli.reach import read_dial, source_options
from homeport.cli.where import Where, ask, located

if TYPE_CHECKING:
    from homeport.capi.platform import Entity
    from homeport.client.protocol import Client, Key

_KINDS = {
    "clusters": "cluster",
    "images": "image",
    "networks": "network",
    "storage": "storage",
    "hosts": "host",
    "failure-domains": "failure-domain",
}


@click.command()
@click.argument("kind", type=click.Choice(list(_KINDS)), required=False)
@source_options
@listing_option
@located
def command(
    where: Where, kind: str | None, output: str | None, proxy: str, trust: Path | None, **source: str | None
) -> None:
    """List what a hypervisor has that manifests can name: clusters, images, networks, storage, hosts, failure domains.

    Homeport reads it with the credentials of a ProviderConfig, a Cluster, a Credential or a Secret of the plane, from
    the machine on which this command runs. On a plane with --sim it reads the simulated hypervisors.
    """
    origin, found = read_entities(where, proxy, trust, source)
    found = [each for each in found if kind is None or each.kind == _KINDS[kind]]

    def text(wide: bool) -> None:
        click.echo(f"{origin}\n")
        print_table(_rows(found, wide=wide))

    print_found(output, [as_dict(each) for each in found], ((each.kind, each.name) for each in found), text)


def read_entities(
    where: Where, proxy: str, trust: Path | None, source: dict[str, str | None]
) -> tuple[str, Sequence[Entity]]:
    from homeport.app.discovery.discover import discover
    from homeport.app.discovery.source import NoSource, Wanted
    from homeport.infra.error import ProviderError

    async def work(client: Client, key: Key) -> tuple[str, Sequence[Entity]]:
        wanted = Wanted(**{name: value or "" for name, value in source.items()})
        return await discover(client, await read_dial(client, proxy, trust), key.namespace, wanted)

    return ask(where, "", work, NoSource, ProviderError)


def as_dict(entity: Entity) -> dict[str, Any]:
    return {
        "kind": entity.kind,
        "name": entity.name,
        "id": entity.id,
        "place": entity.place,
        "usable": entity.usable,
        "details": dict(entity.details),
    }


def _rows(found: Sequence[Entity], *, wide: bool) -> Iterator[tuple[str, ...]]:
    yield ("KIND", "NAME", "CLUSTER", "USABLE", "DETAILS", *(("ID",) if wide else ()))
    for each in found:
        details = ", ".join(f"{name} {value}" for name, value in each.details.items())
        shown = details if wide or len(details) <= 60 else f"{details[:59]}…"
        usable = "yes" if each.usable else "no"
        yield (each.kind, each.name, each.place or "all", usable, shown or "-", *((each.id,) if wide else ()))
