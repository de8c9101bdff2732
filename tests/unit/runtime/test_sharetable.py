from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from homeport.runtime.sharetable import bucket_of, is_even, parse_table, plan_table, weights_of
from present import present

NAMES = [f"cluster team-{n % 7}/shop-{n}" for n in range(1000)]


@pytest.mark.parametrize("members", [("a",), ("a", "b"), ("a", "b", "c"), tuple("abcdefg")])
def test_each_of_several_replicas_gets_an_equal_share_of_a_thousand_clusters(members: tuple[str, ...]) -> None:
    table = plan_table(None, members, weights_of(NAMES))
    counts = Counter(table.owner(name) for name in NAMES)
    mean = len(NAMES) / len(members)
    assert all(abs(counts[member] - mean) <= 0.02 * mean for member in members), counts


@given(st.lists(st.text(min_size=1, max_size=8), min_size=30, max_size=300, unique=True), st.integers(2, 9))
def test_shares_are_even_whatever_the_names_are(names: list[str], count: int) -> None:
    members = [f"r{n}" for n in range(count)]
    table = plan_table(None, members, weights_of(names))
    counts = Counter(table.owner(name) for name in names)
    heaviest = max(Counter(map(bucket_of, names)).values())
    assert max(counts[each] for each in members) - min(counts[each] for each in members) <= heaviest + 1


def test_a_new_member_takes_its_share_and_moves_nothing_else() -> None:
    weights = weights_of(NAMES)
    before = plan_table(None, ("a", "b", "c"), weights)
    after = plan_table(before, ("a", "b", "c", "d"), weights)
    assert all(after.owner(name) in (before.owner(name), "d") for name in NAMES)
    assert 245 <= sum(after.owner(name) == "d" for name in NAMES) <= 255
    assert after.epoch == before.epoch + 1


def test_what_a_member_had_goes_to_the_others_and_nothing_else_moves() -> None:
    weights = weights_of(NAMES)
    before = plan_table(None, ("a", "b", "c"), weights)
    after = plan_table(before, ("a", "c"), weights)
    assert all(after.owner(name) == before.owner(name) for name in NAMES if before.owner(name) != "b")
    assert is_even(after, weights)


@pytest.mark.parametrize("count", [0, 1, 40, 100])
def test_clusters_that_come_later_are_spread_evenly_too(count: int) -> None:
    table = plan_table(None, ("a", "b", "c"), weights_of(NAMES[:count]))
    later = Counter(table.owner(f"cluster later/{n}") for n in range(3000))
    assert all(900 <= later[member] <= 1100 for member in "abc"), later


def test_a_small_difference_is_removed_only_while_no_work_comes_or_goes() -> None:
    table = plan_table(None, ("a", "b", "c"), weights_of(NAMES))
    more = [name for name in (f"more {n}" for n in range(1000)) if table.owner(name) == "a"][:20]
    weights = weights_of([*NAMES, *more])
    assert is_even(table, weights)
    assert not is_even(table, weights, settled=True)
    assert is_even(plan_table(table, ("a", "b", "c"), weights), weights, settled=True)


def test_a_cluster_with_many_machines_counts_as_much_as_many_clusters() -> None:
    large = ["cluster team/large"] * 100
    table = plan_table(None, ("a", "b"), weights_of([*large, *NAMES[:100]]))
    counts = Counter(table.owner(name) for name in NAMES[:100])
    assert counts[table.owner("cluster team/large")] <= 2, counts  # what shares its bucket


def test_a_group_without_work_divides_the_buckets() -> None:
    table = plan_table(None, ("a", "b", "c"), weights_of([]))
    assert sorted(len(table.buckets(member)) for member in "abc") == [341, 341, 342]


def test_a_table_survives_its_way_through_an_annotation() -> None:
    table = plan_table(None, ("a", "b", "c"), weights_of(NAMES))
    assert parse_table(table.encode()) == table
    assert present(parse_table(table.encode())).digest == table.digest


@pytest.mark.parametrize(
    "text",
    ["", "{}", "x", '{"epoch":1,"members":[],"slots":""}', '{"epoch":1,"members":["a"],"slots":"AA=="}'],
)
def test_a_text_that_is_not_a_table_is_none(text: str) -> None:
    assert parse_table(text) is None
