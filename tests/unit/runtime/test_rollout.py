from __future__ import annotations

import random

from hypothesis import given
from hypothesis import strategies as st

from homeport.runtime.workload.rollout import Replicas, plan_recreate, plan_rolling


def test_a_first_version_gets_everything_at_once() -> None:
    assert plan_rolling(3, 1, 0, Replicas("new", 0), []) == {"new": 3}


def test_an_update_begins_with_the_surge_and_what_may_be_missing() -> None:
    old = Replicas("old", 4, 4, 4)
    assert plan_rolling(4, 1, 1, Replicas("new", 0), [old]) == {"new": 1, "old": 3}


def test_without_surge_old_ones_go_first() -> None:
    old = Replicas("old", 2, 2, 2)
    assert plan_rolling(2, 0, 1, Replicas("new", 0), [old]) == {"new": 0, "old": 1}


def test_old_ones_stay_while_new_ones_are_not_available() -> None:
    old = Replicas("old", 3, 3, 3)
    assert plan_rolling(3, 1, 0, Replicas("new", 1, 1, 0), [old]) == {"new": 1, "old": 3}
    assert plan_rolling(3, 1, 0, Replicas("new", 1, 1, 1), [old]) == {"new": 1, "old": 2}


def test_old_ones_that_do_not_work_go_first() -> None:
    broken, fine = Replicas("broken", 2, 2, 0), Replicas("fine", 3, 3, 3)
    plan = plan_rolling(4, 1, 1, Replicas("new", 0), [broken, fine])
    assert plan["broken"] == 0
    assert plan["fine"] == 3


def test_scaling_down_applies_to_the_new_version_at_once() -> None:
    assert plan_rolling(1, 1, 0, Replicas("new", 5, 5, 5), []) == {"new": 1}


def test_recreate_waits_for_the_last_old_one() -> None:
    assert plan_recreate(2, Replicas("new", 0), [Replicas("old", 2, 2, 2)], left=True) == {"old": 0}
    assert plan_recreate(2, Replicas("new", 0), [Replicas("old", 0, 0, 0)], left=True) == {"old": 0}
    assert plan_recreate(2, Replicas("new", 0), [Replicas("old", 0)], left=False) == {"new": 2}


@given(st.integers(0, 12), st.integers(0, 5), st.integers(0, 5), st.lists(st.integers(0, 6), max_size=3), st.randoms())
def test_every_rollout_ends_and_never_breaks_its_limits(
    wanted: int, surge: int, unavailable: int, olds: list[int], chance: random.Random
) -> None:
    if not surge and not unavailable:
        unavailable = 1
    spec = {"new": 0, **{f"old{i}": count for i, count in enumerate(olds)}}
    available = dict(spec)
    for _ in range(300):
        before = dict(spec)
        total = sum(spec.values())
        counts = [Replicas(name, spec[name], spec[name], available[name]) for name in spec]
        spec = plan_rolling(wanted, surge, unavailable, counts[0], counts[1:])
        assert sum(spec.values()) <= max(wanted + surge, total)
        kept = sum(min(available[name], spec[name]) for name in spec)
        assert kept >= min(wanted - unavailable, sum(available.values())) or spec["new"] < before["new"]
        available = {name: min(available[name], spec[name]) for name in spec}
        if spec == before and available == spec:
            break
        ready = [name for name in spec if available[name] < spec[name]]
        if ready:  # one more comes to work
            name = chance.choice(ready)
            available[name] += 1
    assert spec == {name: wanted if name == "new" else 0 for name in spec}
