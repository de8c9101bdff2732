"""homeport ccm"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import click

from homeport.app.settings import SettingsError, parse_listen
from homeport.cli import option


@click.command()
@click.option(
    "--config",
    metavar="FILE",
    required=True,
    type=click.Path(path_type=Path, dir_okay=False),
    help="Read the cloud configuration from FILE (for nutanix: the nutanix_config.json of Nutanix' own manager).",
)
@click.option(
    "--cloud",
    metavar="NAME",
    default="nutanix",
    show_default=True,
    help="Manage Nodes on this infrastructure: nutanix or harvester.",
)
@click.option(
    "--kubeconfig",
    metavar="FILE",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Connect to the workload cluster with this kubeconfig (default: the Pod's service account).",
)
@option.context
@click.option(
    "--namespace",
    metavar="NAME",
    default="",
    envvar="POD_NAMESPACE",
    help="Keep the Lease in this namespace, and read the Secret there if the configuration names no namespace "
    "(default: that of the context or the Pod).",
)
@click.option(
    "--leader-elect/--no-leader-elect",
    default=True,
    show_default=True,
    help="Elect one of several replicas with a Lease; the others stand by.",
)
@option.health
@option.log_level
def command(leader_elect: bool, health: str, log_level: str, config: Path, cloud: str, **where: Any) -> None:
    """Run the cloud controller manager of a workload cluster.

    It sets the provider ID, addresses, zone and region of Nodes, deletes Nodes whose machine no longer exists, taints
    Nodes whose machine is powered off, and assigns addresses from pools to Services of type LoadBalancer. Homeport
    installs it automatically in the clusters that it creates.
    """
    try:
        listen = parse_listen(health, option="--health") if health else None
    except SettingsError as error:
        raise click.UsageError(str(error)) from error
    from homeport.client.wire.quick import import_aiohttp

    import_aiohttp()
    from homeport.app import log
    from homeport.app.ccm import TIMING
    from homeport.app.kubernetes import cloudcontroller, manager
    from homeport.ccm.manifest import LEASE_NAME
    from homeport.cli.plane.line import Lines
    from homeport.client.config import ConfigError
    from homeport.infra.error import Misconfigured

    log.configure(level=log_level)
    lease = LEASE_NAME if leader_elect else ""
    cluster = manager.Cluster(lease=lease, health=listen, timing=TIMING, **where)
    show = Lines(lambda url: [f"The cloud controller manager for {cloud} manages the cluster at {url}"])
    import uvloop

    try:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(manager.run(cluster, show, cloudcontroller.platform(cluster, cloud, config)))
    except ConfigError as error:
        hint = "" if where["kubeconfig"] else "; outside of a Pod, name the cluster with --kubeconfig FILE"
        raise click.ClickException(f"{error}{hint}") from error
    except (Misconfigured, manager.StartError, OSError) as error:
        raise click.ClickException(str(error)) from error
