"""Which family of addresses comes first."""

from __future__ import annotations

import pytest

from homeport.api.cluster.v1beta2 import Cluster
from homeport.capi.family import canonical, family_of, in_order, primary_family, reachable


@pytest.mark.parametrize(
    ("services", "pods", "host", "family"),
    [
        (["10.96.0.0/12"], ["192.168.0.0/16"], "fd00::1", 4),
        (["fd00:1::/112", "10.96.0.0/12"], ["10.0.0.0/16"], "10.0.0.1", 6),
        ([], ["fd00:2::/56"], "10.0.0.1", 6),
        ([], [], "fd00::1", 6),
        ([], [], "api.example.com", 0),
        ([], [], "", 0),
    ],
)
def test_services_decide_then_pods_then_the_control_plane(
    services: list[str], pods: list[str], host: str, family: int
) -> None:
    cluster = Cluster()
    cluster.spec.cluster_network.services.cidr_blocks = services
    cluster.spec.cluster_network.pods.cidr_blocks = pods
    cluster.spec.control_plane_endpoint.host = host
    assert primary_family(cluster) == family


@pytest.mark.parametrize(
    ("first", "order"),
    [
        (4, ["10.0.0.1", "10.0.0.2", "fd00::1"]),
        (6, ["fd00::1", "10.0.0.1", "10.0.0.2"]),
        (0, ["10.0.0.1", "fd00::1", "10.0.0.2"]),
    ],
)
def test_addresses_come_in_the_order_of_families_and_once(first: int, order: list[str]) -> None:
    assert in_order(["10.0.0.1", "fd00::1", "10.0.0.2", "fd00:0::1"], first) == order


def test_spellings_and_links() -> None:
    assert canonical("FD00:0:0::0001") == "fd00::1"
    assert canonical("api.example.com") == "api.example.com"
    assert family_of("fd00::/64") == 6
    assert list(reachable(["fe80::1", "fd00::1", "169.254.0.9", "10.0.0.1", "name"])) == ["fd00::1", "10.0.0.1", "name"]
