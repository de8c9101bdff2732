"""homeport rollout"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from homeport.app.settings import Settings
from homeport.cli.option import data as data_option

if TYPE_CHECKING:
    from homeport.client.protocol import Client, Key

T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., Any])

_KINDS = ("machinedeployment", "machinedeployments", "machinedeployments.cluster.x-k8s.io", "md")


class _Target(click.ParamType[str]):
    """machinedeployment/NAME"""

    name = "machinedeployment/NAME"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        kind, slash, name = str(value).partition("/")
        if not slash or kind.lower() not in _KINDS or not name or "/" in name:
            self.fail(f"{value!r}: name it as machinedeployment/NAME", param, ctx)
        return name


@click.group()
def command() -> None:
    """Look after rollouts of MachineDeployments: status, history, pause, resume, restart, undo."""


def _options(fn: F) -> F:
    for decorate in (
        click.argument("target", type=_Target(), metavar="machinedeployment/NAME"),
        click.option("-n", "--namespace", default="default", show_default=True, help="where it is"),
        click.option(
            "--kubeconfig",
            metavar="FILE",
            type=click.Path(path_type=Path, dir_okay=False, exists=True),
            help="the management plane to ask [default: the one of --data]",
        ),
        data_option,
    ):
        fn = decorate(fn)
    return fn


@command.command()
@_options
@click.option("--to-revision", type=click.IntRange(min=0), default=0, help="which one [default: the one before]")
def undo(data: Path, kubeconfig: Path | None, namespace: str, target: str, to_revision: int) -> None:
    """Go back to the template of an earlier revision."""
    from homeport.core.machinedeployment import rollback

    found = _ask(data, kubeconfig, namespace, target, lambda client, key: rollback.undo(client, key, to_revision))
    version = f" ({found.version})" if found.version else ""
    click.echo(f"machinedeployment/{target} goes back to revision {found.number}{version}")
    click.echo(f"next: homeport rollout status machinedeployment/{target}")


@command.command()
@_options
def history(data: Path, kubeconfig: Path | None, namespace: str, target: str) -> None:
    """List the revisions that can be gone back to."""
    from homeport.core.machinedeployment import rollback

    found = _ask(data, kubeconfig, namespace, target, rollback.history)
    rows = [("REVISION", "MACHINESET", "VERSION", "INFRASTRUCTURE", "BOOTSTRAP", "REPLICAS")]
    for each in found:
        number = f"{each.number}{'*' if each.current else ''}"
        rows.append((number, each.name, each.version, each.infrastructure, each.bootstrap, str(each.replicas)))
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    for row in rows:
        click.echo("  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip())


@command.command()
@_options
def restart(data: Path, kubeconfig: Path | None, namespace: str, target: str) -> None:
    """Replace all Machines, by and by, though nothing has changed."""
    from homeport.core.machinedeployment import rollback
    from homeport.runtime.clock import SystemClock

    now = SystemClock().now()
    when = _ask(data, kubeconfig, namespace, target, lambda client, key: rollback.restart(client, key, now))
    click.echo(f"machinedeployment/{target} is restarted: Machines made before {when} are replaced")


@command.command()
@_options
def pause(data: Path, kubeconfig: Path | None, namespace: str, target: str) -> None:
    """Stop a rollout where it is; replicas can still be changed."""
    _pause(data, kubeconfig, namespace, target, paused=True)


@command.command()
@_options
def resume(data: Path, kubeconfig: Path | None, namespace: str, target: str) -> None:
    """Go on with a rollout that was paused."""
    _pause(data, kubeconfig, namespace, target, paused=False)


def _pause(data: Path, kubeconfig: Path | None, namespace: str, target: str, *, paused: bool) -> None:
    from homeport.core.machinedeployment import rollback

    changed = _ask(data, kubeconfig, namespace, target, lambda client, key: rollback.pause(client, key, paused=paused))
    word = "paused" if paused else "resumed"
    already = "" if changed else " already" if paused else ": it was not paused"
    click.echo(f"machinedeployment/{target} {'is ' if paused else ''}{word}{already}")


@command.command()
@_options
@click.option(
    "--timeout", type=click.FloatRange(min=0), default=0.0, help="seconds to wait [default: as long as it takes]"
)
@click.option("--watch/--no-watch", default=True, help="wait until it is over [default: --watch]")
def status(data: Path, kubeconfig: Path | None, namespace: str, target: str, timeout: float, watch: bool) -> None:
    """Say how far a rollout is, until it is over. Exit code 1 when it is not over in time."""

    async def tell(client: Client, key: Key) -> bool:
        from homeport.core.machinedeployment import rollback

        said = ""
        async with asyncio.timeout(timeout or None):
            async for over, deployment in rollback.follow(client, key):
                _, text = rollback.progress(deployment)
                if text != said:
                    click.echo(text)
                said = text
                if over or not watch:
                    return over
        return False

    try:
        over = _ask(data, kubeconfig, namespace, target, tell)
    except TimeoutError:
        raise click.ClickException(f"machinedeployment/{target} is not rolled out after {timeout:g} s") from None
    if not over and watch:
        raise SystemExit(1)


def _ask(
    data: Path,
    kubeconfig: Path | None,
    namespace: str,
    target: str,
    work: Callable[[Client, Key], Coroutine[Any, Any, T]],
) -> T:
    """Does the work on the plane; what it refuses becomes a message."""
    from homeport.client import kubeconfig as kubeconfigs
    from homeport.client.errors import ApiError
    from homeport.client.protocol import Key
    from homeport.client.quick import import_aiohttp
    from homeport.core.machinedeployment.revision import NoRevision
    from homeport.core.machinedeployment.rollback import Refused

    import_aiohttp()
    from homeport.client.http import HttpClient

    where = kubeconfig or Settings.make(data).kubeconfig

    async def call() -> T:
        client = HttpClient(kubeconfigs.load(where))
        try:
            return await work(client, Key(namespace, target))
        finally:
            await client.close()

    if not where.exists():
        raise click.ClickException(f"{where} does not exist: start a plane with 'homeport up', or name a --kubeconfig")
    try:
        return asyncio.run(call())
    except (ApiError, NoRevision, Refused) as error:
        raise click.ClickException(str(error)) from error
