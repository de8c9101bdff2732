"""homeport import"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from homeport.cli.confirm import confirm
from homeport.cli.group import Group
from homeport.cli.option import FILE
from homeport.cli.output import listing_option, print_found, print_table
from homeport.cli.plane.dial import options as dial_options
from homeport.cli.reach import read_dial
from homeport.cli.where import Where, ask, located

if TYPE_CHECKING:
    from homeport.app.importer.account import Credentials
    from homeport.app.importer.operation import Plan
    from homeport.client.protocol import Client, Key

T = TypeVar("T")


@click.group(cls=Group)
def command() -> None:
    """Bring clusters that kubeadm created under management; their VMs stay as they are."""


@command.command()
@click.argument("name")
@located
@click.option(
    "--cluster-kubeconfig",
    metavar="FILE",
    type=click.Path(path_type=Path, dir_okay=False, exists=True),
    required=True,
    help="Connect to the cluster that is imported with this kubeconfig of an administrator.",
)
@click.option(
    "--cluster-context", metavar="NAME", default="", help="Use this context of it (default: the current one)."
)
@click.option(
    "--pki",
    metavar="DIR",
    type=click.Path(path_type=Path, file_okay=False, exists=True),
    required=True,
    help="Read the cluster's private keys from this copy of /etc/kubernetes/pki of a control plane.",
)
@click.option("--provider", type=click.Choice(["nutanix", "harvester"]), required=True, help="Look for the VMs there.")
@click.option("--secret", default="", help="Use the credentials of this Secret in the namespace of the Cluster.")
@click.option("--provider-config", metavar="[NAMESPACE/]NAME", default="", help="Use those of this ProviderConfig.")
@click.option("--credential", default="", help="Use those of this Credential.")
@click.option("--address", metavar="HOST[:PORT]", default="", help="Prism Central, for --secret and --credential.")
@click.option("--insecure", is_flag=True, help="Do not verify the certificate of Prism Central.")
@click.option("--ca-file", metavar="FILE", type=FILE, help="Trust this CA (PEM) of Prism Central.")
@click.option("--image", default="", help="Create new Machines from this image if the VMs don't show theirs.")
@dial_options
@click.option("--dry-run", is_flag=True, help="Show what would be done and change nothing (the default).")
@click.option("--apply", is_flag=True, help="Create the objects, mark the VMs, and wait until all is available.")
@click.option(
    "--timeout",
    metavar="SECONDS",
    type=click.FloatRange(1),
    default=600.0,
    show_default=True,
    help="Wait this long with --apply.",
)
@listing_option
def cluster(
    where: Where,
    name: str,
    cluster_kubeconfig: Path,
    cluster_context: str,
    pki: Path,
    proxy: str,
    trust: Path | None,
    dry_run: bool,
    apply: bool,
    timeout: float,
    image: str,
    output: str | None,
    **account: Any,
) -> None:
    """Import a running cluster as Cluster NAME.

    It gets a Machine for each of its Nodes.

    The command finds the VM of each Node at the provider and proves that it is the right one. It refuses VMs that
    another plane manages, and everything that would replace a Machine. Without --apply it changes nothing.

    With --apply it creates the objects while the Cluster is paused, sets Homeport's mark on the VMs, and resumes the
    Cluster. An import that was interrupted continues when you repeat the command.
    """
    from homeport.app.importer.operation import Import, Request
    from homeport.client import kubeconfig
    from homeport.client.http import HttpClient
    from homeport.runtime.clock import SystemClock

    if apply and dry_run:
        raise click.UsageError("use either --dry-run or --apply")
    given = _credentials(**account)

    async def work(client: Client, key: Key) -> None:
        dial = await read_dial(client, proxy, trust)
        config = kubeconfig.load(cluster_kubeconfig, context=cluster_context)
        workload = HttpClient(replace(config, proxy=config.proxy or dial.proxy))
        try:
            request = Request(key, given, pki, image)
            await _carry_out(Import(client, workload, request, SystemClock(), dial), key, apply, timeout, output)
        finally:
            await workload.close()

    _ask(where, name, work)
    if not apply and output in (None, "wide"):
        click.echo(f"nothing was changed; to import, repeat the command with --apply{_place(where)}")


async def _carry_out(work: Any, key: Key, apply: bool, timeout: float, output: str | None) -> None:
    from homeport.app.importer.body import DONE

    if await work.state() == DONE:
        click.echo(f"Cluster {key} is imported already")
    else:
        plan = await work.plan()
        try:
            _show(plan, output)
            if apply:
                await work.apply(plan, click.echo)
        finally:
            await plan.account.importer.close()
    if apply:
        await work.until_available(timeout)
        click.echo(f"Cluster {key} is available; next: homeport describe cluster {key.name} -n {key.namespace}")


def _show(plan: Plan, output: str | None) -> None:
    bodies = [_public(body) for _, body in plan.objects]
    names = ((body["kind"], body["metadata"]["name"]) for body in bodies)
    print_found(output, bodies, names, lambda wide: _show_matches(plan, wide=wide))


def _show_matches(plan: Plan, *, wide: bool) -> None:
    rows = [("NODE", "ROLE", "VERSION", "VM", "PROOF", "SIZE", "OWNER")]
    for each in plan.matches:
        role, vm = "control plane" if each.control_plane else "worker", f"{each.candidate.name} ({each.candidate.id})"
        rows.append((each.node.name, role, each.version, vm, each.proof, each.candidate.size, plan.owner_of(each)))
    print_table(rows)
    click.echo(f"would roll: nothing; objects: {len(plan.objects)}; VMs to mark: {len(plan.matches)}")
    if plan.nodes_without_id:
        click.echo(f"Nodes that get spec.providerID: {', '.join(plan.nodes_without_id)}")
    for note in plan.draft.notes:
        click.echo(f"note: {note}")
    for _, body in plan.objects if wide else ():
        click.echo(f"{body['kind']}/{body['metadata']['name']}")


def _public(body: dict[str, Any]) -> dict[str, Any]:
    """Private keys and passwords are not printed."""
    if body["kind"] != "Secret":
        return body
    hidden: dict[str, Any] = {
        name: dict.fromkeys(body[name], "<hidden>") for name in ("data", "stringData") if name in body
    }
    return {**body, **hidden}


def _credentials(
    provider: str,
    secret: str,
    provider_config: str,
    credential: str,
    address: str,
    insecure: bool,
    ca_file: Path | None,
) -> Credentials:
    from homeport.app.importer.account import Credentials

    if sum(map(bool, (secret, provider_config, credential))) != 1:
        raise click.UsageError("use one of --secret, --provider-config and --credential")
    host, _, port = address.partition(":")
    if port and not port.isdigit():
        raise click.UsageError(f"--address {address}: expected HOST or HOST:PORT")
    bundle = ca_file.read_text() if ca_file is not None else ""
    return Credentials(provider, secret, provider_config, credential, host, int(port or 9440), insecure, bundle)


@command.command()
@click.argument("name")
@located
@dial_options
@click.option("--dry-run", is_flag=True, help="Show what would be removed and change nothing.")
@click.option("-y", "--yes", is_flag=True, help="Do not ask for confirmation.")
def undo(where: Where, name: str, proxy: str, trust: Path | None, dry_run: bool, yes: bool) -> None:
    """Take back an import; no VM is deleted.

    The marks of the VMs of Cluster NAME are removed, then its objects.

    Machines that were created since the import go the same way: their VMs stay, and are Nodes as before.
    """
    from homeport.app.importer import undo as undoing
    from homeport.runtime.clock import SystemClock

    if not dry_run and not yes:
        confirm(f"Stop managing Cluster {name}? Its VMs run on.")

    async def work(client: Client, key: Key) -> None:
        dial = await read_dial(client, proxy, trust)
        await undoing.undo(client, key, SystemClock(), dial, click.echo, dry_run=dry_run)

    _ask(where, name, work)


def _place(where: Where) -> str:
    found = where.arguments()
    return f" (options of the plane:{found})" if found else ""


def _ask(where: Where, name: str, work: Callable[[Client, Key], Coroutine[Any, Any, T]]) -> T:
    from homeport.app.discovery.source import NoSource
    from homeport.app.importer.source import Refused
    from homeport.client.config import ConfigError
    from homeport.infra.error import ProviderError
    from homeport.move.errors import MoveRefused

    return ask(where, name, work, Refused, NoSource, ProviderError, MoveRefused, ConfigError)
