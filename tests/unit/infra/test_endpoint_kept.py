"""An endpoint that was changed after the Cluster took it, on a server without the webhooks of Homeport."""

from __future__ import annotations

import pytest

from homeport.api.cluster.v1beta2 import APIEndpoint, Cluster
from homeport.api.kubevirt.v1alpha1 import KubevirtCluster
from homeport.api.nutanix.v1beta1 import NutanixCluster
from homeport.infra.preflight.host import ENDPOINT, Scope, check_kept
from homeport.infra.protocol import Check, ClusterScope


def scope(kind: type, offered: str, used: str, port: int = 6443) -> Scope:
    cluster, infra = Cluster(), kind()
    cluster.metadata.name = "quay"
    cluster.spec.control_plane_endpoint = APIEndpoint(host=used, port=6443 if used else 0)
    infra.spec.control_plane_endpoint.host, infra.spec.control_plane_endpoint.port = offered, port
    return ClusterScope(cluster, infra, None, provisioned=True)


@pytest.mark.parametrize("kind", [KubevirtCluster, NutanixCluster])
def test_an_endpoint_that_the_cluster_does_not_use_is_reported_and_stops_nothing(kind: type) -> None:
    (check,) = check_kept(scope(kind, "10.40.0.222", "10.40.0.200"))
    assert (check.condition, check.ok, check.advisory, check.reason) == (ENDPOINT, False, True, "EndpointChanged")
    assert check.message == (
        "spec.controlPlaneEndpoint: 10.40.0.222:6443 has no effect: Cluster quay uses 10.40.0.200:6443: set it back"
    )
    (port,) = check_kept(scope(kind, "10.40.0.200", "10.40.0.200", port=7443))
    assert "10.40.0.200:7443 has no effect" in port.message


@pytest.mark.parametrize(
    ("offered", "used"),
    [
        ("10.40.0.200", "10.40.0.200"),
        ("2001:DB8::1", "2001:db8::1"),
        ("10.40.0.200", "quay.example.com"),  # a name may lead to the address
        ("10.40.0.200", ""),
        ("", "10.40.0.200"),
    ],
)
def test_one_that_it_uses_is_not(offered: str, used: str) -> None:
    assert check_kept(scope(KubevirtCluster, offered, used)) == [Check(ENDPOINT, True)]
