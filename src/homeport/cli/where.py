"""Which plane a command talks to, and in which namespace: the options, and the connection."""

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
    from homeport.client.http import HttpClient
    from homeport.client.protocol import Key

_SERVER = "Check that this server runs, or choose another one with --kubeconfig or --context"
_TRUST = "Check certificate-authority-data in the kubeconfig, or choose another kubeconfig with --kubeconfig"

T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class Where:
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
            from homeport.app.hint import on_data

            start = on_data("up", file.parent)
            raise ConfigError(f"{file} does not exist: start a plane with '{start}', or use --kubeconfig FILE")
        return kubeconfig.load(file, context=self.context)

    @property
    def from_environment(self) -> bool:
        return self.kubeconfig is None and not self.data_named and bool(os.environ.get("KUBECONFIG"))

    def arguments(self) -> str:
        """The options of this command that the next one needs, too."""
        return (f" --namespace {self.namespace}" if self.namespace else "") + self.place()

    def cure(self, error: Exception) -> str:
        """To be put behind an error: how to start the plane, or what else to check."""
        from homeport.cli.advice import kubeconfig_files, start_hint
        from homeport.client.errors import Unavailable

        if not isinstance(error, Unavailable):
            return ""
        named = self.kubeconfig is not None or self.from_environment
        files = kubeconfig_files(self.kubeconfig) if named else [Settings.make(self.data).kubeconfig]
        started = next(filter(None, map(start_hint, files)), "")
        return started or f". {_TRUST if str(error).startswith('TLS with ') else _SERVER}"

    def place(self) -> str:
        """The options that name the plane."""
        found = [f" --context {shlex.quote(self.context)}"] if self.context else []
        if self.kubeconfig is not None:
            found.append(f" --kubeconfig {shlex.quote(str(self.kubeconfig))}")
        elif self.data_named:
            found.append(f" --data {shlex.quote(str(self.data))}")
        return "".join(found)


def cluster_name(what: tuple[str, ...]) -> str:
    """Of `cluster NAME`, `cluster/NAME` or NAME; '' if nothing is given."""
    words = [word for each in what for word in each.split("/", 1)]
    if "" in words:
        raise click.UsageError("the name of the cluster is empty: expected 'cluster NAME'")
    if len(words) == 2 and words[0].lower() in ("cluster", "tenantcluster", "clusterdeployment", "cld"):
        return words[1]
    if len(words) > 1 or words == ["cluster"]:
        raise click.UsageError(f"expected 'cluster NAME', not {' '.join(what)!r}")
    return words[0] if words else ""


def located(fn: F) -> F:
    """Adds the options that say which plane and namespace a command is about; they come as a Where."""

    @functools.wraps(fn)
    @click.pass_context
    def call(
        ctx: click.Context, /, data: Path, kubeconfig: Path | None, context: str, namespace: str, **more: Any
    ) -> Any:
        named = ctx.get_parameter_source("data") is ParameterSource.COMMANDLINE
        return fn(Where(data, named, kubeconfig, context, namespace), **more)

    made: Any = call
    for decorate in (
        click.option(
            "-n", "--namespace", default="", help="Use this namespace (default: that of the kubeconfig context)."
        ),
        click.option(
            "--context", metavar="NAME", default="", help="Use this kubeconfig context (default: the current one)."
        ),
        click.option(
            "--kubeconfig",
            metavar="FILE",
            type=click.Path(path_type=Path, dir_okay=False, exists=True),
            help="Connect to the plane with this kubeconfig (default: $KUBECONFIG, or else the one in DIR).",
        ),
        data_option,
    ):
        made = decorate(made)
    return cast(F, made)


def ask(
    where: Where, name: str, work: Callable[[HttpClient, Key], Coroutine[Any, Any, T]], *refusals: type[Exception]
) -> T:
    """Does the work on the plane; what it refuses becomes a message."""
    from homeport.app.denial import explain_denial
    from homeport.client.config import ConfigError
    from homeport.client.errors import ApiError, Forbidden, NotFound
    from homeport.client.protocol import Key

    async def call(client: HttpClient) -> T:
        from homeport.cli.advice import name_near

        namespace = where.namespace or client.config.namespace
        try:
            return await work(client, Key(namespace, name))
        except NotFound as error:
            raise click.ClickException(await name_near(client, error, namespace)) from error

    try:
        _note_other_plane(where)
        return reach(where, call)
    except Forbidden as error:
        raise click.ClickException(explain_denial(error)) from error
    except Exception as error:
        if isinstance(error, (ApiError, ConfigError, *refusals)):
            raise click.ClickException(f"{error}{where.cure(error)}") from error
        raise


def reach(where: Where, work: Callable[[HttpClient], Coroutine[Any, Any, T]]) -> T:
    """Does the work on the plane. Raises ConfigError."""
    from homeport.client.wire.quick import import_aiohttp

    import_aiohttp()
    from homeport.client.http import HttpClient

    async def call() -> T:
        client = HttpClient(where.load())
        try:
            return await work(client)
        finally:
            await client.close()

    return asyncio.run(call())


def _note_other_plane(where: Where) -> None:
    """Whoever has both should see which one a command is about."""
    from homeport.app.plane.instance import read_instance

    if not where.from_environment:
        return
    data = Settings.make(where.data).data
    instance, server = read_instance(data), where.load().server
    if instance is not None and instance.url.rstrip("/") != server.rstrip("/"):
        other = shlex.quote(str(data))
        rest = f"for the plane that runs on {other}, add --data {other}"
        click.echo(f"note: using {server} of $KUBECONFIG; {rest}", err=True)
