"""homeport addons"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from homeport.cli.group import Group
from homeport.cli.output import listing_option, print_found, print_table

if TYPE_CHECKING:
    from homeport.addons.catalogue import Entry


@click.group(cls=Group)
def command() -> None:
    """Show the catalogue of add-ons and fetch its charts: list, show, pull."""


@command.command("list")
@listing_option
def list_addons(output: str | None) -> None:
    """List the add-ons that a ClusterAddon can name."""
    from homeport.addons.catalogue import catalogue

    found = list(catalogue().values())

    def text(wide: bool) -> None:
        rows = [("NAME", "CATEGORY", "VERSION", *(("NAMESPACE", "CHART") if wide else ()), "DESCRIPTION")]
        for each in found:
            more = (each.namespace, f"{each.chart.name} of {each.chart.repository}") if wide else ()
            rows.append((each.name, each.category, each.newest, *more, each.description))
        print_table(rows)

    print_found(output, found, (("addon", each.name) for each in found), text)


@command.command()
@click.argument("name")
@listing_option
def show(name: str, output: str | None) -> None:
    """Show one add-on: its chart, its versions and its parameters."""
    entry = _entry(name)
    print_found(output, entry, [("addon", entry.name)], lambda wide: _show(entry))


def _show(entry: Entry) -> None:
    facts = {
        "name": f"{entry.name} ({entry.title}, {entry.homepage})",
        "description": entry.description,
        "chart": f"{entry.chart.name} of {entry.chart.repository}",
        "versions": ", ".join(entry.versions),
        "namespace": entry.namespace,
        "works on": entry.provider or "any infrastructure",
        "note": " ".join(entry.note.split()),
    }
    for fact, text in facts.items():
        if text:
            click.echo(f"{fact + ':':<13}{text}")
    if entry.parameters:
        click.echo("parameters:")
    for each in entry.parameters:
        default = "required" if each.required else f"default: {_shown(each.default)}"
        click.echo(f"  {each.name} ({each.type}, {default})")
        click.echo(f"      {each.description}")


@command.command()
@click.argument("names", nargs=-1, metavar="[NAME[=VERSION]]...")
@click.option(
    "-d",
    "--destination",
    metavar="DIR",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("charts"),
    show_default=True,
    help="Write the archives into this folder.",
)
def pull(names: Sequence[str], destination: Path) -> None:
    """Fetch the charts of add-ons, for example to carry them to a site without a network (default: all of them)."""
    from homeport.addons.catalogue import catalogue

    destination.mkdir(parents=True, exist_ok=True)
    for each in names or [*catalogue()]:
        name, _, version = each.partition("=")
        _pull(_entry(name), version, destination)


def _pull(entry: Entry, version: str, destination: Path) -> None:
    from homeport.addons.chart.version import VersionError, chosen_version
    from homeport.helm.errors import SourceError
    from homeport.helm.source.reference import ChartLocation
    from homeport.helm.source.source import ChartSource

    try:
        wanted = chosen_version(version, entry, "")
        place = ChartLocation(repository=entry.chart.repository, chart=entry.chart.name, version=wanted)
        fetched = asyncio.run(ChartSource().fetch(place))
    except (SourceError, VersionError) as error:
        raise click.ClickException(f"add-on {entry.name}: {error}") from error
    assert fetched.archive is not None  # a repository gives archives alone
    target = destination / f"{entry.chart.name}-{fetched.version}.tgz"
    target.write_bytes(fetched.archive)
    click.echo(f"{target}  {fetched.digest}")


def _entry(name: str) -> Entry:
    from homeport.addons.catalogue import catalogue
    from homeport.addons.desired import unknown_addon

    found = catalogue().get(name)
    if found is None:
        raise click.UsageError(unknown_addon(name))
    return found


def _shown(value: object) -> str:
    return "none" if value in (None, "") else str(value).lower() if isinstance(value, bool) else str(value)
