"""homeport plan"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from homeport.cli.manifest import files, read_manifests
from homeport.cli.output import listing_option, print_found, print_lines
from homeport.cli.plane.dial import options as dial_options
from homeport.cli.quiet import quiet_log
from homeport.cli.where import Where, ask, located

if TYPE_CHECKING:
    from homeport.app.rehearsal.compare import Row
    from homeport.app.rehearsal.plan import Plan
    from homeport.cli.plane.overview import Line

_SIGNS = {"replace": ("~", "yellow"), "create": ("+", "green"), "delete": ("-", "red"), "change": ("~", "yellow")}
_DONE = {"replace": "replaced", "create": "created", "delete": "deleted", "change": "changed", "leave": "left as is"}


@click.command()
@files
@click.option(
    "--delete", is_flag=True, help="Show what deleting the objects of FILE will do, instead of applying them."
)
@click.option("--preflight/--no-preflight", default=True, help="Run the provider's checks (default: --preflight).")
@dial_options
@listing_option
@located
def command(
    where: Where,
    paths: tuple[str, ...],
    delete: bool,
    preflight: bool,
    proxy: str,
    trust: Path | None,
    output: str | None,
) -> None:
    """Show what applying FILE will create, replace, delete or leave, Machine by Machine. Nothing is written.

    The plane's controllers run on a copy of its objects, in memory and in simulated time, without a hypervisor. FILE
    has Clusters, ClusterClasses, templates, TenantClusters or ClusterDeployments. The output ends with what was not
    simulated.

    The provider is asked for its preflight results. The exit code is 0 if the plan was made, and 1 if an object of
    FILE is refused.
    """
    objects = read_manifests(paths)
    plan = rehearse(where, objects, delete=delete)
    if preflight and not delete and not plan.refused:
        from msgspec.structs import replace

        from homeport.cli.cluster.preflight import check

        plan = replace(plan, preflight=check(where, objects, proxy, trust))
    names = (("machine", row.machine) for row in plan.machines if row.machine and row.action != "leave")
    print_found(output, plan, names, lambda wide: print_lines(lines(plan, wide=wide)))
    if plan.refused:
        raise SystemExit(1)


def rehearse(where: Where, objects: Sequence[dict[str, Any]], *, delete: bool = False) -> Plan:
    """Copies the plane's objects, and rehearses the change on the copy."""
    from homeport.app.rehearsal.copy import NotReadable, PlaneCopy, copy_plane
    from homeport.app.rehearsal.plan import make_plan
    from homeport.client.protocol import Client, Key
    from homeport.runtime.clock import SystemClock

    async def read(client: Client, key: Key) -> tuple[PlaneCopy, str]:
        spaces = {str((each.get("metadata") or {}).get("namespace") or key.namespace) for each in objects}
        return await copy_plane(client, spaces), key.namespace

    copy, namespace = ask(where, "", read, NotReadable)
    with quiet_log():
        return make_plan(copy, objects, namespace, SystemClock().now(), delete=delete)


def lines(plan: Plan, *, wide: bool = False) -> Iterator[Line]:
    from homeport.cli.plane.overview import Line

    for each in plan.applied:
        name = f"{each.namespace}/{each.name}" if each.namespace not in ("", "default") else each.name
        yield Line(f"{each.kind}/{name} {each.result}", {"refused": "red", "unchanged": "dim"}.get(each.result, ""))
        if each.message:
            yield Line(f"  {each.message}", "red")
    if plan.refused:
        yield Line("")
        yield Line("The plane refuses this change. Correct FILE and run the command again.", "bold")
        return
    for cluster, rows in groupby(plan.machines, key=lambda row: row.cluster):
        yield Line("")
        yield Line(f"Cluster {cluster.removeprefix('default/')}", "bold")
        for owner, mine in groupby(list(rows), key=lambda row: row.owner):
            yield from _owner(owner, list(mine), wide=wide)
    yield Line("")
    yield Line(_summary(plan), "bold")
    if plan.preflight:
        from homeport.cli.cluster.preflight import lines as checks

        yield Line("")
        yield Line("Preflight:")
        for line in checks(plan.preflight):
            yield Line(f"  {line.text}", line.style)
    for title, texts, style in (
        ("Under way already, without this change:", plan.under_way, ""),
        ("The simulation stops here:", plan.unfinished, "yellow"),
        ("Note:", plan.notes, "yellow"),
        ("Not simulated:", plan.not_simulated, "dim"),
    ):
        if texts:
            yield Line("")
            yield Line(title, style)
            for text in texts:
                yield Line(f"  {text}", style)


def _owner(owner: str, rows: list[Row], *, wide: bool) -> Iterator[Line]:
    from homeport.cli.plane.overview import Line

    yield Line(f"  {owner}: {_counted(rows)}")
    width = max(len(row.machine or "new Machine") for row in rows)
    for row in rows:
        sign, style = _SIGNS.get(row.action, (" ", "dim"))
        both = bool(row.before and row.after) and (wide or row.before != row.after)
        version = f"{row.before} > {row.after}" if both else row.after or row.before
        text = f"    {sign} {row.action:<7}  {row.machine or 'new Machine':<{width}}  {version}"
        yield Line(f"{text}  {row.reason}".rstrip(), style)


def _counted(rows: Sequence[Row]) -> str:
    counts: Counter[str] = Counter(row.action for row in rows)
    return ", ".join(f"{counts[action]} {word}" for action, word in _DONE.items() if counts[action])


def _summary(plan: Plan) -> str:
    changed = [row for row in plan.machines if row.action != "leave"]
    if not changed:
        return "No Machine is created, replaced or deleted."
    unit = "minute" if plan.minutes == 1 else "minutes"
    after = f" In the simulation this takes {plan.minutes} {unit}." if plan.minutes else ""
    noun = "Machine" if len(plan.machines) == 1 else "Machines"
    return f"{len(plan.machines)} {noun}: {_counted(plan.machines)}.{after}"
