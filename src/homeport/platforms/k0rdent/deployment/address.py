"""Addresses of hosted API servers: the embedded server hands out those that ClusterDeployments name."""

from __future__ import annotations

from collections.abc import Iterable
from ipaddress import ip_address

from homeport.api.k0rdent.v1beta1 import ClusterDeployment
from homeport.machinery.address import AddressSet
from homeport.platforms.k0rdent.catalogue import VENDORS
from homeport.runtime.workload.ranges import ServiceRanges


class Addresses:
    def __init__(self, ranges: ServiceRanges) -> None:
        self._ranges = ranges

    def hold(self, deployments: Iterable[ClusterDeployment]) -> None:
        named = {host for each in deployments if (host := endpoint_host(each))}
        for version in (4, 6):
            own = sorted(host for host in named if _version(host) == version)
            self._ranges.set(f"k0rdent-{version}", AddressSet.parse(own))


def endpoint_host(deployment: ClusterDeployment) -> str:
    """As the values name it; '' if they do not."""
    sections = deployment.spec.config or {}
    for vendor in VENDORS:
        found: object = sections.get(vendor.name)
        for step in ("controlPlaneEndpoint", "host"):
            found = found.get(step) if isinstance(found, dict) else None
        if isinstance(found, str) and found:
            return found
    return ""


def _version(host: str) -> int:
    try:
        return ip_address(host).version
    except ValueError:
        return 0
