"""homeport up"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import time
from pathlib import Path

import click

from homeport.app.instance import read_instance
from homeport.app.settings import Settings, SettingsError
from homeport.cli.option import data as data_option

_START_SECONDS = 60.0
_LOG_TAIL = 15


@click.command()
@data_option
@click.option(
    "--listen",
    metavar="HOST:PORT",
    default="127.0.0.1:6443",
    show_default=True,
    envvar="HOMEPORT_LISTEN",
    help="where to serve the API",
)
@click.option("--detach", is_flag=True, help="go on in the background; returns when the plane is ready")
@click.option("--audit", is_flag=True, help="write who did what to DIR/audit.log")
@click.option(
    "--log-level", type=click.Choice(["debug", "info", "warning", "error"]), default="info", show_default=True
)
def command(data: Path, listen: str, detach: bool, audit: bool, log_level: str) -> None:
    """Start the management plane: a Kubernetes API on SQLite, nothing else needed."""
    try:
        settings = Settings.make(data, listen, audit=audit)
    except SettingsError as error:
        raise click.UsageError(str(error)) from error
    running = read_instance(settings.data)
    if running is not None:
        click.echo(f"Homeport already runs on {settings.data} (process {running.pid}, {running.url})")
        click.echo(_next_step(settings))
        if detach:
            return
        raise SystemExit(1)
    if detach:
        _detach(settings, log_level)
    else:
        _run(settings, log_level)


def _next_step(settings: Settings) -> str:
    return f"next: export KUBECONFIG={settings.kubeconfig} && kubectl get namespaces"


def _run(settings: Settings, log_level: str) -> None:
    from homeport.app import log
    from homeport.client.quick import import_aiohttp

    log.import_structlog()  # before anything that would import them in full
    import_aiohttp()
    import uvloop

    from homeport.apiserver.auth.pki import PkiError
    from homeport.app import standalone
    from homeport.store import StoreError

    def ready(url: str) -> None:
        click.echo(f"Homeport is ready at {url}")
        click.echo(f"kubeconfig: {settings.kubeconfig}")
        click.echo(_next_step(settings))
        sys.stdout.flush()

    log.configure(level=log_level)
    try:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(standalone.run(settings, ready))
    except (standalone.StartError, StoreError, PkiError, OSError) as error:
        raise click.ClickException(str(error)) from error


def _detach(settings: Settings, log_level: str) -> None:
    """Starts the same command as a process of its own and waits until it says that it is ready."""
    from homeport.apiserver.auth.file import make_private_dir

    make_private_dir(settings.data)
    listen = f"[{settings.host}]:{settings.port}" if ":" in settings.host else f"{settings.host}:{settings.port}"
    arguments = [sys.executable, "-m", "homeport", "up", "--data", str(settings.data), "--listen", listen]
    arguments += ["--log-level", log_level] + (["--audit"] if settings.audit else [])
    descriptor = os.open(settings.log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    start = os.fstat(descriptor).st_size
    try:
        child = subprocess.Popen(  # noqa: S603  (our own interpreter and module)
            arguments, stdin=subprocess.DEVNULL, stdout=descriptor, stderr=descriptor, start_new_session=True
        )
    finally:
        os.close(descriptor)
    deadline = time.monotonic() + _START_SECONDS
    while (instance := read_instance(settings.data)) is None:
        if child.poll() is not None:
            raise click.ClickException(f"the plane did not start:\n{_tail(settings.log, start)}")
        if time.monotonic() > deadline:
            child.terminate()
            raise click.ClickException(f"the plane was not ready after {_START_SECONDS:.0f} s; see {settings.log}")
        time.sleep(0.02)
    click.echo(f"Homeport is ready at {instance.url} (process {instance.pid}, log {settings.log})")
    click.echo(f"kubeconfig: {settings.kubeconfig}")
    click.echo(_next_step(settings))


def _tail(log: Path, start: int) -> str:
    with log.open("rb") as file:
        file.seek(start)
        lines = file.read().decode(errors="replace").splitlines()
    return "\n".join(line.removeprefix("Error: ") for line in lines[-_LOG_TAIL:])
