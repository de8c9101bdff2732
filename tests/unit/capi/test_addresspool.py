"""What a pool may give out."""

from __future__ import annotations

from ipaddress import ip_address

import pytest

from homeport.api.ipam.v1alpha2 import PoolSpec
from homeport.capi.addresspool import RESERVED, Reservation, render_reservations, reservations, usable
from homeport.client.protocol import Key


@pytest.mark.parametrize(
    ("spec", "there"),
    [
        (PoolSpec(addresses=["10.0.0.0/29"], prefix=29), "10.0.0.1-10.0.0.6"),
        (PoolSpec(addresses=["10.0.0.0/29"], prefix=24), "10.0.0.1-10.0.0.7"),
        (PoolSpec(addresses=["10.0.0.0/29"], prefix=29, gateway="10.0.0.1"), "10.0.0.2-10.0.0.6"),
        (PoolSpec(addresses=["10.0.0.0/29"], prefix=29, allocate_reserved_addresses=True), "10.0.0.0-10.0.0.7"),
        (PoolSpec(addresses=["10.0.0.0/31"], prefix=31), "10.0.0.0-10.0.0.1"),
        (PoolSpec(addresses=["10.0.0.7"], prefix=32), "10.0.0.7"),
        (
            PoolSpec(addresses=["10.0.0.2-10.0.0.9"], prefix=24, excluded_addresses=["10.0.0.4-10.0.0.5", "10.0.0.8"]),
            "10.0.0.2-10.0.0.3, 10.0.0.6-10.0.0.7, 10.0.0.9",
        ),
        (PoolSpec(addresses=["fd00::/125"], prefix=125), "fd00::1-fd00::7"),
        (PoolSpec(addresses=["fd00::/125"], prefix=125, allocate_reserved_addresses=True), "fd00::-fd00::7"),
        (PoolSpec(addresses=["fd00::10-fd00::1f"], prefix=64, gateway="fd00::10"), "fd00::11-fd00::1f"),
    ],
)
def test_networks_gateways_and_exclusions_are_left_out(spec: PoolSpec, there: str) -> None:
    assert str(usable(spec)) == there


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        (PoolSpec(prefix=24), "no addresses"),
        (PoolSpec(addresses=["10.0.0.1"], prefix=33), "not a valid prefix length of an IPv4"),
        (PoolSpec(addresses=["10.0.0.1", "fd00::1"], prefix=24), "IPv6"),
        (PoolSpec(addresses=["10.0.0"], prefix=24), "is not a valid IP address"),
    ],
)
def test_a_pool_that_slipped_past_admission_says_what_is_wrong(spec: PoolSpec, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        usable(spec)


def test_reservations_survive_the_way_through_an_annotation() -> None:
    entries = {
        ip_address("10.0.0.5"): Reservation(7, "uid-1", Key("default", "a-0")),
        ip_address("fd00::5"): Reservation(8, "uid-2", Key("other", "b-0")),
    }
    text = render_reservations(entries)
    assert text is not None
    assert reservations({RESERVED: text}) == entries
    assert render_reservations({}) is None


@pytest.mark.parametrize("text", ["", "no JSON", "[]", '{"ten": "x"}', '{"10.0.0.1": "x"}'])
def test_an_annotation_that_somebody_else_wrote_reserves_nothing(text: str) -> None:
    assert reservations({RESERVED: text}) == {}
