"""homeport orphans"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import click

from homeport.cli.confirm import confirm
from homeport.cli.group import Group
from homeport.cli.output import listing_option, print_found, print_table
from homeport.cli.where import Where, ask, located

if TYPE_CHECKING:
    from homeport.client.protocol import Client, Key
    from homeport.infra.orphan.record import Found
    from homeport.platforms.butler.machine.record import Lost

T = TypeVar("T")


@click.group(cls=Group)
def command() -> None:
    """List, adopt or remove VMs that carry a cluster's mark and belong to no object."""


@command.command(name="list")
@located
@click.argument("cluster")
@listing_option
def list_(where: Where, cluster: str, output: str | None) -> None:
    """List the orphaned VMs of CLUSTER, and why each one is kept."""
    from homeport.app.orphan import request as orphan

    found = _ask(where, cluster, orphan.look)
    print_found(
        output,
        [_as_dict(each) for each in found],
        (("vm", each.owned.name) for each in found),
        lambda wide: _show(where, cluster, found, wide=wide),
    )


def _as_dict(each: Found) -> dict[str, Any]:
    name, id_, power, node, role, version = (text if text != "-" else "" for text in _row(each))
    facts = {"name": name, "id": id_, "power": power, "node": node, "role": role, "version": version}
    return {**facts, "kept": each.kept}


def _show(where: Where, cluster: str, found: Sequence[Found], *, wide: bool) -> None:
    if not found:
        click.echo(f"cluster {cluster} has no orphaned VMs")
        return
    fates = [each.kept or "removed automatically after 10 minutes" for each in found]
    more = [(fate,) if wide else () for fate in fates]
    head = ("NAME", "ID", "POWER", "NODE", "ROLE", "VERSION", *(("KEPT",) if wide else ()))
    print_table([head, *((*_row(each), *last) for each, last in zip(found, more, strict=True))])
    for each, fate in zip(found, fates, strict=True) if not wide else ():
        click.echo(f"{each.owned.name}: {fate}")
    verb = "adopt" if any(each.role is not None and each.role.node for each in found) else "remove"
    click.echo(f"next: homeport orphans {verb} {cluster} {found[0].owned.name} --dry-run{where.arguments()}")


def _row(each: Found) -> tuple[str, ...]:
    role = each.role
    node = role.node if role is not None else ""
    kind = "" if role is None else "control plane" if role.control_plane else "worker" if role.node else "etcd"
    return (each.owned.name, each.owned.id, each.owned.power, node or "-", kind or "-", role.version if role else "-")


@command.command()
@located
@click.argument("names", metavar="[REQUEST]...", nargs=-1)
@click.option("--adopt", is_flag=True, help="Make these MachineRequests again, for the VMs that exist.")
@click.option("--remove", is_flag=True, help="Delete these VMs with their disks. This can't be undone.")
@click.option("--force", is_flag=True, help="Also VMs whose deletion this plane did not see, and control planes.")
@click.option("--dry-run", is_flag=True, help="Show what would be done and change nothing.")
@click.option("-y", "--yes", is_flag=True, help="Do not ask for confirmation.")
@listing_option
def machines(
    where: Where,
    names: tuple[str, ...],
    adopt: bool,
    remove: bool,
    force: bool,
    dry_run: bool,
    yes: bool,
    output: str | None,
) -> None:
    """List, adopt or remove VMs whose MachineRequest is gone.

    The request was removed by force, or it was moved to another plane. Nothing deletes such a VM but you. Name the
    requests, as NAMESPACE/NAME, to adopt or remove their VMs.
    """
    if (adopt and remove) or bool(names) != (adopt or remove):
        raise click.UsageError("name the requests, and use either --adopt or --remove")
    if names and output:
        raise click.UsageError("-o is for the list: leave out the names")
    if names:
        _settle(where, names, remove=remove, force=force, dry_run=dry_run, yes=yes)
    else:
        _list_machines(where, output)


def _list_machines(where: Where, output: str | None) -> None:
    from homeport.platforms.butler.machine.record import find_lost

    found = sorted(ask(where, "", lambda client, key: find_lost(client)), key=lambda each: str(each.request))
    print_found(
        output,
        [dict(zip(_LOST, _lost_row(each), strict=True)) for each in found],
        (("machinerequest", each.request.name) for each in found),
        lambda wide: _show_lost(where, found),
    )


_LOST = ("request", "vm", "id", "providerConfig", "deletion", "state")


def _lost_row(each: Lost) -> tuple[str, ...]:
    seen = "seen" if each.deleted else "not seen"
    return (str(each.request), each.machine, each.vm or "-", str(each.config), seen, each.state or "not checked yet")


