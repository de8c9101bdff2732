"""`homeport up --detach`: the same command as a process of its own, and the wait until it is ready."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import click

from homeport import __version__
from homeport.app.plane.instance import claimed, read_instance
from homeport.app.settings import Settings

_START_SECONDS = 60.0
_LOG_TAIL = 15


def start_detached(
    settings: Settings, log_level: str, plugins: Sequence[str], infrastructure: Sequence[str], *, tracing: bool
) -> None:
    """Starts the same command as a process of its own and waits until it says that it is ready."""
    from homeport.apiserver.auth.file import make_private_dir

    make_private_dir(settings.data)
    listen = f"[{settings.host}]:{settings.port}" if ":" in settings.host else f"{settings.host}:{settings.port}"
    arguments = [sys.executable, "-m", "homeport", "up", "--data", str(settings.data), "--listen", listen]
    arguments += ["--log-level", log_level] + (["--audit"] if settings.audit else [])
    arguments += [] if settings.workloads else ["--no-workloads"]
    arguments += [] if settings.dashboard else ["--no-dashboard"]
    arguments += ["--tracing"] if tracing else []
    arguments += infrastructure
    arguments += _arguments(settings)
    arguments += [f"--plugin={name}" for name in plugins]
    descriptor = os.open(settings.log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    start = os.fstat(descriptor).st_size
    try:
        _note_start(descriptor, settings.log)
        child = subprocess.Popen(  # noqa: S603  (our own interpreter and module)
            arguments, stdin=subprocess.DEVNULL, stdout=descriptor, stderr=descriptor, start_new_session=True
        )
    finally:
        os.close(descriptor)
    _await_ready(settings, child, start)


def _arguments(settings: Settings) -> list[str]:
    """Options for the process in the background."""
    options = {
        "--ccm-image": settings.ccm_image,
        "--workers": settings.workers if settings.workers > 1 else "",
        "--hosted-binaries": settings.hosted_binaries,
        "--service-pool": settings.service_pool,
        "--charts": settings.charts.folder,
        "--chart-mirror": settings.charts.mirror,
    }
    return [f"{name}={value}" for name, value in options.items() if value]


def _note_start(descriptor: int, log: Path) -> None:
    """Checks that the log is writable, so that a full disk is reported here."""
    try:
        os.write(descriptor, f"starting Homeport {__version__}\n".encode())
    except OSError as error:
        error.filename = str(log)
        raise


def _await_ready(settings: Settings, child: subprocess.Popen[bytes], log_start: int) -> None:
    deadline = time.monotonic() + _START_SECONDS
    while (instance := read_instance(settings.data)) is None:
        # Somebody may have started another in the same moment: then that one is the plane.
        if child.poll() is not None and not claimed(settings.data):
            raise click.ClickException(f"the plane did not start:\n{_tail(settings.log, log_start)}")
        if time.monotonic() > deadline:
            child.terminate()
            raise click.ClickException(f"the plane was not ready after {_START_SECONDS:.0f} s: see {settings.log}")
        time.sleep(0.02)
    click.echo(f"Homeport is ready at {instance.url} (process {instance.pid}, log {settings.log})")
    click.echo(f"kubeconfig: {settings.kubeconfig}")
    click.echo(next_step(settings))
    for line in instance.told:
        click.echo(line)


def _tail(log: Path, start: int) -> str:
    with log.open("rb") as file:
        file.seek(start)
        lines = file.read().decode(errors="replace").splitlines()
    # What a process says while it ends comes after the reason.
    told = next((at for at, line in enumerate(lines) if line.startswith("Error: ")), max(0, len(lines) - _LOG_TAIL))
    return "\n".join(line.removeprefix("Error: ") for line in lines[told : told + _LOG_TAIL])


def next_step(settings: Settings) -> str:
    return f"next: export KUBECONFIG={settings.kubeconfig} && kubectl get namespaces"
