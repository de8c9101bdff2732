"""homeport bootstrap"""

from __future__ import annotations

import asyncio
import logging
import shlex
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import click
from click.core import ParameterSource

from homeport.app.plane.instance import read_instance
from homeport.app.settings import Settings
from homeport.cli import option
from homeport.cli.option import data as data_option
from homeport.cli.quiet import quiet_log
from homeport.cli.where import Where

if TYPE_CHECKING:
    from homeport.app.kubernetes.bootstrap import Files
    from homeport.app.kubernetes.plan import Plan
    from homeport.platforms.butler.bootstrap.file import BootstrapFile

_MINUTES = 30
_FOLDER = "bootstrap"


@click.command()
@data_option
@click.option(
    "--kubeconfig",
    metavar="FILE",
    type=click.Path(path_type=Path, dir_okay=False, exists=True),
    help="Connect to the plane with this kubeconfig (default: $KUBECONFIG, or else the plane in --data).",
)
@option.context
@click.option(
    "-f",
    "--filename",
    "file",
    metavar="FILE",
    type=click.Path(path_type=Path, dir_okay=False, exists=True),
    required=True,
    help="Read manifests with a ClusterBootstrap, or the configuration file of butleradm.",
)
@click.option("--dry-run", is_flag=True, help="Check the file and print what it would create; change nothing.")
@click.option(
    "--pivot/--no-pivot",
    default=True,
    help="Move the objects of this plane into the new cluster at the end (default: --pivot).",
)
@click.option(
    "--install/--no-install",
    default=True,
    help="After the move, install the controllers in the new cluster and wait for them (default: --install).",
)
@click.option(
    "--image",
    metavar="IMAGE",
    default="",
    help="Run the controllers in the new cluster with this image, for example one of a mirror (default: the one of "
    "this release).",
)
@click.option(
    "-o",
    "--output",
    metavar="DIR",
    type=click.Path(path_type=Path, file_okay=False),
    help="Write the kubeconfig and the talosconfig of the cluster to this directory (default: bootstrap in --data).",
)
@click.option(
    "--timeout",
    metavar="MINUTES",
    type=click.IntRange(1),
    default=_MINUTES,
    show_default=True,
    help="Stop waiting after so many minutes for the cluster, or for its controllers. The plane keeps running.",
)
@click.pass_context
def command(
    ctx: click.Context,
    data: Path,
    kubeconfig: Path | None,
    context: str,
    file: Path,
    dry_run: bool,
    pivot: bool,
    install: bool,
    image: str,
    output: Path | None,
    timeout: int,
) -> None:
    """Create a management cluster from nothing, move this plane into it, and start its controllers there.

    Starts a plane if none runs. Run the same command again after any failure: it continues.
    """
    from homeport.platforms.butler.bootstrap.file import FileError, read_bootstrap_file

    try:
        found = read_bootstrap_file(file.read_bytes(), str(file), lambda path: _read(file, path))
    except FileError as error:
        raise click.ClickException(str(error)) from error
    for text in found.warnings:
        click.echo(f"warning: {text}", err=True)
    if dry_run:
        _show(found)
        return
    named = ctx.get_parameter_source("data") is ParameterSource.COMMANDLINE
    where = Where(data, named, kubeconfig, context, "")
    folder = output.expanduser() if output is not None else Settings.make(data).data / _FOLDER
    given = found.model.addons.butler_controller
    wanted = install and (given is None or given.enabled is not False)
    _call(where, found, folder, pivot=pivot, plan=_plan(image) if wanted else None, seconds=timeout * 60.0)


def _plan(image: str) -> Plan:
    from homeport.app.kubernetes.plan import Plan
    from homeport.app.kubernetes.workload import PodOptions
    from homeport.app.platform import chosen

    return Plan(chosen(), pod=PodOptions(image=image) if image else PodOptions())


def _read(file: Path, path: str) -> str:
    """As butleradm: `~` is the user's home; other paths are relative to the file."""
    return (file.parent / Path(path).expanduser()).read_text()


