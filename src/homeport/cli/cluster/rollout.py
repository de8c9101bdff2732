"""homeport rollout"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import click

from homeport.cli.group import Group
from homeport.cli.output import listing_option, print_found, print_table
from homeport.cli.where import Where, ask, located

if TYPE_CHECKING:
    from homeport.client.protocol import Client, Key

T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., Any])

_DEPLOYMENT, _CONTROL_PLANE = "machinedeployment", "kubeadmcontrolplane"
_KINDS = {
    **dict.fromkeys((_DEPLOYMENT, "machinedeployments", "machinedeployments.cluster.x-k8s.io", "md"), _DEPLOYMENT),
    **dict.fromkeys(
        (_CONTROL_PLANE, "kubeadmcontrolplanes", "kubeadmcontrolplanes.controlplane.cluster.x-k8s.io", "kcp"),
        _CONTROL_PLANE,
    ),
}


class Target(NamedTuple):
    kind: str
    name: str

    @property
    def plane(self) -> bool:
        return self.kind == _CONTROL_PLANE

    def __str__(self) -> str:
        return f"{self.kind}/{self.name}"


class _Targets(click.ParamType[Target]):
    """machinedeployment/NAME, and for most verbs kubeadmcontrolplane/NAME"""

    def __init__(self, *, planes: bool) -> None:
        self._planes = planes
        self.name = "machinedeployment/NAME" + (" or kubeadmcontrolplane/NAME" if planes else "")

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Target:
        kind, slash, name = str(value).partition("/")
        found = _KINDS.get(kind.lower())
        if not slash or found is None or not name or "/" in name:
            self.fail(f"{value!r}: expected {self.name}", param, ctx)
        if found == _CONTROL_PLANE and not self._planes:
            self.fail(f"{value!r}: control planes keep no revisions: apply the earlier manifest instead", param, ctx)
        return Target(found, name)


@click.group(cls=Group)
def command() -> None:
    """Manage rollouts of MachineDeployments and control planes: status, history, pause, resume, restart, undo.

    `history` and `undo` are for MachineDeployments alone: a KubeadmControlPlane keeps no revisions.

    The plane is that of --kubeconfig or --data, otherwise that of KUBECONFIG, as for kubectl.
    """


def _options(fn: F) -> F:
    """Of verbs that need revisions."""
    return located(click.argument("target", type=_Targets(planes=False), metavar="machinedeployment/NAME")(fn))


def _any_options(fn: F) -> F:
    return located(click.argument("target", type=_Targets(planes=True), metavar="KIND/NAME")(fn))


@command.command()
@_options
@click.option(
    "--to-revision", type=click.IntRange(min=0), default=0, help="Revision to roll back to (default: the previous one)."
)
def undo(where: Where, target: Target, to_revision: int) -> None:
    """Roll back to the template of an earlier revision."""
    from homeport.core.machinedeployment import rollback

    found = _ask(where, target, lambda client, key: rollback.undo(client, key, to_revision))
    version = f" ({found.version})" if found.version else ""
    click.echo(f"{target} is rolled back to revision {found.number}{version}")
    click.echo(f"next: homeport rollout status {target}{where.arguments()}")


@command.command()
@_options
@listing_option
def history(where: Where, target: Target, output: str | None) -> None:
    """List the revisions available for rollback."""
    from homeport.core.machinedeployment import rollback

    found = _ask(where, target, rollback.history)

    def text(wide: bool) -> None:
        rows = [("REVISION", "MACHINESET", "VERSION", "INFRASTRUCTURE", "BOOTSTRAP", "REPLICAS")]
        for each in found:
            number = f"{each.number}{'*' if each.current else ''}"
            rows.append((number, each.name, each.version, each.infrastructure, each.bootstrap, str(each.replicas)))
        print_table(rows)

    print_found(output, found, (("machineset", each.name) for each in found), text)


@command.command()
@_any_options
def restart(where: Where, target: Target) -> None:
    """Roll all Machines even if nothing has changed."""
    from homeport.controlplane.kubeadm import rollout
    from homeport.core.machinedeployment import rollback
    from homeport.runtime.clock import SystemClock

    now = SystemClock().now()
    restarted = rollout.restart if target.plane else rollback.restart
    when = _ask(where, target, lambda client, key: restarted(client, key, now))
    click.echo(f"{target} is restarted: Machines created before {when} are replaced")


@command.command()
@_any_options
def pause(where: Where, target: Target) -> None:
    """Pause a rollout; the number of replicas can still be changed."""
    _pause(where, target, paused=True)


@command.command()
@_any_options
def resume(where: Where, target: Target) -> None:
    """Resume a paused rollout."""
    _pause(where, target, paused=False)


def _pause(where: Where, target: Target, *, paused: bool) -> None:
    from homeport.controlplane.kubeadm import rollout
    from homeport.core.machinedeployment import rollback

    change = rollout.pause if target.plane else rollback.pause
    changed = _ask(where, target, lambda client, key: change(client, key, paused=paused))
    word = "paused" if paused else "resumed"
    already = "" if changed else " already" if paused else ": it was not paused"
    click.echo(f"{target} {'is ' if paused else ''}{word}{already}")


@command.command()
@_any_options
@click.option("--timeout", type=click.FloatRange(min=0), default=0.0, help="Seconds to wait (default: no limit).")
@click.option("--watch/--no-watch", default=True, help="Wait until the rollout finishes (default: --watch).")
def status(where: Where, target: Target, timeout: float, watch: bool) -> None:
    """Show rollout progress until it finishes. Exit code 1 if it does not finish in time."""

    async def tell(client: Client, key: Key) -> bool:
        from homeport.api.cluster.v1beta2 import MachineDeployment
        from homeport.api.controlplane.v1beta2 import KubeadmControlPlane
        from homeport.capi.object.rollout import follow

        said = ""
        kind: Any = KubeadmControlPlane if target.plane else MachineDeployment
        async with asyncio.timeout(timeout or None):
            async for over, text in follow(client, kind, key):
                if text != said:
                    click.echo(text)
                said = text
                if over or not watch:
                    return over
        return False

    try:
        over = _ask(where, target, tell)
    except TimeoutError:
        raise click.ClickException(f"{target} has not finished its rollout after {timeout:g} s") from None
    if not over and watch:
        raise SystemExit(1)


def _ask(where: Where, target: Target, work: Callable[[Client, Key], Coroutine[Any, Any, T]]) -> T:
    from homeport.capi.object.rollout import Refused
    from homeport.core.machinedeployment.revision import NoRevision

    return ask(where, target.name, work, NoRevision, Refused)
