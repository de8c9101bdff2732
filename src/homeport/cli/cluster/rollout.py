"""homeport rollout"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any, TypeVar

import click

from homeport.cli.group import Group
from homeport.cli.where import Where, ask, located

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
            self.fail(f"{value!r}: expected machinedeployment/NAME", param, ctx)
        return name


@click.group(cls=Group)
def command() -> None:
    """Manage rollouts of MachineDeployments: status, history, pause, resume, restart, undo.

    The plane is that of --kubeconfig or --data, otherwise that of KUBECONFIG, as for kubectl.
    """


def _options(fn: F) -> F:
    return located(click.argument("target", type=_Target(), metavar="machinedeployment/NAME")(fn))


@command.command()
@_options
@click.option(
    "--to-revision", type=click.IntRange(min=0), default=0, help="Revision to roll back to (default: the previous one)."
)
def undo(where: Where, target: str, to_revision: int) -> None:
    """Roll back to the template of an earlier revision."""
    from homeport.core.machinedeployment import rollback

    found = _ask(where, target, lambda client, key: rollback.undo(client, key, to_revision))
    version = f" ({found.version})" if found.version else ""
    click.echo(f"machinedeployment/{target} is rolled back to revision {found.number}{version}")
    click.echo(f"next: homeport rollout status machinedeployment/{target}{where.arguments()}")


@command.command()
@_options
def history(where: Where, target: str) -> None:
    """List the revisions available for rollback."""
    from homeport.core.machinedeployment import rollback

    found = _ask(where, target, rollback.history)
    rows = [("REVISION", "MACHINESET", "VERSION", "INFRASTRUCTURE", "BOOTSTRAP", "REPLICAS")]
    for each in found:
        number = f"{each.number}{'*' if each.current else ''}"
        rows.append((number, each.name, each.version, each.infrastructure, each.bootstrap, str(each.replicas)))
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    for row in rows:
        click.echo("  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip())


@command.command()
@_options
def restart(where: Where, target: str) -> None:
    """Roll all Machines even if nothing has changed."""
    from homeport.core.machinedeployment import rollback
    from homeport.runtime.clock import SystemClock

    now = SystemClock().now()
    when = _ask(where, target, lambda client, key: rollback.restart(client, key, now))
    click.echo(f"machinedeployment/{target} is restarted: Machines created before {when} are replaced")


@command.command()
@_options
def pause(where: Where, target: str) -> None:
    """Pause a rollout; the number of replicas can still be changed."""
    _pause(where, target, paused=True)


@command.command()
@_options
def resume(where: Where, target: str) -> None:
    """Resume a paused rollout."""
    _pause(where, target, paused=False)


def _pause(where: Where, target: str, *, paused: bool) -> None:
    from homeport.core.machinedeployment import rollback

    changed = _ask(where, target, lambda client, key: rollback.pause(client, key, paused=paused))
    word = "paused" if paused else "resumed"
    already = "" if changed else " already" if paused else ": it was not paused"
    click.echo(f"machinedeployment/{target} {'is ' if paused else ''}{word}{already}")


@command.command()
@_options
@click.option("--timeout", type=click.FloatRange(min=0), default=0.0, help="Seconds to wait (default: no limit).")
@click.option("--watch/--no-watch", default=True, help="Wait until the rollout finishes (default: --watch).")
def status(where: Where, target: str, timeout: float, watch: bool) -> None:
    """Show rollout progress until it finishes. Exit code 1 if it does not finish in time."""

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
        over = _ask(where, target, tell)
    except TimeoutError:
        raise click.ClickException(
            f"machinedeployment/{target} has not finished its rollout after {timeout:g} s"
        ) from None
    if not over and watch:
        raise SystemExit(1)


def _ask(where: Where, target: str, work: Callable[[Client, Key], Coroutine[Any, Any, T]]) -> T:
    from homeport.core.machinedeployment.revision import NoRevision
    from homeport.core.machinedeployment.rollback import Refused

    return ask(where, target, work, NoRevision, Refused)
