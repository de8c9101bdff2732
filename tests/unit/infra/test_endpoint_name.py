"""A host name as the endpoint of the control plane that does not resolve is reported before machines are created."""

from __future__ import annotations

import pytest

from homeport.api.cluster.v1beta2 import Cluster
from homeport.api.kubevirt.v1alpha1 import KubevirtCluster
from homeport.api.nutanix.v1beta1 import NutanixCluster
from homeport.client.dial import DIRECT, DialOptions
from homeport.infra.preflight.host import ENDPOINT, Scope
from homeport.infra.preflight.name import check_name, look_up, lookup_of
from homeport.infra.protocol import ClusterScope
from homeport.providers.nutanix.preflight import Preflight


async def unknown(host: str) -> str:
    return "no DNS server knows it"


async def known(host: str) -> str:
    return ""


def scope(kind: type, host: str, *, provisioned: bool = False, initialized: bool = False) -> Scope:
    cluster, infra = Cluster(), kind()
    cluster.metadata.name = "quay"
    cluster.status.initialization.control_plane_initialized = initialized
    infra.spec.control_plane_endpoint.host = host
    return ClusterScope(cluster, infra, None, provisioned=provisioned)


@pytest.mark.parametrize("kind", [KubevirtCluster, NutanixCluster])
async def test_a_name_that_does_not_resolve_is_reported_and_stops_nothing(kind: type) -> None:
    (check,) = await check_name(scope(kind, "quay.example.com"), unknown)
    assert (check.condition, check.ok, check.advisory, check.reason) == (ENDPOINT, False, True, "EndpointNotResolved")
    assert check.message == (
        "spec.controlPlaneEndpoint.host: 'quay.example.com' does not resolve: no DNS server knows it. "
        "Add a DNS record that leads to the control plane, or give an address"
    )


async def test_addresses_names_that_resolve_and_clusters_that_answered_are_not() -> None:
    for host in ("10.40.0.200", "2001:db8::1", ""):
        assert await check_name(scope(NutanixCluster, host), unknown) == []
    assert await check_name(scope(NutanixCluster, "quay.example.com"), known) == []
    assert await check_name(scope(NutanixCluster, "quay.example.com", initialized=True), unknown) == []


async def test_a_provisioned_cluster_reports_it_until_its_control_plane_has_answered() -> None:
    preflight = Preflight(lambda *_: None, list, lambda *_: None, unknown)
    found = await preflight.run(scope(NutanixCluster, "quay.example.com", provisioned=True))
    assert "EndpointNotResolved" in {check.reason for check in found}
    found = await preflight.run(scope(NutanixCluster, "quay.example.com", provisioned=True, initialized=True))
    assert {check.reason for check in found if not check.ok} <= {"NoFailureDomainsConfigured"}


async def test_a_name_is_looked_up_here_unless_a_proxy_does_that() -> None:
    assert lookup_of(DIRECT) is look_up
    assert await look_up("localhost") == ""
    assert await look_up("a" * 64) != ""  # no label is that long: nobody is asked
    assert await lookup_of(DialOptions(proxy="http://127.0.0.1:1"))("a" * 64) == ""
