"""What pools, addresses and claims may say."""

from __future__ import annotations

from typing import Any

import pytest

from homeport.ipam.admission import validate_address, validate_claim, validate_pool


def pool(*addresses: str, prefix: int = 24, **more: Any) -> dict[str, Any]:
    return {"metadata": {"name": "p"}, "spec": {"addresses": list(addresses), "prefix": prefix, **more}}


@pytest.mark.parametrize(
    "good",
    [
        pool("10.0.0.5"),
        pool("10.0.0.5-10.0.0.9", "10.0.0.20", "10.0.0.64/28", gateway="10.0.0.1"),
        pool("10.0.0.5", excludedAddresses=["10.0.0.6-10.0.0.9"]),
        pool("fd00::10-fd00::20", prefix=64, gateway="fd00::1"),
        pool("10.0.0.0/31", prefix=31),
    ],
)
def test_a_good_pool_is_admitted(good: dict[str, Any]) -> None:
    assert validate_pool(good, None) == []


@pytest.mark.parametrize(
    ("bad", "field", "said"),
    [
        (pool(), "spec.addresses", "at least one"),
        (pool("10.0.0.5", "ten"), "spec.addresses[1]", "'ten' is not a valid IP address"),
        (pool("10.0.0.9-10.0.0.5"), "spec.addresses[0]", "ends before it begins"),
        (pool("10.0.0.5", "fd00::1"), "spec.addresses[1]", "a pool for each family"),
        (pool("10.0.0.5", excludedAddresses=["fd00::1"]), "spec.excludedAddresses[0]", "a pool for each family"),
        (pool("10.0.0.5", excludedAddresses=["x"]), "spec.excludedAddresses[0]", "is not a valid IP address"),
        (pool("10.0.0.5", gateway="x"), "spec.gateway", "'x' is not a valid IP address"),
        (pool("10.0.0.5", gateway="fd00::1"), "spec.gateway", "is IPv6, but the addresses are IPv4"),
        (pool("10.0.0.5", prefix=64), "spec.prefix", "not a valid prefix length of an IPv4 network"),
        (pool("10.0.0.5", "10.0.1.5"), "spec.addresses[1]", "outside the network 10.0.0.0-10.0.0.255"),
    ],
)
def test_what_is_wrong_with_a_pool_is_said_at_its_field(bad: dict[str, Any], field: str, said: str) -> None:
    causes = validate_pool(bad, None)
    assert [each.field for each in causes] == [field]
    assert said in causes[0].message


def test_a_pool_that_was_wrong_before_can_still_lose_its_finalizer() -> None:
    assert validate_pool(pool("ten"), pool("ten")) == []


def address(**spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": "a"}, "spec": {"address": "10.0.0.5", "prefix": 24, **spec}}


@pytest.mark.parametrize(
    ("bad", "field"),
    [
        (address(address="ten"), "spec.address"),
        (address(prefix=64), "spec.prefix"),
        (address(gateway="ten"), "spec.gateway"),
    ],
)
def test_an_invalid_address_is_refused(bad: dict[str, Any], field: str) -> None:
    assert [each.field for each in validate_address(bad, None)] == [field]


def test_addresses_and_claims_do_not_change() -> None:
    assert validate_address(address(), address()) == []
    assert validate_address(address(address="10.0.0.6"), address())[0].reason == "FieldValueForbidden"
    claim = {"spec": {"poolRef": {"name": "a"}}}
    assert validate_claim(claim, claim) == []
    assert validate_claim({"spec": {"poolRef": {"name": "b"}}}, claim)[0].field == "spec"
