"""The cloud controller manager, run in a workload cluster."""

from __future__ import annotations

from pathlib import Path

from homeport.app.ccm import Open, parse_cloud
from homeport.app.environment import Environment
from homeport.app.manager import Cluster, connection
from homeport.app.plugins import Platform
from homeport.ccm.install import install
from homeport.infra.error import Misconfigured
from homeport.runtime.manager import Manager


def platform(cluster: Cluster, cloud: str, config: Path) -> Platform:
    """For `app.manager.run`. Raises Misconfigured (naming file and field), ConfigError and OSError."""
    text = config.read_text()
    _parse(cloud, text, config, "default")  # what is wrong with the file is told before what is wrong with the cluster
    opened = _parse(cloud, text, config, cluster.namespace or connection(cluster).namespace)

    def add(manager: Manager, environment: Environment) -> None:
        found = opened(manager.client, manager.clock, environment.reach)
        install(manager, found.cloud, found.pools)

    return Platform((add,))


def _parse(cloud: str, text: str, config: Path, namespace: str) -> Open:
    try:
        return parse_cloud(cloud, text, namespace)
    except Misconfigured as error:
        raise Misconfigured(f"{config}: {error.message}") from error
