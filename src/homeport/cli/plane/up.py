"""homeport up"""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from homeport import __version__
from homeport.app.earlier import read_earlier
from homeport.app.hint import up_command
from homeport.app.instance import claimed, read_instance
from homeport.app.settings import DEFAULT_LISTEN, Settings, SettingsError
from homeport.cli import option
from homeport.cli.option import data as data_option
from homeport.cli.plane.dial import options as dial_options
from homeport.cli.plane.dial import read_dial, write_dial
from homeport.cli.plane.simulation import NOTHING, read_simulation, write_simulation
from homeport.cli.plane.simulation import options as simulation
from homeport.cli.plane.webhook import NAMES as WEBHOOK
from homeport.cli.plane.webhook import options as webhook_options
from homeport.cli.plane.webhook import read_webhook
from homeport.client.dial import DIRECT

if TYPE_CHECKING:
    from homeport.runtime.telemetry.stream import LogStreams

_START_SECONDS = 60.0
_LOG_TAIL = 15
_SIM_ONLY = ("speed", "sim_world", "sim_faults", "sim_listen", "sim_reset")
_EMBEDDED_ONLY = (
    "data",
    "listen",
    "detach",
    "audit",
    "workloads",
    "service_pool",
    "hosted_binaries",
    "workers",
    "sim",
    *_SIM_ONLY,
)
_DIAL = ("proxy", "trust")
_CLUSTER_ONLY = ("context", "namespace", "health", "shards", "deployment", *WEBHOOK)


