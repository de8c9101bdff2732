"""homeport chart"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from homeport.cli.charts.chartoption import Source, sourced, valued
from homeport.cli.group import Group
from homeport.cli.output import listing_option, print_found, print_table
from homeport.cli.where import Where, ask, located

if TYPE_CHECKING:
    from homeport.client.protocol import Client, Key
    from homeport.helm.release.operation import Outcome
    from homeport.helm.release.record import Release
    from homeport.helm.release.releases import Releases
    from homeport.runtime.outcome import Wait

T = TypeVar("T")
_TITLES = {"appVersion": "APP VERSION"}


@click.group(cls=Group)
def command() -> None:
    """Render Helm charts and manage their releases: show, pull, render, install, list, history, rollback, uninstall.

    CHART is oci://HOST/PATH[:VERSION], a folder, an archive, or with --repo the name of a chart. Releases are recorded
    as Helm records them: the helm command works on them, too.
    """


_TITLES = {"appVersion": "app version", "signedBy": "signed by"}


@command.command()
@sourced
@click.option("--values", is_flag=True, help="Print the chart's values.yaml instead.")
@listing_option
def show(source: Source, values: bool, output: str | None) -> None:
    """Show what a chart is."""
    fetched = asyncio.run(source.fetch())
    if values:
        click.echo(fetched.files.get("values.yaml", b"").decode(errors="replace"), nl=False)
        return
    metadata = fetched.chart.metadata
    facts = {
        "name": metadata.name,
        "version": metadata.version,
        "appVersion": metadata.app_version,
        "description": metadata.description,
        "kubernetes": metadata.kube_version,
        "dependencies": ", ".join(f"{each.name} {each.version}" for each in metadata.dependencies or ()),
        "digest": fetched.digest,
        "signedBy": fetched.signed_by,
    }

    def text(wide: bool) -> None:
        for name, fact in facts.items():
            if fact:
                click.echo(f"{_TITLES.get(name, name) + ':':<14}{fact}")

    print_found(output, facts, [("chart", metadata.name)], text)


@command.command()
@sourced
@click.option(
    "-d",
    "--destination",
    metavar="DIR",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path(),
    help="Write the archive into this folder (default: the current one).",
)
def pull(source: Source, destination: Path) -> None:
    """Fetch the archive of a chart, for example to carry it to a site without a network."""
    fetched = asyncio.run(source.fetch())
    if fetched.archive is None:
        raise click.ClickException(f"{source.chart} is a folder and has no archive to fetch")
    destination.mkdir(parents=True, exist_ok=True)
    target = destination / f"{fetched.chart.name}-{fetched.version}.tgz"
    target.write_bytes(fetched.archive)
    if fetched.provenance is not None:
        target.with_name(f"{target.name}.prov").write_bytes(fetched.provenance)
    click.echo(f"{target}  {fetched.digest}")


@command.command()
@click.argument("name")
@sourced
@valued
@click.option("-n", "--namespace", default="default", help="Namespace of the release (default: default).")
@click.option("--kube-version", default="", help="Kubernetes version that the chart sees (default: the newest known).")
@click.option("--api-version", "api_versions", multiple=True, help="API version that the cluster serves. Repeatable.")
@click.option("--upgrade", is_flag=True, help="Render as for an upgrade (default: as for an install).")
@click.option("--include-crds", is_flag=True, help="Print the objects of the chart's crds/ folder, too.")
def render(
    name: str,
    source: Source,
    values: dict[str, Any],
    namespace: str,
    kube_version: str,
    api_versions: tuple[str, ...],
    upgrade: bool,
    include_crds: bool,
) -> None:
    """Print the objects that a chart gives, without a cluster."""
    from homeport.machinery.chart import Capabilities, ChartError, ReleaseInfo
    from homeport.machinery.chart import render as render_chart

    fetched = asyncio.run(source.fetch())
    version = {"kube_version": kube_version} if kube_version else {}
    release = ReleaseInfo(name, namespace, is_install=not upgrade, is_upgrade=upgrade)
    try:
        made = render_chart(fetched.chart, values, release, Capabilities(api_versions=api_versions, **version))
    except ChartError as error:
        raise click.ClickException(str(error)) from None
    for text in made.warnings:
        click.echo(f"warning: {text}", err=True)
    shown = [(each.source, each.text) for each in (*(made.crds if include_crds else ()), *made.manifests)]
    for path, text in [*shown, *((hook.source, hook.text) for hook in made.hooks)]:
        click.echo(f"---\n# Source: {path}\n{text}")


@command.command()
@click.argument("name")
@sourced
@valued
@located
@click.option("--create-namespace", is_flag=True, help="Create the namespace if it does not exist.")
@click.option("--take-ownership", is_flag=True, help="Adopt existing objects that do not belong to the release.")
@click.option("--no-hooks", is_flag=True, help="Run no hooks.")
@click.option("--no-wait", is_flag=True, help="Do not wait until the objects are ready.")
@click.option("--timeout", type=click.FloatRange(min=1), default=300.0, help="Seconds to wait (default: 300).")
def install(
    where: Where,
    name: str,
    source: Source,
    values: dict[str, Any],
    create_namespace: bool,
    take_ownership: bool,
    no_hooks: bool,
    no_wait: bool,
    timeout: float,
) -> None:
    """Install a chart, or upgrade its release if it exists. The same again changes nothing.

    An operation that was interrupted is finished.
    """
    from homeport.helm.release.desired import Desired

    async def work(client: Client, key: Key) -> Release | None:
        fetched = await source.fetch()
        desired = Desired(
            name,
            key.namespace,
            fetched.files,
            values,
            create_namespace=create_namespace,
            take_ownership=take_ownership,
            hooks=not no_hooks,
        )
        releases = _releases(client)
        async with _limit(f"release {name}", timeout):
            outcome = await _until_done(lambda: releases.ensure(desired))
            _check(outcome)
            if not no_wait and outcome.release is not None:
                await _until_ready(releases, outcome.release)
        return outcome.release

    release = _ask(where, name, work)
    if release is not None:
        click.echo(f"release {release.name} revision {release.version} is {release.status}: {release.description}")
        if notes := str(release.info.get("notes", "")).strip():
            click.echo(notes)


@command.command("list")
@located
@click.option("-A", "--all-namespaces", is_flag=True, help="List the releases of all namespaces.")
@listing_option
def list_releases(where: Where, all_namespaces: bool, output: str | None) -> None:
    """List releases."""

    async def work(client: Client, key: Key) -> Any:
        return await _releases(client).newest("" if all_namespaces else key.namespace)

    _print(output, _ask(where, "", work), ("namespace", "name", "revision", "status", "chart", "updated"))


@command.command()
@click.argument("name")
@located
@listing_option
def history(where: Where, name: str, output: str | None) -> None:
    """List the revisions of a release."""

    async def work(client: Client, key: Key) -> Any:
        return await _releases(client).history(key.namespace, name)

    found = _ask(where, name, work)
    if not found:
        raise click.ClickException(f"release {name} does not exist")
    _print(output, found, ("revision", "status", "chart", "updated", "description"))


@command.command()
@click.argument("name")
@click.argument("revision", type=click.IntRange(min=0), default=0)
@located
@click.option("--timeout", type=click.FloatRange(min=1), default=300.0, help="Seconds to wait (default: 300).")
def rollback(where: Where, name: str, revision: int, timeout: float) -> None:
    """Go back to REVISION (default: the previous one)."""

    async def work(client: Client, key: Key) -> Release | None:
        releases = _releases(client)
        async with _limit(f"release {name}", timeout):
            outcome = await _until_done(lambda: releases.rollback(key.namespace, name, revision))
            _check(outcome)
        return outcome.release

    release = _ask(where, name, work)
    if release is not None:
        click.echo(f"release {release.name} revision {release.version} is {release.status}: {release.description}")


@command.command()
@click.argument("name")
@located
@click.option("--keep-history", is_flag=True, help="Keep the records of the release.")
@click.option("--no-hooks", is_flag=True, help="Run no hooks.")
@click.option("--timeout", type=click.FloatRange(min=1), default=300.0, help="Seconds to wait (default: 300).")
def uninstall(where: Where, name: str, keep_history: bool, no_hooks: bool, timeout: float) -> None:
    """Delete the objects of a release, then its records."""

    async def work(client: Client, key: Key) -> Outcome | None:
        releases = _releases(client)
        if await releases.current(key.namespace, name) is None:
            return None
        async with _limit(f"release {name}", timeout):
            outcome = await _until_done(
                lambda: releases.uninstall(key.namespace, name, keep_history=keep_history, hooks=not no_hooks)
            )
            _check(outcome)
        return outcome

    outcome = _ask(where, name, work)
    if outcome is None:
        raise click.ClickException(f"release {name} does not exist")
    click.echo(f"release {name} is uninstalled")
    for text in outcome.kept:
        click.echo(f"kept: {text}")


def _releases(client: Client) -> Releases:
    from homeport.helm.release.releases import Releases
    from homeport.runtime.clock import SystemClock

    return Releases(client, SystemClock())


async def _until_done(call: Callable[[], Coroutine[Any, Any, Outcome]]) -> Outcome:
    said = ""
    while True:
        outcome = await call()
        if outcome.wait is None:
            return outcome
        said = await _pause(outcome.wait, said)


async def _until_ready(releases: Releases, release: Release) -> None:
    said = ""
    while (wait := await releases.wait(release)) is not None:
        if wait.warning:
            raise click.ClickException(str(wait))
        said = await _pause(wait, said)


async def _pause(wait: Wait, said: str) -> str:
    text = wait.message or wait.reason
    if text != said:
        click.echo(text)
    await asyncio.sleep(min(wait.after or 1.0, 1.0))
    return text


class _limit:  # noqa: N801  (used as a statement)
    """A time limit whose end is a message."""

    def __init__(self, what: str, seconds: float) -> None:
        self._what = what
        self._seconds = seconds
        self._timeout = asyncio.timeout(seconds)

    async def __aenter__(self) -> None:
        await self._timeout.__aenter__()

    async def __aexit__(self, *error: Any) -> None:
        try:
            await self._timeout.__aexit__(*error)
        except TimeoutError:
            raise click.ClickException(
                f"{self._what} is not done after {self._seconds:g} s: run the same command again to go on"
            ) from None


def _check(outcome: Outcome) -> None:
    if outcome.failed and outcome.release is not None:
        raise click.ClickException(outcome.release.description)


def _ask(where: Where, name: str, work: Callable[[Client, Key], Coroutine[Any, Any, T]]) -> T:
    from homeport.helm.errors import HelmError

    return ask(where, name, work, HelmError)


def _facts(release: Release) -> dict[str, str]:
    metadata = release.chart.get("metadata") or {}
    return {
        "namespace": release.namespace,
        "name": release.name,
        "revision": str(release.version),
        "status": release.status,
        "chart": f"{metadata.get('name', '')}-{metadata.get('version', '')}",
        "appVersion": str(metadata.get("appVersion") or ""),
        "updated": str(release.info.get("last_deployed", ""))[:19],
        "description": release.description,
    }


def _print(output: str | None, releases: Sequence[Release], columns: Sequence[str]) -> None:
    found = [_facts(each) for each in releases]

    def text(wide: bool) -> None:
        shown = list(found[0] if found else columns) if wide else columns
        print_table(
            [tuple(_TITLES.get(name, name.upper()) for name in shown), *(tuple(e[n] for n in shown) for e in found)]
        )

    print_found(output, found, (("release", each["name"]) for each in found), text)
