"""homeport status"""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from homeport.app.instance import STATUS_PATH, read_instance
from homeport.app.settings import Settings
from homeport.cli.option import data as data_option

if TYPE_CHECKING:
    from homeport.app.description import Description

_SHOWN = 8
_STUCK = 20


@click.command()
@data_option
def command(data: Path) -> None:
    """Say whether a plane runs on DIR, where, and what it holds. Exit code 3 when none runs."""
    settings = Settings.make(data)
    instance = read_instance(settings.data)
    if instance is None:
        click.echo(f"not running on {settings.data}")
        click.echo("next: homeport up")
        raise SystemExit(3)
    import msgspec

    from homeport.app.description import Description
    from homeport.app.remote import ask
    from homeport.client.errors import ApiError

    click.echo(f"running   {instance.url} (process {instance.pid}, up {_duration(time.time() - instance.started)})")
    click.echo(f"version   {instance.version}")
    click.echo(f"data      {settings.data}")
    click.echo(f"kubectl   export KUBECONFIG={settings.kubeconfig}")
    try:
        found = msgspec.convert(ask(settings.kubeconfig, STATUS_PATH), Description)
    except ApiError as error:
        raise click.ClickException(f"it does not answer: {error}. Look at {settings.log}") from error
    for line in (*_objects(found), *_simulators(found), *_parts(found), *_controllers(found)):
        click.echo(line)


def _objects(found: Description) -> Iterator[str]:
    yield f"objects   {sum(found.objects.values())} at revision {found.revision}"
    for bucket, count in sorted(found.objects.items(), key=lambda item: -item[1])[:_SHOWN]:
        yield f"          {count:>6} {bucket}"


def _simulators(found: Description) -> Iterator[str]:
    for each in found.simulators:
        yield f"sim       {each.name}: {each.url}, and port {each.port} of any host by the proxy"
        yield f"          requests  {each.requests}"
        yield f"          user      {each.user}, password {each.password}"
        yield f"          authority {each.authority}"
        yield f"          admin     {each.admin} (world, faults, journal, consoles)"
        yield f"          proxy     {each.proxy} (HTTPS_PROXY for curl, proxy-url of kubeconfigs)"
        yield f"          machines  {each.running} of {each.machines} running, {each.clusters} workload clusters"


def _parts(found: Description) -> Iterator[str]:
    for part in found.parts:
        crashed = f", {part.crashes} crashes, the last: {part.error}" if part.crashes else ""
        yield f"part      {part.name}: {part.state}{crashed}"


def _controllers(found: Description) -> Iterator[str]:
    for each in found.controllers:
        figures = f"{each.queue} in queue, {each.delayed} for later, {each.unfinished_count} unfinished"
        yield f"control   {each.name}: {figures}, {each.reconciles} reconciles, {each.errors} errors"
        for item in each.unfinished[:_STUCK]:
            yield f"          {item.object}: {item.reason}{': ' if item.message else ''}{item.message}"
        if each.unfinished_count > _STUCK:
            yield f"          and {each.unfinished_count - _STUCK} more"
    for kind, why in found.blind.items():
        yield f"blind     can't follow {kind}: {why}"


def _duration(seconds: float) -> str:
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}h{minutes:02d}m" if hours else f"{minutes}m{rest:02d}s" if minutes else f"{rest}s"
