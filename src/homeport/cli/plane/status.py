"""homeport status"""

from __future__ import annotations

import contextlib
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import msgspec

from homeport.app.hint import on_data, up_command
from homeport.app.plane.instance import STATUS_PATH, Instance, read_instance
from homeport.app.settings import Settings
from homeport.cli.option import data as data_option

if TYPE_CHECKING:
    from homeport.app.report.description import Description
    from homeport.cli.plane.overview import Line

NOT_RUNNING = 3
_UNFINISHED = 20
_WATCH_SECONDS = 2.0


@click.command()
@data_option
@click.option("--controllers", is_flag=True, help="Also show components, controllers and every unfinished object.")
@click.option(
    "-o", "--output", type=click.Choice(["json", "yaml"]), help="Print everything in this format (default: a summary)."
)
@click.option("-w", "--watch", is_flag=True, help="Show it again whenever it changes, until Ctrl-C.")
def command(data: Path, controllers: bool, output: str | None, watch: bool) -> None:
    """Show the plane that runs on DIR: its address, its clusters, what is in progress and what is stuck.

    The exit code is 0 if the plane runs, 3 if it does not run, and 1 if it runs but does not answer.
    """
    settings = Settings.make(data)
    instance = read_instance(settings.data)
    if instance is None:
        _not_running(settings, output)
        raise SystemExit(NOT_RUNNING)
    show = partial(_show, settings, instance, output, controllers=controllers)
    if not watch:
        show(ask_plane(settings, instance))
        return
    with contextlib.suppress(KeyboardInterrupt):
        _watch(lambda: ask_plane(settings, instance), show)


def _show(settings: Settings, instance: Instance, output: str | None, found: Description, *, controllers: bool) -> None:
    if output is not None:
        _print({**_place(settings), "running": True, **_to_dict(instance), **_to_dict(found)}, output)
        return
    for line in _lines(settings, instance, found, controllers=controllers):
        click.secho(line.text, **_click_style(line.style))


def _watch(ask: Callable[[], Description], show: Callable[[Description], None]) -> None:
    """On a terminal in place; elsewhere one after the other, and only what has changed."""
    before: object = None
    while True:
        found = ask()
        steady = [msgspec.structs.replace(each, seconds=0.0) for each in found.clusters]
        now = (steady, found.stuck, found.under_way)
        if sys.stdout.isatty():
            click.clear()
            show(found)
        elif now != before:
            if before is not None:
                click.echo("---")
            show(found)
            sys.stdout.flush()
        before = now
        time.sleep(_WATCH_SECONDS)


def _not_running(settings: Settings, output: str | None) -> None:
    if output is not None:
        _print({**_place(settings), "running": False}, output)
        return
    click.echo(f"no plane is running on {settings.data}")
    click.echo(f"next: {up_command(settings)}")


def ask_plane(settings: Settings, instance: Instance) -> Description:
    from homeport.app.remote import ask
    from homeport.app.report.description import Description
    from homeport.client.config import ConfigError
    from homeport.client.errors import ApiError

    try:
        return msgspec.convert(ask(settings.kubeconfig, STATUS_PATH), Description)
    except (ApiError, ConfigError) as error:
        what = f"the plane at {instance.url} (process {instance.pid}) does not answer"
        raise click.ClickException(f"{what}: {error}. See {settings.log}") from error


def _lines(settings: Settings, instance: Instance, found: Description, *, controllers: bool) -> Iterator[Line]:
    from homeport.cli.plane.overview import Line, overview, unfinished
    from homeport.cli.plane.overview import controllers as table

    head = list(_head(settings, instance, found))
    for text in head:
        yield Line(text)
    yield Line("")
    width, height = shutil.get_terminal_size() if sys.stdout.isatty() else (None, None)
    fitting = None if height is None or controllers else max(10, height - len(head) - 2)
    yield from overview(found, width=width, height=fitting, command=lambda verb: on_data(verb, settings.data))
    if controllers:
        yield Line("")
        for part in found.parts:
            crashed = f", {part.crashes} crashes, the last: {part.error}" if part.crashes else ""
            yield Line(f"component {part.name}: {part.state}{crashed}")
        yield Line(f"{sum(found.objects.values())} objects of {len(found.objects)} kinds, revision {found.revision}")
        yield Line("")
        yield from table(found.controllers)
        yield from unfinished(found.controllers, _UNFINISHED)


def _head(settings: Settings, instance: Instance, found: Description) -> Iterator[str]:
    up = duration(time.time() - instance.started)
    yield f"Homeport {instance.version} runs at {instance.url} (up {up}, process {instance.pid})"
    yield f"kubeconfig  {settings.kubeconfig}"
    yield f"data        {settings.data}"
    if found.simulators:  # they share one network, and so the proxy to it
        yield f"proxy       {found.simulators[0].proxy}"
    if found.processes:
        yield "hosted      " + ", ".join(f"{count} {name}" for name, count in sorted(found.processes.items()))
    for each in found.simulators:
        yield f"simulator   {each.name} {each.url}, {each.running} of {each.machines} machines running"
        if each.kubeconfig:
            yield f"  kubeconfig {each.kubeconfig}"
        elif each.user:
            yield f"  login     user {each.user}, password {each.password}"
        else:
            yield f"  token     {each.password}"
        yield f"  authority {each.authority}"
        if each.admin:
            yield f"  admin     {each.admin} (curl -H @{each.admin_header})"


def duration(seconds: float) -> str:
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}h{minutes:02d}m" if hours else f"{minutes}m{rest:02d}s" if minutes else f"{rest}s"


def _place(settings: Settings) -> dict[str, Any]:
    return {"data": str(settings.data), "kubeconfig": str(settings.kubeconfig), "log": str(settings.log)}


def _to_dict(found: Any) -> dict[str, Any]:
    made: dict[str, Any] = msgspec.to_builtins(found)
    return made


def _print(found: dict[str, Any], output: str) -> None:
    if output == "json":
        import json

        click.echo(json.dumps(found, indent=2))
    else:
        from homeport.machinery.yaml import dump

        click.echo(dump(found), nl=False)


def _click_style(style: str) -> dict[str, Any]:
    return {"bold": True} if style == "bold" else {"dim": True} if style == "dim" else {"fg": style or None}
