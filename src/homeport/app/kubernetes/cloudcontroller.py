"""The cloud controller manager, run in a workload cluster."""

from __future__ import annotations

from pathlib import Path

from homeport.app.ccm import parse_cloud
from homeport.app.kubernetes.manager import Cluster, connection
from homeport.app.platform import Platform
from homeport.capi.cloud import CloudFile
from homeport.capi.component import Component, Setup
from homeport.ccm.install import install
from homeport.ccm.service import parse_pools
from homeport.infra.error import Misconfigured


def platform(cluster: Cluster, cloud: str, config: Path) -> Platform:
    """For `app.kubernetes.manager.run`. Raises Misconfigured (naming file and field), ConfigError and OSError."""
    text = config.read_text()
    _parse(cloud, text, config, "default")  # a mistake in the file is reported before one in the cluster's address
    file = _parse(cloud, text, config, cluster.namespace or connection(cluster).namespace)

    def add(setup: Setup) -> None:
        opened = file.open(setup.manager.client, setup.manager.clock, setup.environment.dial)
        install(setup.manager, opened, parse_pools(file.pools))

    return Platform((Component(name="cloud-controller-manager", install=add),))


def _parse(cloud: str, text: str, config: Path, namespace: str) -> CloudFile:
    try:
        return parse_cloud(cloud, text, namespace)
    except Misconfigured as error:
        raise Misconfigured(f"{config}: {error.message}") from error
