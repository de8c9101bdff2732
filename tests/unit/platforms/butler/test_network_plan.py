from __future__ import annotations

import itertools
import random
from typing import Any

import msgspec
import pytest

from homeport.api.butler.v1alpha1 import NetworkPool
from homeport.api.butler.v1alpha1.network import NetworkPoolSpec
from homeport.client.protocol import Key
from homeport.machinery.address import AddressSet
from homeport.platforms.butler.network.plan import (
    Grant,
    Request,
    best_fit,
    decide,
    read_ledger,
    render_ledger,
)
from homeport.platforms.butler.normal.network import normal_network_pool
from present import present


def key(name: str) -> Key:
    return Key("butler-system", name)


@pytest.mark.parametrize(
    ("given", "found"),
    [
        ({"cidr": "10.0.0.0/29"}, "10.0.0.1-10.0.0.6"),
        ({"cidr": "10.0.0.0/31"}, "10.0.0.0-10.0.0.1"),
        ({"cidr": "10.40.1.0-10.40.1.50"}, "10.40.1.0-10.40.1.50"),
        ({"cidr": "10.0.0.5-10.0.0.6, 10.0.1.0/30"}, "10.0.0.5-10.0.0.6, 10.0.1.1-10.0.1.2"),
        ({"cidr": "fd00::/126"}, "fd00::1-fd00::3"),
        ({"cidr": "10.0.0.0/29", "reserved": [{"cidr": "10.0.0.1"}, {"cidr": "10.0.0.6/32"}]}, "10.0.0.2-10.0.0.5"),
    ],
)
def test_a_pool_gives_out_what_its_spec_says(given: dict[str, Any], found: str) -> None:
    read = normal_network_pool(NetworkPool(spec=msgspec.convert(given, NetworkPoolSpec)))
    assert str(present(read.model).usable) == found


@pytest.mark.parametrize("cidr", ["ten", "10.0.0.9-10.0.0.1", "10.0.0.1, fd00::1"])
def test_a_wrong_pool_is_reported_by_its_field(cidr: str) -> None:
    read = normal_network_pool(NetworkPool(spec=msgspec.convert({"cidr": cidr}, NetworkPoolSpec)))
    assert (read.model, {each.field for each in read.faults}) == (None, {"spec.cidr"})


def test_the_oldest_request_comes_first_and_what_was_given_stays() -> None:
    pool = AddressSet.parse(["10.0.0.1-10.0.0.8"])
    first = decide(pool, {}, [Request(key("b"), 4, created="2", uid="2"), Request(key("a"), 4, created="1", uid="1")])
    assert read_ledger(render_ledger(first.ledger, 4)) == first.ledger
    assert render_ledger(first.ledger, 4) == (
        '{"butler-system/a": {"range": "10.0.0.1-10.0.0.4", "uid": "1"}, '
        '"butler-system/b": {"range": "10.0.0.5-10.0.0.8", "uid": "2"}}'
    )
    second = decide(pool, first.ledger, [Request(key("c"), 1)])
    assert second.ledger == first.ledger
    assert "0 of 8 are free" in second.refused[key("c")]


def test_small_gaps_are_filled_before_large_ones_are_cut() -> None:
    assert best_fit(AddressSet.parse(["10.0.0.1-10.0.0.20", "10.0.0.30-10.0.0.32"]), 2) == (
        int(AddressSet.parse(["10.0.0.30"]).spans[0][0]),
        int(AddressSet.parse(["10.0.0.31"]).spans[0][0]),
    )


def test_a_pinned_range_is_given_or_refused_with_its_owner() -> None:
    pool = AddressSet.parse(["10.0.0.1-10.0.0.8"])
    one, two = AddressSet.parse(["10.0.0.3-10.0.0.4"]), AddressSet.parse(["10.0.0.4-10.0.0.5"])
    made = decide(pool, {}, [Request(key("a"), 1, one, "1"), Request(key("b"), 1, two, "2")])
    assert made.ledger == {key("a"): Grant(one.spans[0], "")}
    assert "overlaps with IPAllocation butler-system/a" in made.refused[key("b")]
    outside = decide(pool, {}, [Request(key("c"), 1, AddressSet.parse(["10.0.0.7-10.0.0.10"]))])
    assert "is not within what the pool gives out" in outside.refused[key("c")]


def test_a_ledger_that_somebody_changed_gives_nothing_out() -> None:
    for text in ("[]", "{", '{"a/b": "nonsense"}', '{"a/b": {"range": "10.0.0.1-10.0.0.2"}}', '{"a/b": 1}'):
        with pytest.raises(ValueError, match="can't be read"):
            read_ledger(text)


@pytest.mark.parametrize("seed", range(20))
def test_no_address_ever_has_two_owners(seed: int) -> None:
    chance = random.Random(seed)
    pool = AddressSet.parse(["10.0.0.1-10.0.0.60", "10.0.0.80-10.0.0.99"])
    ledger: dict[Key, Grant] = {}
    for turn in range(60):
        if ledger and chance.random() < 0.4:
            ledger.pop(chance.choice(sorted(ledger)))
        requests = [Request(key(f"{turn}-{n}"), chance.randint(1, 9)) for n in range(chance.randint(0, 3))]
        found = decide(pool, ledger, requests)
        assert found.ledger.items() >= ledger.items()
        ledger = dict(found.ledger)
        spans = sorted(each.span for each in ledger.values())
        assert all(one[1] < other[0] for one, other in itertools.pairwise(spans))
        assert pool.covers(AddressSet(4, tuple(spans)))
