"""homeport rollout"""

from __future__ import annotations

import asyncio
import functools
import os
import shlex
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

import click
from click.core import ParameterSource

from homeport.app.settings import Settings
from homeport.cli.option import data as data_option

if TYPE_CHECKING:
    from homeport.client.config import Config
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
    """Manage rollouts of MachineDeployments: status, history, pause, resume, restart, undo.

    The plane is that of --kubeconfig or --data, otherwise that of KUBECONFIG, as for kubectl.
    """


@dataclass(frozen=True, slots=True)
class _Where:
    """Which plane, and where on it. As for kubectl, KUBECONFIG names the plane unless an option does."""

    data: Path
    data_named: bool
    kubeconfig: Path | None
    context: str
    namespace: str

    def load(self) -> Config:
        """Raises ConfigError."""
        from homeport.client import kubeconfig
        from homeport.client.config import ConfigError

        if self.kubeconfig is not None or self.from_environment:
            return kubeconfig.load(self.kubeconfig, context=self.context)
        file = Settings.make(self.data).kubeconfig
        if not file.exists():
            raise ConfigError(f"{file} does not exist: start a plane with 'homeport up', or name a --kubeconfig")
        return kubeconfig.load(file, context=self.context)

    @property
    def from_environment(self) -> bool:
        return self.kubeconfig is None and not self.data_named and bool(os.environ.get("KUBECONFIG"))

    def arguments(self) -> str:
        """The options of this command that the next one needs, too."""
        found = [f" --namespace {self.namespace}"] if self.namespace else []
        found += [f" --context {shlex.quote(self.context)}"] if self.context else []
        if self.kubeconfig is not None:
            found.append(f" --kubeconfig {shlex.quote(str(self.kubeconfig))}")
        elif self.data_named:
            found.append(f" --data {shlex.quote(str(self.data))}")
        return "".join(found)


def _options(fn: F) -> F:
    @functools.wraps(fn)
    @click.pass_context
    def call(
        ctx: click.Context, /, data: Path, kubeconfig: Path | None, context: str, namespace: str, **more: Any
    ) -> Any:
        named = ctx.get_parameter_source("data") is ParameterSource.COMMANDLINE
        return fn(_Where(data, named, kubeconfig, context, namespace), **more)

    made: Any = call
    for decorate in (
        click.argument("target", type=_Target(), metavar="machinedeployment/NAME"),
        click.option("-n", "--namespace", default="", help="Namespace (default: that of the kubeconfig context)."),
        click.option("--context", metavar="NAME", default="", help="Kubeconfig context (default: the current one)."),
        click.option(
            "--kubeconfig",
            metavar="FILE",
            type=click.Path(path_type=Path, dir_okay=False, exists=True),
            help="Kubeconfig of the plane (default: $KUBECONFIG, otherwise the one in the data directory).",
        ),
        data_option,
    ):
        made = decorate(made)
    return cast(F, made)


@command.command()
@_options
@click.option(
    "--to-revision", type=click.IntRange(min=0), default=0, help="Revision to roll back to (default: the previous one)."
)
def undo(where: _Where, target: str, to_revision: int) -> None:
    """Roll back to the template of an earlier revision."""
    from homeport.core.machinedeployment import rollback

    found = _ask(where, target, lambda client, key: rollback.undo(client, key, to_revision))
    version = f" ({found.version})" if found.version else ""
    click.echo(f"machinedeployment/{target} goes back to revision {found.number}{version}")
    click.echo(f"next: homeport rollout status machinedeployment/{target}{where.arguments()}")


@command.command()
@_options
def history(where: _Where, target: str) -> None:
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
def restart(where: _Where, target: str) -> None:
    """Roll all Machines even if nothing has changed."""
    from homeport.core.machinedeployment import rollback
    from homeport.runtime.clock import SystemClock

    now = SystemClock().now()
    when = _ask(where, target, lambda client, key: rollback.restart(client, key, now))
    click.echo(f"machinedeployment/{target} is restarted: Machines made before {when} are replaced")


@command.command()
@_options
def pause(where: _Where, target: str) -> None:
    """Pause a rollout; the number of replicas can still be changed."""
    _pause(where, target, paused=True)


@command.command()
@_options
def resume(where: _Where, target: str) -> None:
    """Resume a paused rollout."""
    _pause(where, target, paused=False)


def _pause(where: _Where, target: str, *, paused: bool) -> None:
    from homeport.core.machinedeployment import rollback

    changed = _ask(where, target, lambda client, key: rollback.pause(client, key, paused=paused))
    word = "paused" if paused else "resumed"
    already = "" if changed else " already" if paused else ": it was not paused"
    click.echo(f"machinedeployment/{target} {'is ' if paused else ''}{word}{already}")


@command.command()
@_options
@click.option("--timeout", type=click.FloatRange(min=0), default=0.0, help="Seconds to wait (default: no limit).")
@click.option("--watch/--no-watch", default=True, help="Wait until the rollout finishes (default: --watch).")
def status(where: _Where, target: str, timeout: float, watch: bool) -> None:
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
        raise click.ClickException(f"machinedeployment/{target} is not rolled out after {timeout:g} s") from None
    if not over and watch:
        raise SystemExit(1)


def _ask(where: _Where, target: str, work: Callable[[Client, Key], Coroutine[Any, Any, T]]) -> T:
    """Does the work on the plane; what it refuses becomes a message."""
    from homeport.client.config import ConfigError
    from homeport.client.errors import ApiError
    from homeport.client.protocol import Key
    from homeport.client.quick import import_aiohttp
    from homeport.core.machinedeployment.revision import NoRevision
    from homeport.core.machinedeployment.rollback import Refused

    import_aiohttp()
    from homeport.client.http import HttpClient

    async def call() -> T:
        config = where.load()
        client = HttpClient(config)
        try:
            return await work(client, Key(where.namespace or config.namespace, target))
        finally:
            await client.close()

    try:
        return asyncio.run(call())
    except (ApiError, ConfigError, NoRevision, Refused) as error:
        raise click.ClickException(str(error)) from error
