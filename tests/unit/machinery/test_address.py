"""Sets of addresses."""

from __future__ import annotations

from ipaddress import ip_address

import pytest

from homeport.machinery.address import AddressSet, parse_span


@pytest.mark.parametrize(
    ("text", "first", "last"),
    [
        ("10.0.0.5", "10.0.0.5", "10.0.0.5"),
        ("10.0.0.5-10.0.0.9", "10.0.0.5", "10.0.0.9"),
        (" 10.0.0.5 - 10.0.0.9 ", "10.0.0.5", "10.0.0.9"),
        ("10.0.0.0/30", "10.0.0.0", "10.0.0.3"),
        ("10.0.0.7/30", "10.0.0.4", "10.0.0.7"),
        ("fd00::10", "fd00::10", "fd00::10"),
        ("fd00::10-fd00::1f", "fd00::10", "fd00::1f"),
        ("fd00::/64", "fd00::", "fd00::ffff:ffff:ffff:ffff"),
    ],
)
def test_single_addresses_ranges_and_networks_are_read(text: str, first: str, last: str) -> None:
    assert parse_span(text) == (ip_address(first), ip_address(last))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "is not a valid IP address"),
        ("ten", "is not a valid IP address"),
        ("10.0.0.5-", "is not a valid IP address"),
        ("10.0.0.0/33", "is not a valid IP address"),
        ("10.0.0.9-10.0.0.5", "ends before it begins"),
        ("10.0.0.9-fd00::1", "in one family"),
        ("fe80::1%eth0", "names an interface"),
    ],
)
def test_what_can_not_be_read_is_named(text: str, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        parse_span(text)


def test_adjacent_ranges_are_merged() -> None:
    found = AddressSet.parse(["10.0.0.5-10.0.0.9", "10.0.0.1", "10.0.0.8-10.0.0.12", "10.0.0.13"])
    assert str(found) == "10.0.0.1, 10.0.0.5-10.0.0.13"
    assert found.count == 10


def test_a_set_is_of_one_family() -> None:
    with pytest.raises(ValueError, match="is IPv6, and others are IPv4"):
        AddressSet.parse(["10.0.0.1", "fd00::1"])


def test_membership_knows_families_apart() -> None:
    found = AddressSet.parse(["0.0.0.1-0.0.0.9"])
    assert ip_address("0.0.0.5") in found
    assert ip_address("::5") not in found
    assert ip_address("0.0.0.10") not in found
    assert "0.0.0.5" not in found


@pytest.mark.parametrize(
    ("gone", "left"),
    [
        (["10.0.0.1-10.0.0.9"], ""),
        (["10.0.0.0/24"], ""),
        (["10.0.0.1"], "10.0.0.2-10.0.0.9"),
        (["10.0.0.9"], "10.0.0.1-10.0.0.8"),
        (["10.0.0.4-10.0.0.5"], "10.0.0.1-10.0.0.3, 10.0.0.6-10.0.0.9"),
        (["10.0.0.3", "10.0.0.7"], "10.0.0.1-10.0.0.2, 10.0.0.4-10.0.0.6, 10.0.0.8-10.0.0.9"),
        (["10.0.1.1"], "10.0.0.1-10.0.0.9"),
        (["fd00::1"], "10.0.0.1-10.0.0.9"),
    ],
)
def test_addresses_can_be_subtracted(gone: list[str], left: str) -> None:
    assert str(AddressSet.parse(["10.0.0.1-10.0.0.9"]).without(AddressSet.parse(gone))) == left


def test_covering_is_having_all_of_it() -> None:
    network = AddressSet.parse(["10.0.0.0/24"])
    assert network.covers(AddressSet.parse(["10.0.0.0", "10.0.0.128-10.0.0.255"]))
    assert not network.covers(AddressSet.parse(["10.0.0.250-10.0.1.1"]))


def test_free_addresses_come_in_order_and_the_largest_network_costs_nothing() -> None:
    huge = AddressSet.parse(["fd00::/8"])
    assert huge.count == 2**120
    taken = {ip_address("fd00::"), ip_address("fd00::2")}
    found = huge.free(taken)
    assert [str(next(found)) for _ in range(3)] == ["fd00::1", "fd00::3", "fd00::4"]
    assert list(AddressSet.parse(["10.0.0.1"]).free({ip_address("10.0.0.1")})) == []