def _show(file: BootstrapFile) -> None:
    from homeport.machinery.manifest import described
    from homeport.platforms.butler.bootstrap.addon import bootstrap_addons
    from homeport.platforms.butler.bootstrap.plan import plan_machines

    for each in file.objects:
        click.echo(described(each))
    for plan in plan_machines(file.model):
        size = plan.size
        click.echo(f"machine {plan.name}: {size.cpu} CPUs, {size.memory_mib} MiB, {size.disk_gib} GiB")
    click.echo(f"endpoint: {file.model.vip or 'the address of the control plane'}:6443")
    click.echo(f"load balancers: {file.model.load_balancer or 'none'}")
    click.echo(f"add-ons: {', '.join(each.addon for each in bootstrap_addons(file.model)) or 'none'}")


def _call(where: Where, file: BootstrapFile, folder: Path, *, pivot: bool, plan: Plan | None, seconds: float) -> None:
    from homeport.app.kubernetes.bootstrap import BootstrapError
    from homeport.app.kubernetes.install import InstallError
    from homeport.client.config import ConfigError
    from homeport.client.errors import ApiError
    from homeport.client.wire.quick import import_aiohttp
    from homeport.move import MoveRefused

    import_aiohttp()
    _start(where)
    try:
        with quiet_log(logging.WARNING):
            asyncio.run(_work(where, file, folder, pivot=pivot, plan=plan, seconds=seconds))
    except MoveRefused as error:
        text = "the cluster is ready, but the objects of this plane can't move into it:\n  "
        raise click.ClickException(text + "\n  ".join(error.problems)) from error
    except InstallError as error:
        text = "everything has moved into the cluster, but its controllers do not run yet"
        raise click.ClickException(f"{text}: {error}\nRun the same command again: it continues.") from error
    except (BootstrapError, ConfigError) as error:
        raise click.ClickException(str(error)) from error
    except ApiError as error:
        raise click.ClickException(f"{error}\nRun the same command again: it continues.") from error


def _start(where: Where) -> None:
    """A plane, unless one is named or runs."""
    if where.kubeconfig is not None or where.from_environment or read_instance(Settings.make(where.data).data):
        return
    click.echo(f"no plane runs on {where.data}: starting one")
    arguments = [sys.executable, "-m", "homeport", "up", "--detach", "--data", str(where.data)]
    if subprocess.run(arguments, check=False).returncode:  # noqa: S603  (our own interpreter and module)
        raise click.ClickException("the plane did not start")


async def _work(
    where: Where, file: BootstrapFile, folder: Path, *, pivot: bool, plan: Plan | None, seconds: float
) -> None:
    from homeport.app.kubernetes.bootstrap import Bootstrap, Files
    from homeport.app.kubernetes.handover import describe_plane, hand_over
    from homeport.client.http import HttpClient

    started = time.monotonic()

    def say(text: str) -> None:
        passed = int(time.monotonic() - started)
        click.echo(f"[{passed // 60:02}:{passed % 60:02}] {text}")

    files = Files.of(folder, file.model.name)
    async with HttpClient(where.load()) as client:
        work = Bootstrap(client, file, files, say)
        mark = await work.begin()
        if not mark:
            await work.follow(seconds)
            await work.save()
        moved = pivot or bool(mark)
        if moved:
            async with HttpClient(work.target()) as target:
                count = await work.pivot(target)
                say(f"moved {count} objects into the cluster" if count else "all objects are in the cluster")
                if plan is not None:
                    await hand_over(client, target, plan, say, seconds)
        plane = await describe_plane(client)
    _conclude(file, files, moved=moved, installed=plan is not None, simulated=bool(plane and plane.simulators))


def _conclude(file: BootstrapFile, files: Files, *, moved: bool, installed: bool, simulated: bool) -> None:
    click.echo(f"management cluster {file.model.name} is ready")
    click.echo(f"kubeconfig: {files.kubeconfig}")
    click.echo(f"talosconfig: {files.talosconfig}")
    if not moved:
        return
    click.echo("this plane has stepped back: its controllers are off")
    config = shlex.quote(str(files.kubeconfig))
    if simulated:
        click.echo("the machines of the cluster are simulated by this plane: they stop with 'homeport down'")
    if installed:
        click.echo("the controllers run in the cluster, in the namespace homeport-system")
        click.echo(f"next: export KUBECONFIG={config} && kubectl get pods -n homeport-system")
    else:
        click.echo("next: run the controllers as Pods of the new cluster, or on this machine")
        click.echo(f"  homeport install --kubeconfig {config}")
        click.echo(f"  homeport up --kubeconfig {config} --namespace homeport-system")
