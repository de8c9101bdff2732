"""homeport install"""

from __future__ import annotations

import asyncio
import logging
import shlex
from collections.abc import Coroutine
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from homeport.cli import option
from homeport.cli.quiet import quiet_log

if TYPE_CHECKING:
    from homeport.app.kubernetes.plan import Plan

_KUBECONFIG = click.option(
    "--kubeconfig",
    metavar="FILE",
    type=click.Path(path_type=Path, dir_okay=False, exists=True),
    help="Use the cluster of this kubeconfig.",
)

_RIGHTS = (
    "This command needs the rights of ClusterRole cluster-admin, because it gives the controllers theirs. What it did "
    "before this error stays: run it again with the kubeconfig of an administrator."
)


@click.command()
@_KUBECONFIG
@option.context
@click.option(
    "--layout",
    type=click.Choice(["combined", "split"]),
    default="combined",
    show_default=True,
    help="Run all controllers in one Deployment, or each component in one with the name and namespace that upstream's "
    "releases use.",
)
@click.option(
    "--image",
    metavar="IMAGE",
    default="",
    help="Run this image, with a tag or a digest (default: the one of this release).",
    show_default=False,
)
@click.option(
    "--ccm-image",
    metavar="IMAGE",
    default="",
    help="Use this image for the cloud controller manager in workload clusters (default: that of --image).",
)
@click.option(
    "--replicas", type=click.IntRange(1, 9), default=2, show_default=True, help="Number of replicas of each Deployment."
)
@click.option(
    "--option",
    "options",
    metavar="OPTION",
    multiple=True,
    help="Start the controllers with this option of `homeport up`, for example --option=--shards.",
)
@click.option(
    "--management-addons",
    is_flag=True,
    help="Allow Butler's ManagementAddons: bind the controllers to cluster-admin (default: they can't install charts "
    "into this cluster).",
)
@click.option(
    "--dashboard/--no-dashboard",
    default=True,
    show_default=True,
    help="Install the dashboard, a Deployment and a Service without rights of their own.",
)
@click.option(
    "--dashboard-host",
    "hosts",
    metavar="NAME",
    multiple=True,
    help="Users reach the dashboard under this name, NAME or NAME:PORT of a load balancer or an ingress in front of "
    "Service homeport-dashboard/homeport-dashboard. Repeatable; the first is the one of links.",
)
@click.option(
    "--no-controllers",
    is_flag=True,
    help="Install only definitions, namespaces and the inventory, for controllers that run elsewhere with `homeport up "
    "--kubeconfig`.",
)
@option.without
@click.option("--dry-run", is_flag=True, help="Change nothing: print all objects. Needs no cluster.")
@click.option("-o", "--output", type=click.Choice(["yaml"]), help="Format of --dry-run (default: yaml).")
@click.option("--wait", is_flag=True, help="Wait until all replicas are available.")
@click.option(
    "--timeout", metavar="SECONDS", type=click.IntRange(1), default=300, show_default=True, help="Limit of --wait."
)
def command(
    kubeconfig: Path | None,
    context: str,
    without: tuple[str, ...],
    *,
    no_controllers: bool,
    dry_run: bool,
    output: str | None,
    wait: bool,
    timeout: int,
    **choices: Any,
) -> None:
    """Install Homeport on a Kubernetes cluster: definitions of all kinds, namespaces, permissions and Deployments.

    Run it again to update: what an earlier version installed and this one does not have is removed. Objects of users
    and running machines are not changed.
    """
    from homeport.app.platform import PluginError, chosen

    try:
        platform = chosen(without=without)
    except PluginError as error:
        raise click.UsageError(str(error)) from error
    if output and not dry_run:
        raise click.UsageError("-o applies to --dry-run only: add --dry-run")
    choices["options"] = (*choices["options"], *(f"--without={name}" for name in without))
    plan = _plan(platform, **choices)
    if dry_run:
        if no_controllers:
            raise click.UsageError("--dry-run prints the whole installation: remove --no-controllers")
        _print(plan)
        return
    if kubeconfig is None:
        raise click.UsageError("--kubeconfig FILE is required (or --dry-run)")
    run(_install(kubeconfig, context, plan, controllers=not no_controllers, seconds=timeout if wait else 0))
    _next(kubeconfig, context, plan, controllers=not no_controllers)


def run(work: Coroutine[Any, Any, None]) -> None:
    from homeport.app.kubernetes.install import InstallError
    from homeport.client.config import ConfigError
    from homeport.client.errors import ApiError, Forbidden
    from homeport.client.wire.quick import import_aiohttp

    import_aiohttp()
    try:
        with quiet_log(logging.WARNING):
            asyncio.run(work)
    except Forbidden as error:
        raise click.ClickException(f"{error}\n{_RIGHTS}") from error
    except (ApiError, ConfigError, InstallError) as error:
        raise click.ClickException(str(error)) from error


def _plan(
    platform: Any,
    *,
    layout: Any,
    image: str,
    ccm_image: str,
    replicas: int,
    options: tuple[str, ...],
    management_addons: bool,
    dashboard: bool,
    hosts: tuple[str, ...],
) -> Plan:
    from homeport.app.kubernetes.dashboard.object import DashboardOptions
    from homeport.app.kubernetes.plan import Plan
    from homeport.app.kubernetes.workload import ImageError, PodOptions, check_image
    from homeport.ccm.manifest import IMAGE

    if strange := [each for each in options if not each.startswith("-")]:
        raise click.UsageError(
            f"--option {strange[0]!r}: expected an option of `homeport up`, for example --option=--shards"
        )
    for name, text in (("--image", image), ("--ccm-image", ccm_image)):
        try:
            check_image(text or IMAGE)
        except ImageError as error:
            raise click.UsageError(f"{name}: {error}") from error
    pod = PodOptions(image or IMAGE, replicas, ccm_image, options)
    if hosts and not dashboard:
        raise click.UsageError("--dashboard-host applies to the dashboard: remove --no-dashboard")
    return Plan(platform, layout, pod, management_addons, DashboardOptions(hosts) if dashboard else None)


def _print(plan: Plan) -> None:
    from homeport.app.kubernetes.file import write_all

    click.echo(write_all(asyncio.run(plan.everything())), nl=False)


def _next(kubeconfig: Path, context: str, plan: Plan, *, controllers: bool) -> None:
    place = f"--kubeconfig {shlex.quote(str(kubeconfig))}" + (f" --context {shlex.quote(context)}" if context else "")
    if controllers:
        click.echo(f"next: kubectl get pods {place} -n {plan.placements[0].namespace}")
    else:
        click.echo(f"next: homeport up {place} --namespace homeport-system")


async def _install(kubeconfig: Path, context: str, plan: Plan, *, controllers: bool, seconds: float) -> None:
    from homeport.app.kubernetes.install import install, prepare, publish
    from homeport.app.kubernetes.rollout import await_available
    from homeport.client import kubeconfig as files
    from homeport.client.http import HttpClient

    async with HttpClient(files.load(kubeconfig, context=context)) as client:
        if not controllers:
            await prepare(client, plan.platform, click.echo)
            return
        await install(client, plan, click.echo)
        if seconds:
            await await_available(client, plan.deployments, click.echo, seconds)
            await publish(client, plan.platform)  # the replicas do so, too; who waits finds it there
