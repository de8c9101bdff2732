from __future__ import annotations

import random

from homeport.capi.failuredomain import pick_fewest, pick_most


def test_a_new_machine_goes_where_fewest_will_stay() -> None:
    assert pick_fewest(["a", "b", "c"], ["a", "b", "c", "c"], ["a", "b"]) == "c"


def test_among_equals_the_one_with_fewest_of_all() -> None:
    assert pick_fewest(["a", "b"], ["a", "a", "b"], []) == "b"


def test_machines_elsewhere_do_not_count() -> None:
    assert pick_fewest(["a", "b"], ["x", "x", "a"], ["x", "a"]) == "b"


def test_without_domains_there_is_none() -> None:
    assert pick_fewest([], ["a"], ["a"]) == ""
    assert pick_most([], ["a"], ["a"]) == ""


def test_a_machine_is_taken_from_where_most_may_go() -> None:
    assert pick_most(["a", "b"], ["a", "a", "a", "b", "b"], ["a", "b", "b"]) == "b"
    assert pick_most(["a", "b"], ["a", "a", "b"], ["a", "b"]) == "a"


def test_nothing_is_taken_when_no_machine_may_go() -> None:
    assert pick_most(["a", "b"], ["a", "b"], []) == ""
    assert pick_most(["a", "b"], ["a", "b"], ["x"]) == ""


def test_equals_are_spread_over_clusters() -> None:
    random.seed(1)
    assert {pick_fewest(["a", "b", "c"], [], []) for _ in range(50)} == {"a", "b", "c"}