@click.command()
@data_option
@click.option(
    "--listen",
    metavar="HOST:PORT",
    default="",
    envvar="HOMEPORT_LISTEN",
    help=f"Serve the API at this address (default: that of the last start on DIR, at first {DEFAULT_LISTEN}).",
)
@click.option("--detach", is_flag=True, help="Run in the background; the command returns when the plane is ready.")
@click.option("--audit", is_flag=True, help="Write an audit log of all requests to DIR/audit.log.")
@click.option(
    "--workloads/--no-workloads",
    default=True,
    help="Reconcile Deployments, StatefulSets, Jobs and Pods. Pods run only if the plane knows their image.",
    show_default=True,
)
@click.option(
    "--hosted-binaries",
    metavar="DIR",
    type=click.Path(path_type=Path, file_okay=False, exists=True),
    envvar="HOMEPORT_HOSTED_BINARIES",
    help="Run hosted control planes with kube-apiserver, kube-controller-manager, kube-scheduler and etcd of this "
    "directory, as processes of this machine.",
)
@click.option(
    "--service-pool",
    metavar="RANGES",
    default="",
    envvar="HOMEPORT_SERVICE_POOL",
    help="Give Services of type LoadBalancer addresses of these ranges, for example 10.0.0.10-10.0.0.50 (default: the "
    "address of --listen with a port for each; with --sim, addresses of the simulated network).",
)
@click.option(
    "--workers",
    metavar="N",
    type=int,
    default=1,
    show_default=True,
    envvar="HOMEPORT_WORKERS",
    help="Run the controllers in N processes that share the clusters. 1 runs them in the plane itself. For more than "
    "about 100 clusters on a machine with several cores.",
)
@simulation
@dial_options
@click.option(
    "--kubeconfig",
    metavar="FILE",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Run the controllers on this cluster (default: see --kubernetes).",
)
@click.option(
    "--kubernetes/--no-kubernetes",
    default=None,
    help="Run the controllers on the cluster of the Pod, as its service account, or never do so (default: --kubernetes "
    "in a Pod with a service account, unless an option of the embedded API server is given).",
)
@option.context
@click.option(
    "--namespace",
    metavar="NAME",
    default="",
    help="Keep the Lease of the replicas in this namespace (default: that of the context or of the Pod).",
)
@click.option(
    "--deployment",
    metavar="NAMESPACE/NAME",
    default="",
    help="Run only the controllers of this Deployment of `homeport install --layout split` (default: all).",
)
@click.option(
    "--shards", is_flag=True, help="Share the work between replicas (default: one leads, the others stand by)."
)
@option.health
@webhook_options
@click.option(
    "--tracing", is_flag=True, help="Send traces with OTLP (requires homeport[tracing]).", envvar="HOMEPORT_TRACING"
)
@click.option(
    "--plugin",
    "plugins",
    metavar="MODULE:NAME",
    multiple=True,
    help="Add a Component, or a function that adds controllers.",
)
@click.option(
    "--ccm-image",
    metavar="IMAGE",
    default="",
    envvar="HOMEPORT_CCM_IMAGE",
    help="Use this image for the cloud controller manager in workload clusters (default: the one of this release).",
)
@click.option(
    "--charts",
    metavar="DIR",
    type=click.Path(path_type=Path),
    envvar="HOMEPORT_CHARTS",
    help="Take the charts of add-ons from this folder and fetch none (default: each from its own address; with --sim, "
    "built-in stand-ins).",
)
@click.option(
    "--chart-mirror",
    metavar="URL",
    default="",
    envvar="HOMEPORT_CHART_MIRROR",
    help="Fetch the charts of add-ons from this registry (oci://) or repository (https://) (default: each from its own "
    "address).",
)
@click.option(
    "--without", metavar="COMPONENT", multiple=True, help="Leave out a component, for example nutanix or ccm."
)
@option.log_level
@click.pass_context
def command(
    ctx: click.Context,
    /,
    data: Path,
    listen: str,
    detach: bool,
    audit: bool,
    workloads: bool,
    service_pool: str,
    hosted_binaries: Path | None,
    workers: int,
    **more: Any,
) -> None:
    """Start the management plane: a Kubernetes API server on SQLite, and the controllers.

    With --sim, the plane also runs simulated infrastructure, and every hypervisor address in a manifest leads to it.
    With --kubeconfig, or in a Pod, the controllers run on that cluster instead; start several replicas for high
    availability.
    """
    tracing = more.pop("tracing")
    simulated = {name: more.pop(name) for name in ("sim", *_SIM_ONLY)}
    if tracing:
        _trace()
    dial = {name: more.pop(name) for name in _DIAL}
    kubernetes: bool | None = more.pop("kubernetes")
    if more["kubeconfig"] is not None and kubernetes:
        raise click.UsageError("--kubernetes uses the service account of the Pod: remove it, or remove --kubeconfig")
    if more["kubeconfig"] is not None or kubernetes or (kubernetes is None and _in_pod(ctx)):
        chosen = "--kubeconfig" if more["kubeconfig"] is not None else "--kubernetes"
        _refuse(ctx, _EMBEDDED_ONLY, f"applies to the embedded API server only: remove it, or remove {chosen}")
        if more["kubeconfig"] is None and kubernetes is None:
            click.echo("in a Pod with a service account: the controllers run on its cluster (see --no-kubernetes)")
        _run_on_cluster(**more, **dial)
        return
    _refuse(ctx, _CLUSTER_ONLY, "requires --kubeconfig FILE, or --kubernetes in a Pod")
    del more["deployment"]
    listen = _recall(data, listen, simulated)
    if simulated["sim"] is None:
        _refuse(ctx, _SIM_ONLY, "requires --sim")
    else:
        _refuse(ctx, ("hosted_binaries",), "can't be combined with --sim: simulated machines can't join real programs")
        _refuse(ctx, _DIAL, "can't be combined with --sim: the simulators are reached through their own proxy")
    settings = _settings(
        data,
        listen,
        simulated,
        dial,
        audit=audit,
        workloads=workloads,
        ccm_image=more["ccm_image"],
        service_pool=service_pool,
        charts=more["charts"],
        chart_mirror=more["chart_mirror"],
        hosted_binaries=hosted_binaries,
        workers=workers,
    )
    _resolve(listen, settings)
    if _runs_already(settings):
        raise SystemExit(0 if detach else 1)
    if detach:
        simulators = settings.simulators
        world = write_simulation(simulators) if simulators is not None else [f"--sim={NOTHING}", *write_dial(**dial)]
        arguments = [*world, *(f"--without={name}" for name in more["without"]), *_arguments(settings)]
        _detach(settings, more["log_level"], more["plugins"], arguments, tracing=tracing)
    else:
        _run(settings, more["log_level"], more["plugins"], more["without"])


def _settings(data: Path, listen: str, simulated: dict[str, Any], dial: dict[str, Any], **given: Any) -> Settings:
    try:
        simulators = read_simulation(**simulated)
        dialled = read_dial(**dial) if simulators is None else DIRECT
        return Settings.make(data, listen, simulators=simulators, dial=dialled, **given)
    except SettingsError as error:
        raise click.UsageError(str(error)) from error


def _recall(data: Path, listen: str, simulated: dict[str, Any]) -> str:
    """Continues as the last start on this directory did, unless an option is given. The address to listen at."""
    earlier = read_earlier(data.expanduser().absolute())
    if simulated["sim"] == NOTHING:
        simulated["sim"] = None
    elif simulated["sim"] is None and earlier.simulators:
        simulated["sim"] = ",".join(earlier.simulators)
        click.echo(f"simulating {', '.join(earlier.simulators)} as at the last start (--sim {NOTHING} turns it off)")
    if not listen and earlier.listen not in ("", DEFAULT_LISTEN):
        click.echo(f"listening at {earlier.listen} as at the last start (--listen HOST:PORT changes it)")
    return listen or earlier.listen or DEFAULT_LISTEN


