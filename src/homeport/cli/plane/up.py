"""homeport up"""

from __future__ import annotations

import socket
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from homeport.app.plane.earlier import read_earlier
from homeport.app.plane.instance import read_instance
from homeport.app.settings import DEFAULT_LISTEN, Settings, SettingsError
from homeport.cli import option
from homeport.cli.option import data as data_option
from homeport.cli.plane.background import next_step, start_detached
from homeport.cli.plane.dial import options as dial_options
from homeport.cli.plane.dial import read_dial, write_dial
from homeport.cli.plane.foreground import run, run_on_cluster
from homeport.cli.plane.simulation import NOTHING, read_simulation, write_simulation
from homeport.cli.plane.simulation import options as simulation
from homeport.cli.plane.webhook import NAMES as WEBHOOK
from homeport.cli.plane.webhook import options as webhook_options
from homeport.client.dial import DIRECT

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
    "dashboard",
    "sim",
    *_SIM_ONLY,
)
_DIAL = ("proxy", "trust")
_EVERYWHERE = ("ccm_image", "charts", "chart_mirror")
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
@click.option(
    "--dashboard/--no-dashboard",
    default=True,
    envvar="HOMEPORT_DASHBOARD",
    help="Serve the dashboard on loopback, at the port after that of the API; 'homeport dashboard' opens it.",
    show_default=True,
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
@option.without
@option.log_level
@click.pass_context
def command(ctx: click.Context, /, **given: Any) -> None:
    """Start the management plane: a Kubernetes API server on SQLite, and the controllers.

    With --sim, the plane also runs simulated infrastructure, and every hypervisor address in a manifest leads to it.
    With --kubeconfig, or in a Pod, the controllers run on that cluster instead; start several replicas for high
    availability.
    """
    tracing, kubernetes = given.pop("tracing"), given.pop("kubernetes")
    if tracing:
        _trace()
    embedded = {name: given.pop(name) for name in _EMBEDDED_ONLY}
    if _is_on_cluster(ctx, given["kubeconfig"], kubernetes):
        run_on_cluster(**given)
        return
    _refuse(ctx, _CLUSTER_ONLY, "requires --kubeconfig FILE, or --kubernetes in a Pod")
    detach = embedded.pop("detach")
    dial = {name: given[name] for name in _DIAL}
    settings = _settings(ctx, embedded, dial, **{name: given[name] for name in _EVERYWHERE})
    if _runs_already(settings):
        raise SystemExit(0 if detach else 1)
    if detach:
        simulators = settings.simulators
        world = write_simulation(simulators) if simulators is not None else [f"--sim={NOTHING}", *write_dial(**dial)]
        arguments = [*world, *(f"--without={name}" for name in given["without"])]
        start_detached(settings, given["log_level"], given["plugins"], arguments, tracing=tracing)
    else:
        run(settings, given["log_level"], given["plugins"], given["without"])


def _is_on_cluster(ctx: click.Context, kubeconfig: Path | None, kubernetes: bool | None) -> bool:
    """Whether the controllers run on another cluster, and no option speaks against that."""
    if kubeconfig is not None and kubernetes:
        raise click.UsageError("--kubernetes uses the service account of the Pod: remove it, or remove --kubeconfig")
    if kubeconfig is None and not kubernetes and (kubernetes is False or not _in_pod(ctx)):
        return False
    chosen = "--kubeconfig" if kubeconfig is not None else "--kubernetes"
    _refuse(ctx, _EMBEDDED_ONLY, f"applies to the embedded API server only: remove it, or remove {chosen}")
    if kubeconfig is None and kubernetes is None:
        click.echo("in a Pod with a service account: the controllers run on its cluster (see --no-kubernetes)")
    return True


def _settings(ctx: click.Context, embedded: dict[str, Any], dial: dict[str, Any], **given: Any) -> Settings:
    simulated = {name: embedded.pop(name) for name in ("sim", *_SIM_ONLY)}
    data, listen = embedded.pop("data"), embedded.pop("listen")
    listen = _recall(data, listen, simulated)
    if simulated["sim"] is None:
        _refuse(ctx, _SIM_ONLY, "requires --sim")
    else:
        _refuse(ctx, ("hosted_binaries",), "can't be combined with --sim: simulated machines can't join real programs")
        _refuse(ctx, _DIAL, "can't be combined with --sim: the simulators are reached through their own proxy")
    settings = _read_settings(data, listen, simulated, dial, **embedded, **given)
    _resolve(listen, settings)
    return settings


def _read_settings(data: Path, listen: str, simulated: dict[str, Any], dial: dict[str, Any], **given: Any) -> Settings:
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
    click.echo(next_step(settings))
    return True


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
