from __future__ import annotations

import pytest

from homeport.sim.network import Exhausted, Pool, Taken, split_endpoint


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("10.0.0.100:6443", ("10.0.0.100", 6443)),
        ("10.0.0.100", ("10.0.0.100", 6443)),
        ("https://prism-central.example.com:9440/api", ("prism-central.example.com", 9440)),
        ("https://Prism.Example.COM.", ("prism.example.com", 443)),
        ("[fd00::1]:6443", ("fd00::1", 6443)),
        ("fd00::1", ("fd00::1", 6443)),
    ],
)
def test_an_endpoint_is_split_into_host_and_port(text: str, found: tuple[str, int]) -> None:
    assert split_endpoint(text) == found


@pytest.mark.parametrize("text", ["", ":6443", "host:port", "https://"])
def test_what_names_no_host_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"has no host|[Pp]ort"):
        split_endpoint(text)


def test_a_pool_gives_each_owner_an_address_of_his_own_until_none_is_left() -> None:
    pool = Pool(["10.0.0.10-10.0.0.11", "10.0.1.5"])
    assert [pool.take(owner) for owner in "abc"] == ["10.0.0.10", "10.0.0.11", "10.0.1.5"]
    with pytest.raises(Exhausted):
        pool.take("d")
    assert pool.free("b") == ["10.0.0.11"]
    assert pool.take("d") == "10.0.0.11"


def test_an_address_that_somebody_has_is_not_given_to_another() -> None:
    pool = Pool(["10.0.0.0/30"])
    assert pool.take("a", "10.0.0.1") == pool.take("a", "10.0.0.1")
    with pytest.raises(Taken, match="taken by a"):
        pool.take("b", "10.0.0.1")
    assert pool.take("b") == "10.0.0.2"
    assert pool.owner("10.0.0.2") == "b"


def test_a_network_range_leaves_out_its_own_and_the_broadcast_address() -> None:
    pool = Pool(["192.168.1.0/30"])
    assert [pool.take("a"), pool.take("b")] == ["192.168.1.1", "192.168.1.2"]
    with pytest.raises(Exhausted):
        pool.take("c")
