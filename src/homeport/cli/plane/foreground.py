"""What `homeport up` runs in its own process: the plane, or the controllers on another cluster."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from homeport.app.hint import on_data, up_command
from homeport.app.settings import Settings, SettingsError
from homeport.cli.plane.background import next_step
from homeport.cli.plane.dial import read_dial
from homeport.cli.plane.webhook import NAMES as WEBHOOK
from homeport.cli.plane.webhook import read_webhook

if TYPE_CHECKING:
    from homeport.runtime.telemetry.stream import LogStreams


def run(settings: Settings, log_level: str, plugins: Sequence[str], without: Sequence[str]) -> None:
    _import_quickly()
    from homeport.apiserver.auth.pki import PkiError
    from homeport.app.plane import standalone
    from homeport.app.plane.instance import AlreadyRunning
    from homeport.app.plane.server import StartError
    from homeport.app.platform import PluginError, chosen
    from homeport.dashboard.wire.server import Dashboard
    from homeport.store import StoreError

    def told(url: str) -> list[str]:
        return [f"Homeport is ready at {url}", f"kubeconfig: {settings.kubeconfig}", next_step(settings)]

    show, streams = _show(
        told,
        log_level,
        kubeconfig=str(settings.kubeconfig),
        log=settings.log,
        resume=up_command(settings),
        command=lambda verb: on_data(verb, settings.data),
    )
    try:
        choice = standalone.Choice(tuple(plugins), tuple(without), log_level)
        web = Dashboard() if settings.dashboard else None
        _loop(standalone.run(settings, show, chosen(plugins, without), streams, choice, web))
    except PluginError as error:
        raise click.UsageError(str(error)) from error
    except (AlreadyRunning, StartError, StoreError, PkiError) as error:
        raise click.ClickException(str(error)) from error
    except OSError as error:
        error.filename = error.filename or str(settings.data)  # a write that finds no space does not say where
        raise


def run_on_cluster(*, log_level: str, plugins: Sequence[str], without: Sequence[str], **more: Any) -> None:
    _import_quickly()
    from homeport.app.kubernetes import layout, manager
    from homeport.app.platform import PluginError, chosen
    from homeport.app.settings import parse_listen, read_charts
    from homeport.client.config import ConfigError

    def told(url: str) -> list[str]:
        return [f"Homeport runs its controllers on the cluster at {url}"]

    try:
        health = parse_listen(more["health"], option="--health") if more["health"] else None
        dial = read_dial(more.pop("proxy"), more.pop("trust"))
        charts = read_charts(more.pop("charts"), more.pop("chart_mirror"))
        webhook = read_webhook(*(more.pop(name) for name in WEBHOOK))
        platform = chosen(plugins, without)
        if deployment := more.pop("deployment"):
            platform = replace(platform, placement=layout.find_placement(platform.components, deployment))
            namespace, more["lease"] = platform.placement.lease
            more["namespace"] = more["namespace"] or namespace
        cluster = manager.Cluster(**{**more, "health": health, "dial": dial, "charts": charts, "webhook": webhook})
        _loop(manager.run(cluster, _show(told, log_level)[0], platform))
    except (PluginError, SettingsError, layout.LayoutError) as error:
        raise click.UsageError(str(error)) from error
    except (ConfigError, manager.StartError) as error:
        raise click.ClickException(str(error)) from error


def _import_quickly() -> None:
    """Before anything that would import it in full, for a third of the time that a start takes."""
    from homeport.client.wire.quick import import_aiohttp

    import_aiohttp()


def _show(told: Callable[[str], Sequence[str]], log_level: str, **view: Any) -> tuple[Any, LogStreams]:
    """A view that is redrawn where somebody can see it, lines otherwise; and the lines of the controllers."""
    from homeport.app import log

    if sys.stdout.isatty() and os.environ.get("TERM", "dumb") != "dumb":
        from homeport.cli.plane.live import Live

        streams = log.configure(level=log_level, json=False, colour=False)  # most of it goes to a file
        return Live(told, **view), streams
    from homeport.cli.plane.line import Lines

    streams = log.configure(level=log_level)
    return Lines(told), streams


def _loop(main: Coroutine[Any, Any, None]) -> None:
    import uvloop

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(main)