def _in_pod(ctx: click.Context) -> bool:
    """Whether we run in a Pod, and nobody asks for an embedded API server there."""
    from homeport.client.kubeconfig import is_in_cluster

    asked = (ctx.get_parameter_source(name) for name in _EMBEDDED_ONLY)
    return is_in_cluster() and not any(
        each in (ParameterSource.COMMANDLINE, ParameterSource.ENVIRONMENT) for each in asked
    )


def _runs_already(settings: Settings) -> bool:
    running = read_instance(settings.data)
    if running is None:
        return False
    click.echo(f"Homeport is already running on {settings.data} (process {running.pid}, {running.url})")
    click.echo(_next_step(settings))
    return True


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


def _resolve(listen: str, settings: Settings) -> None:
    """Before anything is written: a name that no resolver knows is a mistake in the option."""
    try:
        socket.getaddrinfo(settings.host, settings.port)
    except OSError as error:
        text = f"{settings.host!r} is neither an address nor a known name ({error.strerror}): expected for example"
        raise click.UsageError(f"--listen {listen!r}: {text} 127.0.0.1:6443") from error


def _refuse(ctx: click.Context, names: Sequence[str], why: str) -> None:
    for name in names:
        if ctx.get_parameter_source(name) is ParameterSource.COMMANDLINE:
            raise click.UsageError(f"--{name.replace('_', '-')} {why}")


def _trace() -> None:
    from homeport.runtime.telemetry import trace

    try:
        trace.enable()
    except trace.TracingUnavailable as error:
        raise click.ClickException(str(error)) from error


def _next_step(settings: Settings) -> str:
    return f"next: export KUBECONFIG={settings.kubeconfig} && kubectl get namespaces"


def _run(settings: Settings, log_level: str, plugins: Sequence[str], without: Sequence[str]) -> None:
    _import_quickly()
    from homeport.apiserver.auth.pki import PkiError
    from homeport.app import standalone
    from homeport.app.instance import AlreadyRunning
    from homeport.app.platform import PluginError, chosen
    from homeport.store import StoreError

    def told(url: str) -> list[str]:
        return [f"Homeport is ready at {url}", f"kubeconfig: {settings.kubeconfig}", _next_step(settings)]

    show, streams = _show(
        told,
        log_level,
        kubeconfig=str(settings.kubeconfig),
        log=settings.log,
        resume=up_command(settings),
    )
    try:
        choice = standalone.Choice(tuple(plugins), tuple(without), log_level)
        _loop(standalone.run(settings, show, chosen(plugins, without), streams, choice))
    except PluginError as error:
        raise click.UsageError(str(error)) from error
    except (AlreadyRunning, standalone.StartError, StoreError, PkiError) as error:
        raise click.ClickException(str(error)) from error
    except OSError as error:
        error.filename = error.filename or str(settings.data)  # a write that finds no space does not say where
        raise


def _run_on_cluster(*, log_level: str, plugins: Sequence[str], without: Sequence[str], **more: Any) -> None:
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
    """Before anything that would import these in full, for half of the time that a start takes."""
    from homeport.app.log import import_structlog
    from homeport.client.quick import import_aiohttp

    import_structlog()
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


def _detach(
    settings: Settings, log_level: str, plugins: Sequence[str], infrastructure: Sequence[str], *, tracing: bool
) -> None:
    """Starts the same command as a process of its own and waits until it says that it is ready."""
    from homeport.apiserver.auth.file import make_private_dir

    make_private_dir(settings.data)
    listen = f"[{settings.host}]:{settings.port}" if ":" in settings.host else f"{settings.host}:{settings.port}"
    arguments = [sys.executable, "-m", "homeport", "up", "--data", str(settings.data), "--listen", listen]
    arguments += ["--log-level", log_level] + (["--audit"] if settings.audit else [])
    arguments += [] if settings.workloads else ["--no-workloads"]
    arguments += ["--tracing"] if tracing else []
    arguments += infrastructure
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
    click.echo(_next_step(settings))
    for line in instance.told:
        click.echo(line)


def _tail(log: Path, start: int) -> str:
    with log.open("rb") as file:
        file.seek(start)
        lines = file.read().decode(errors="replace").splitlines()
    # What a process says while it ends comes after the reason.
    told = next((at for at, line in enumerate(lines) if line.startswith("Error: ")), max(0, len(lines) - _LOG_TAIL))
    return "\n".join(line.removeprefix("Error: ") for line in lines[told : told + _LOG_TAIL])
