"""Clouds by their names, brought into workload clusters, and simulated in simulated ones."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from ipaddress import ip_address
from typing import TYPE_CHECKING, Any

from homeport.api.cluster.v1beta2 import Cluster
from homeport.api.nutanix.v1beta1 import NutanixCluster
from homeport.capi.capi import Capi
from homeport.ccm import deploy, manifest
from homeport.ccm.install import install
from homeport.ccm.service import Pool, PoolError, parse_pool
from homeport.client.protocol import Client
from homeport.client.reach import DIRECT, Reach
from homeport.infra.error import Misconfigured
from homeport.infra.protocol import Cloud
from homeport.providers.nutanix import cloudconfig
from homeport.providers.nutanix.cloud import NutanixCloud
from homeport.providers.nutanix.connection import Connector
from homeport.runtime.clock import Clock
from homeport.runtime.lease import LeaseTiming
from homeport.runtime.manager import Elected, Manager

if TYPE_CHECKING:  # planes that simulate nothing don't load simulators
    from homeport.sim.machine.workload.container import Program, Programs, Run

# Nodes wait for us only when they are new: a slower change of hands than usual spares the API most of the renewals.
TIMING = LeaseTiming(duration=45.0, renew_deadline=30.0, retry_period=10.0)
_IMAGE = "/homeport:"


@dataclass(frozen=True, slots=True)
class Opened:
    cloud: Cloud
    pools: tuple[Pool, ...] = ()


Open = Callable[[Client, Clock, Reach], Opened]


def _parse_nutanix(text: str, namespace: str) -> Open:
    config = cloudconfig.parse_config(text, namespace)
    pools = _pools(config.pools)

    def opened(client: Client, clock: Clock, reach: Reach) -> Opened:
        return Opened(NutanixCloud(config, Connector(client, clock, reach), clock), pools)

    return opened


# By the name that --cloud gives.
CLOUDS: Mapping[str, Callable[[str, str], Open]] = {"nutanix": _parse_nutanix}


def parse_cloud(name: str, text: str, namespace: str) -> Open:
    """`text` is the configuration file. Raises Misconfigured, naming the field."""
    if name not in CLOUDS:
        raise Misconfigured(f"there is no cloud {name!r}; there are: {', '.join(CLOUDS)}")
    return CLOUDS[name](text, namespace)


def _pools(found: Mapping[str, str]) -> tuple[Pool, ...]:
    try:
        return tuple(parse_pool(text, name) for name, text in found.items())
    except PoolError as error:
        raise Misconfigured(f"addressPools: {error}") from None


# -- into workload clusters ----------------------------------------------------------------------------------------


def deploy_to_clusters(manager: Manager, capi: Capi) -> None:
    """Clusters on Nutanix whose Nodes wait for a cloud controller manager get one."""
    connector = Connector(manager.client, manager.clock, DIRECT)  # it reads for us what connections are made of

    async def settings(infra: NutanixCluster, cluster: Cluster) -> manifest.Settings:
        target, credentials, bundle = await connector.material(infra)
        ranges = cluster.metadata.annotations.get(deploy.POOL, "")
        pools = {"default": ranges} if ranges else {}
        _pools(pools)
        host = cluster.spec.control_plane_endpoint.host or infra.spec.control_plane_endpoint.host
        config = cloudconfig.render_config(
            target,
            bundle,
            secret=manifest.SECRET_NAME,
            namespace=manifest.NAMESPACE,
            ignored=[host] if _is_address(host) else [],
            pools=pools,
        )
        secret = {"credentials": cloudconfig.render_credentials(credentials)}
        return manifest.Settings("nutanix", cloudconfig.FILE, config, secret, pools=bool(pools))

    source = deploy.Source(NutanixCluster, settings, connector.sources)
    deploy.install(manager, capi, {NutanixCluster.__resource__.kind: source})


def _is_address(text: str) -> bool:
    try:
        ip_address(text)
    except ValueError:
        return False
    return True


# -- in simulated ones -----------------------------------------------------------------------------------------------


def programs(reach: Callable[[str], Reach]) -> Programs:
    """What containers of simulated workload clusters do. `reach` says how hypervisors are dialled from a machine."""

    def find(container: Mapping[str, Any]) -> Run | None:
        if _IMAGE in str(container.get("image", "")) and (container.get("args") or [""])[0] == "ccm":
            return lambda program: _run(program, reach(program.host))
        return None

    return find


async def _run(program: Program, reach: Reach) -> None:
    """As `homeport ccm` does it. Raises what it ends of."""
    args, namespace = program.args, str(program.pod["metadata"]["namespace"])
    text = program.files[_option(args, "--config")].decode()
    opened = parse_cloud(_option(args, "--cloud"), text, namespace)(program.client, program.clock, reach)
    mode = Elected(namespace, manifest.LEASE_NAME, TIMING)
    who = str(program.pod["metadata"]["name"])
    manager = Manager(program.client, mode=mode, name="homeport-ccm", clock=program.clock, who=who)
    install(manager, opened.cloud, opened.pools)
    await manager.run()


def _option(args: Sequence[str], name: str) -> str:
    if name not in args[:-1]:
        raise Misconfigured(f"{name}: is required")
    return args[args.index(name) + 1]
