"""Addresses of Services, as tables."""

from __future__ import annotations

from collections.abc import Mapping
from ipaddress import ip_address
from typing import Any

import pytest

from homeport.api.meta import Unstructured
from homeport.ccm.service import PoolError, balanced, choose, ingress, parse_pool

POOLS = [parse_pool("10.0.0.1-10.0.0.3"), parse_pool("10.1.0.0/30", "dmz")]


def service(annotations: Mapping[str, str] = {}, held: tuple[str, ...] = (), **spec: Any) -> Unstructured:
    return Unstructured(
        metadata={"name": "s", "annotations": dict(annotations)},
        spec={"type": "LoadBalancer", **spec},
        status={"loadBalancer": {"ingress": [{"ip": each} for each in held]}},
    )


@pytest.mark.parametrize(
    ("text", "inside", "outside"),
    [
        ("10.0.0.1", "10.0.0.1", "10.0.0.2"),
        ("10.0.0.1 - 10.0.0.9, 10.2.0.0/24", "10.2.0.255", "10.0.0.10"),
        ("fd00::1-fd00::ff", "fd00::80", "10.0.0.1"),
    ],
)
def test_pools_are_ranges_and_networks(text: str, inside: str, outside: str) -> None:
    pool = parse_pool(text)
    assert ip_address(inside) in pool
    assert ip_address(outside) not in pool


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is empty"),
        ("10.0.0.9-10.0.0.1", "ends before it begins"),
        ("10.0.0.1-fd00::1", "ends before it begins"),
        ("10.0.0.300", "'10.0.0.300'"),
        ("host", "expected FIRST-LAST or a CIDR"),
    ],
)
def test_a_pool_that_can_not_be_read_is_named(text: str, message: str) -> None:
    with pytest.raises(PoolError, match=message) as caught:
        parse_pool(text, "p")
    assert "'p'" in str(caught.value)


@pytest.mark.parametrize(
    ("found", "taken", "address"),
    [
        (service(), [], "10.0.0.1"),
        (service(), ["10.0.0.1", "10.0.0.2"], "10.0.0.3"),
        (service(), ["10.0.0.1", "10.0.0.2", "10.0.0.3"], "10.1.0.0"),
        (service(held=("10.0.0.3",)), [], "10.0.0.3"),
        (service(held=("192.0.2.1",)), [], "10.0.0.1"),
        (service({"metallb.io/address-pool": "dmz"}), [], "10.1.0.0"),
        (service({"metallb.universe.tf/address-pool": "dmz"}), ["10.1.0.0"], "10.1.0.1"),
        (service({"metallb.io/loadBalancerIPs": "10.0.0.2"}, held=("10.0.0.1",)), [], "10.0.0.2"),
        (service({"kube-vip.io/loadbalancerIPs": "10.0.0.2"}), [], "10.0.0.2"),
        (service({"kube-vip.io/loadbalancerIPs": "10.0.0.1"}, held=("10.0.0.1",)), [], "10.0.0.1"),
        (service(loadBalancerIP="10.0.0.3"), [], "10.0.0.3"),
    ],
)
def test_an_address_is_chosen(found: Unstructured, taken: list[str], address: str) -> None:
    assert choose(found, POOLS, ingress(found), taken) == (address, "")


@pytest.mark.parametrize(
    ("found", "taken", "why"),
    [
        (service({"metallb.io/address-pool": "lan"}), [], "pool 'lan' does not exist: expected one of default, dmz"),
        (service({"metallb.io/loadBalancerIPs": "10.9.9.9"}), [], "10.9.9.9 is not in an address pool"),
        (service({"metallb.io/loadBalancerIPs": "10.0.0.2"}), ["10.0.0.2"], "is assigned to another Service"),
        (service(loadBalancerIP="here"), [], "'here' is not a valid IP address"),
        (service({"metallb.io/address-pool": "dmz"}), [f"10.1.0.{n}" for n in range(4)], "all addresses of pool dmz"),
    ],
)
def test_the_reason_for_a_missing_address_is_reported(found: Unstructured, taken: list[str], why: str) -> None:
    address, told = choose(found, POOLS, ingress(found), taken)
    assert address is None
    assert why in told


def test_services_of_others_are_left_to_them() -> None:
    assert balanced(service())
    assert not balanced(service(type="ClusterIP"))
    assert not balanced(service(loadBalancerClass="metallb.io/metallb"))
