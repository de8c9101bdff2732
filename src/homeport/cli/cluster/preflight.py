"""homeport preflight"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from homeport.cli.manifest import read_manifests
from homeport.cli.output import listing_option, print_found, print_lines
from homeport.cli.plane.dial import options as dial_options
from homeport.cli.quiet import quiet_log
from homeport.cli.reach import read_dial
from homeport.cli.where import Where, ask, located

if TYPE_CHECKING:
    from homeport.app.rehearsal.preflight import CheckResult
    from homeport.cli.plane.overview import Line
    from homeport.client.protocol import Client, Key


@click.command()
@click.option("-f", "--filename", "paths", metavar="FILE", multiple=True, help="Check this manifest; - is stdin.")
@click.argument("words", nargs=-1, metavar="[cluster NAME]")
@dial_options
@listing_option
@located
def command(
    where: Where, paths: tuple[str, ...], words: tuple[str, ...], proxy: str, trust: Path | None, output: str | None
) -> None:
    """Check a manifest, or a cluster that exists, at its provider: authentication, references and capacity.

    Homeport asks the provider from the machine on which this command runs, and creates nothing. Every failed check says
    what to do. The exit code is 1 if a check fails.
    """
    if bool(paths) == bool(words) or (words and (len(words) != 2 or words[0] != "cluster")):
        raise click.UsageError("use either -f FILE or 'cluster NAME'")
    objects = read_manifests(paths) if paths else []
    found = check(where, objects, proxy, trust, cluster=words[1] if words else "")
    names = dict.fromkeys((each.kind, each.name) for each in found if not each.ok)
    print_found(output, found, names, lambda wide: print_lines(lines(found, wide=wide)))
    if not all(each.ok for each in found):
        raise SystemExit(1)


def check(
    where: Where, objects: Sequence[dict[str, Any]], proxy: str, trust: Path | None, *, cluster: str = ""
) -> list[CheckResult]:
    from homeport.app.rehearsal.copy import NotReadable, copy_plane
    from homeport.app.rehearsal.preflight import Refused, preflight
    from homeport.app.tree.read import NoCluster, Reader

    async def work(client: Client, key: Key) -> list[CheckResult]:
        if cluster:
            await Reader(client).read(key)
        spaces = {str((each.get("metadata") or {}).get("namespace") or key.namespace) for each in objects}
        copy = await copy_plane(client, spaces or {key.namespace})
        dial = await read_dial(client, proxy, trust)
        return await preflight(copy, objects, key.namespace, dial, key if cluster else None)

    with quiet_log():
        return ask(where, cluster, work, NotReadable, Refused, NoCluster)


def lines(found: Sequence[CheckResult], *, wide: bool = False) -> Iterator[Line]:
    from homeport.cli.plane.overview import Line

    if not found:
        yield Line("No checks: the manifest has no cluster on Nutanix or Harvester.")
    for each in found:
        word = "ok" if each.ok else "failed"
        yield Line(f"{word:<6}  {f'{each.kind} {each.name}'.rstrip()}: {each.check}", "" if each.ok else "red")
        if not each.ok:
            yield Line(f"        {each.message or each.reason}", "red")
        elif wide and each.message:
            yield Line(f"        {each.message}", "dim")
