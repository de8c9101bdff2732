"""Addresses of IPPools: which ranges are valid, which pool is chosen, which address is next."""

from __future__ import annotations

from typing import Any

import pytest

from homeport.sim.harvester.balancer.range import next_address, parse_ranges
from homeport.sim.harvester.balancer.select import GLOBAL, Requirement, select_pool


def pool(name: str, priority: int = 0, network: str = "", everyone: bool = False, **scope: str) -> dict[str, Any]:
    labels = {GLOBAL: "true"} if everyone else {}
    selector = {"priority": priority, "network": network, "scope": [scope]}
    return {"metadata": {"name": name, "labels": labels}, "spec": {"selector": selector}}


@pytest.mark.parametrize(
    ("raw", "shown", "count"),
    [
        ({"subnet": "10.20.1.0/24"}, "10.20.1.1-10.20.1.254", 253),  # the gateway is left out
        ({"subnet": "10.20.1.0/24", "rangeStart": "10.20.1.10", "rangeEnd": "10.20.1.19"}, "10.20.1.10-10.20.1.19", 10),
        ({"subnet": "10.20.1.0/24", "rangeStart": "10.20.1.9", "rangeEnd": "10.20.1.5"}, "10.20.1.5-10.20.1.9", 5),
        ({"subnet": "10.20.1.7/32"}, "10.20.1.7-10.20.1.7", 1),
    ],
)
def test_a_range_has_the_bounds_that_harvester_gives_it(raw: dict[str, str], shown: str, count: int) -> None:
    (parsed,) = parse_ranges([raw])
    assert (str(parsed), len(parsed)) == (shown, count)


@pytest.mark.parametrize(
    ("raw", "words"),
    [
        ({"subnet": "10.300.0.0/16"}, "invalid CIDR address: 10.300.0.0/16"),
        ({"subnet": "10.20.1.0"}, "invalid CIDR address"),
        ({"subnet": "10.20.1.0/24", "rangeStart": "10.9.9.9"}, "range start 10.9.9.9: .* out of subnet 10.20.1.0/24"),
        ({"subnet": "10.20.1.0/24", "rangeEnd": "10.20.1.255"}, "is the broadcast address"),
        ({"subnet": "10.20.1.0/24", "gateway": "x"}, "invalid gateway x: invalid IP x"),
    ],
)
def test_a_range_that_cannot_work_is_refused(raw: dict[str, str], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        parse_ranges([raw])


def test_addresses_are_given_in_turn_and_not_again_at_once() -> None:
    ranges = parse_ranges([{"subnet": "10.20.1.0/24", "rangeStart": "10.20.1.1", "rangeEnd": "10.20.1.3"}])
    assert next_address(ranges, {}, "") == "10.20.1.2"  # .1 is the gateway
    assert next_address(ranges, {}, "10.20.1.2") == "10.20.1.3"
    assert next_address(ranges, {}, "10.20.1.3") == "10.20.1.2"
    assert next_address(ranges, {"10.20.1.2": "a", "10.20.1.3": "b"}, "10.20.1.3") == ""


def test_the_next_range_follows_the_last_address_of_one() -> None:
    ranges = parse_ranges([{"subnet": "10.20.1.8/32"}, {"subnet": "10.20.2.9/32"}])
    assert next_address(ranges, {}, "10.20.1.8") == "10.20.2.9"
    assert next_address(ranges, {}, "10.20.2.9") == "10.20.1.8"


@pytest.mark.parametrize(
    ("wanted", "loose", "chosen"),
    [
        (Requirement(namespace="prod"), False, "prod-2"),  # the higher priority
        (Requirement(namespace="dev"), False, "everyone"),
        (Requirement(network="default/workloads", namespace="prod", cluster="c1"), False, "everyone"),
        (Requirement(network="default/workloads", namespace="prod", cluster="c1"), True, "vlan"),
        (Requirement(network="default/workloads", namespace="prod"), False, "vlan"),
    ],
)
def test_the_pool_is_chosen_by_network_scope_and_priority(wanted: Requirement, loose: bool, chosen: str) -> None:
    pools = [
        pool("everyone", everyone=True),
        pool("prod-1", 1, namespace="prod"),
        pool("prod-2", 2, namespace="prod"),
        pool("vlan", network="default/workloads", namespace="*"),
    ]
    found = select_pool(pools, wanted, loose=loose)
    assert found is not None
    assert found["metadata"]["name"] == chosen


def test_without_a_fitting_or_global_pool_there_is_none() -> None:
    assert select_pool([pool("a", namespace="prod")], Requirement(namespace="dev")) is None
