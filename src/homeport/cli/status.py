"""homeport status"""

from __future__ import annotations

import time
from pathlib import Path

import click

from homeport.app.instance import read_instance
from homeport.app.settings import Settings
from homeport.cli.option import data as data_option

_SHOWN = 8


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
    from homeport.app.remote import ask
    from homeport.app.standalone import STATUS_PATH
    from homeport.client.errors import ApiError

    click.echo(f"running   {instance.url} (process {instance.pid}, up {_duration(time.time() - instance.started)})")
    click.echo(f"version   {instance.version}")
    click.echo(f"data      {settings.data}")
    click.echo(f"kubectl   export KUBECONFIG={settings.kubeconfig}")
    try:
        held = ask(settings.kubeconfig, STATUS_PATH)
    except ApiError as error:
        raise click.ClickException(f"it does not answer: {error}. Look at {settings.log}") from error
    objects = held["objects"]
    click.echo(f"objects   {sum(objects.values())} at revision {held['revision']}")
    for bucket, count in sorted(objects.items(), key=lambda item: -item[1])[:_SHOWN]:
        click.echo(f"          {count:>6} {bucket}")
    for part in held.get("parts", ()):
        trouble = f" ({part['error']})" if part["error"] else ""
        click.echo(f"part      {part['name']}: {part['state']}{trouble}")


def _duration(seconds: float) -> str:
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}h{minutes:02d}m" if hours else f"{minutes}m{rest:02d}s" if minutes else f"{rest}s"