def _show_lost(where: Where, found: Sequence[Lost]) -> None:
    if not found:
        click.echo("every VM of a MachineRequest has its MachineRequest")
        return
    print_table([tuple(name.upper() for name in _LOST), *map(_lost_row, found)])
    first = next((each for each in found if each.deleted), None)
    if first is not None:
        click.echo(f"next: homeport orphans machines {first.request} --adopt (or --remove){where.arguments()}")
    if not all(each.deleted for each in found):
        click.echo("VMs whose deletion was not seen may be in use: their requests may be on another plane.")


def _settle(where: Where, names: tuple[str, ...], *, remove: bool, force: bool, dry_run: bool, yes: bool) -> None:
    from homeport.platforms.butler.machine import adoption

    verb = "removed" if remove else "adopted"
    chosen = ask(where, "", lambda client, key: adoption.choose(client, names, key.namespace), adoption.Refused)
    for each in chosen:
        try:
            adoption.check(each, remove=remove, force=force)
        except adoption.Refused as error:
            raise click.ClickException(str(error)) from error
        text = f"VM {each.machine} ({each.vm}), {each.state}"
        click.echo(f"{text} would be {verb} (dry run)" if dry_run else text)
    if dry_run:
        return
    if remove and not yes:
        confirm(f"Delete {len(chosen)} VM{'s' if len(chosen) > 1 else ''} with all disks?")

    async def settle(lost: Lost, client: Client, key: Key) -> None:
        await (adoption.remove(client, lost) if remove else adoption.adopt(client, lost))

    for each in chosen:
        ask(where, "", partial(settle, each), adoption.Refused)
        done = "deletion started" if remove else "adopted"
        click.echo(f"MachineRequest {each.request}: {done}")


@command.command()
@located
@click.argument("cluster")
@click.argument("names", metavar="VM...", nargs=-1)
@click.option("--all", "everything", is_flag=True, help="Adopt all orphaned VMs that are Nodes of the cluster.")
@click.option("--machine-set", default="", help="MachineSet for workers (default: the one that the Node names).")
@click.option("--dry-run", is_flag=True, help="Show what would be created and change nothing.")
def adopt(
    where: Where, cluster: str, names: tuple[str, ...], everything: bool, machine_set: str, dry_run: bool
) -> None:
    """Create the missing objects for VMs that are Nodes of CLUSTER.

    The Cluster is paused meanwhile, so that nothing is rolled out, created or deleted. Replicas grow to the number of
    Machines that run.
    """
    from homeport.app.orphan import adoption

    if bool(names) == everything:
        raise click.UsageError("name the VMs to adopt, or use --all")
    wanted = adoption.AdoptionRequest(names, machine_set)
    plan = _ask(where, cluster, lambda client, key: adoption.adopt(client, key, wanted, dry_run=dry_run))
    for line in plan:
        click.echo(f"{line} (dry run)" if dry_run else line)


@command.command()
@located
@click.argument("cluster")
@click.argument("names", metavar="VM...", nargs=-1, required=True)
@click.option("--force", is_flag=True, help="Also remove VMs that are Nodes or etcd members of the workload cluster.")
@click.option("--dry-run", is_flag=True, help="Show what would be removed and change nothing.")
@click.option("-y", "--yes", is_flag=True, help="Do not ask for confirmation.")
def remove(where: Where, cluster: str, names: tuple[str, ...], force: bool, dry_run: bool, yes: bool) -> None:
    """Delete the orphaned VMs that are named, with their disks. This can't be undone.

    A VM that the workload cluster uses is refused unless --force is given. A VM that belongs to an object is always
    refused: delete its Machine instead.
    """
    from homeport.app.orphan import request as orphan

    chosen = _ask(where, cluster, lambda client, key: orphan.removable(client, key, names, force=force))
    for each in chosen:
        text = f"VM {each.owned.name} ({each.owned.id})" + (f", which {each.role}" if each.role else "")
        click.echo(f"{text} would be deleted (dry run)" if dry_run else text)
    if dry_run:
        return
    if not yes:
        confirm(f"Delete {len(chosen)} VM{'s' if len(chosen) > 1 else ''} of cluster {cluster}?")
    _ask(where, cluster, lambda client, key: orphan.remove(client, key, chosen, force=force))
    click.echo("deletion started; 'homeport orphans list' shows what is left")


def _ask(where: Where, cluster: str, work: Callable[[Client, Key], Coroutine[Any, Any, T]]) -> T:
    from homeport.app.orphan.request import Refused

    return ask(where, cluster, work, Refused)
