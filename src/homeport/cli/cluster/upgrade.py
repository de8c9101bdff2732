"""homeport upgrade"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from homeport.cli.group import Group
from homeport.cli.plane.dial import options as dial_options
from homeport.cli.where import Where, ask, located

if TYPE_CHECKING:
    from homeport.app.upkeep.upgrade import Change
    from homeport.client.protocol import Client, Key


@click.group(cls=Group)
def command() -> None:
    """Upgrade a cluster to another Kubernetes version."""


@command.command()
@click.argument("name")
@click.option("--to", "version", metavar="VERSION", required=True, help="Kubernetes version, for example v1.30.0.")
@click.option(
    "--image", metavar="NAME", default="", help="Image of the new machines (default: the image's name with VERSION)."
)
@click.option("--plan/--no-plan", "planned", default=True, help="Show the plan and the preflight (default: --plan).")
@click.option("--apply", "applied", is_flag=True, help="Start the upgrade (default: only show what it will do).")
@dial_options
@located
def cluster(
    where: Where,
    name: str,
    version: str,
    image: str,
    planned: bool,
    applied: bool,
    proxy: str,
    trust: Path | None,
) -> None:
    """Upgrade cluster NAME to VERSION: a Cluster, a TenantCluster or a ClusterDeployment.

    The command checks the versions, creates machine templates with an image of VERSION where they are needed, and shows
    the plan. The control plane is upgraded first, then the workers. The exit code is 1 if a check fails.
    """
    changes = _read(where, name, version, image)
    if planned and not _planned(where, [each.after for each in changes], proxy, trust):
        raise click.ClickException(_not_started(changes, version, image))
    if not applied:
        click.echo("Nothing was changed. Add --apply to start the upgrade.")
        return
    _apply(where, changes)
    click.echo(f"next: homeport describe cluster {name} --watch{where.arguments()}")


def _not_started(changes: Sequence[Change], version: str, image: str) -> str:
    text = "the plan has problems (see above): the upgrade was not started"
    if image or any(each.patch is None for each in changes):  # there are new templates, with an image
        return text
    named = f"to use an image of {version}, add --image NAME"
    return f"{text}. No template has an image whose name contains a version: {named}"


def _read(where: Where, name: str, version: str, image: str) -> list[Change]:
    from homeport.app.tree.read import NoCluster, Reader
    from homeport.app.upkeep.upgrade import NoUpgrade, upgrade

    async def work(client: Client, key: Key) -> list[Change]:
        found = await Reader(client).read(key)
        return upgrade(found.roots[0], found.objects, version, image)

    return ask(where, name, work, NoCluster, NoUpgrade)


def _planned(where: Where, objects: Sequence[dict[str, Any]], proxy: str, trust: Path | None) -> bool:
    from msgspec.structs import replace

    from homeport.cli.cluster.plan import lines, rehearse
    from homeport.cli.cluster.preflight import check
    from homeport.cli.output import print_lines

    plan = rehearse(where, objects)
    if not plan.refused:
        plan = replace(plan, preflight=check(where, objects, proxy, trust))
    print_lines(lines(plan))
    return not plan.refused and all(each.ok for each in plan.preflight)


def _apply(where: Where, changes: Sequence[Change]) -> None:
    from homeport.app.upkeep.change import apply_changes

    async def work(client: Client, _: Key) -> None:
        async for line in apply_changes(client, changes):
            click.echo(line)

    ask(where, "", work)
