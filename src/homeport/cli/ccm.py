"""homeport ccm"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import click

from homeport.app.settings import SettingsError, parse_listen


@click.command()
@click.option(
    "--config",
    metavar="FILE",
    required=True,
    type=click.Path(path_type=Path, dir_okay=False),
    help="of the cloud; for nutanix: nutanix_config.json, as Nutanix' own manager has it",
)
@click.option("--cloud", metavar="NAME", default="nutanix", show_default=True, help="where the Nodes run")
@click.option(
    "--kubeconfig",
    metavar="FILE",
    type=click.Path(path_type=Path, dir_okay=False),
    help="of the workload cluster; default: the service account of the Pod that this runs in",
)
@click.option("--context", metavar="NAME", default="", help="of the kubeconfig; default: its current context")
@click.option(
    "--namespace",
    metavar="NAME",
    default="",
    envvar="POD_NAMESPACE",
    help="where the Lease is, and the Secret if the configuration does not say; default: the context's or the Pod's",
)
@click.option(
    "--leader-elect/--no-leader-elect",
    default=True,
    show_default=True,
    help="one of several replicas works, by Lease, and the others wait",
)
@click.option("--health", metavar="HOST:PORT", default="", help="serve /healthz, /readyz and /metrics there")
@click.option(
    "--log-level", type=click.Choice(["debug", "info", "warning", "error"]), default="info", show_default=True
)
def command(leader_elect: bool, health: str, log_level: str, config: Path, cloud: str, **where: Any) -> None:
    """Run the cloud controller manager of a workload cluster.

    It gives Nodes their provider id, addresses, zone and region, removes those of machines that are gone, taints those
    of machines that are off, and gives Services of type LoadBalancer addresses from pools. Clusters that Homeport makes
    get one by themselves.
    """
    try:
        listen = parse_listen(health, option="--health") if health else None
    except SettingsError as error:
        raise click.UsageError(str(error)) from error
    from homeport.app.log import import_structlog
    from homeport.client.quick import import_aiohttp

    import_structlog()
    import_aiohttp()
    from homeport.app import cloudcontroller, log, manager
    from homeport.app.ccm import TIMING
    from homeport.ccm.manifest import LEASE_NAME
    from homeport.cli.line import Lines
    from homeport.client.config import ConfigError
    from homeport.infra.error import Misconfigured

    log.configure(level=log_level)
    lease = LEASE_NAME if leader_elect else ""
    cluster = manager.Cluster(lease=lease, health=listen, timing=TIMING, **where)
    show = Lines(lambda url: [f"the cloud controller manager for {cloud} runs on {url}"])
    import uvloop

    try:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(manager.run(cluster, show, cloudcontroller.platform(cluster, cloud, config)))
    except ConfigError as error:
        hint = "" if where["kubeconfig"] else "; to run it elsewhere, name the cluster with --kubeconfig FILE"
        raise click.ClickException(f"{error}{hint}") from error
    except (Misconfigured, manager.StartError, OSError) as error:
        raise click.ClickException(str(error)) from error
