"""Versions on the way of an upgrade: who goes next, and who waits."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from homeport.core.topology.upgrade import (
    Group,
    NoUpgradePath,
    Observed,
    Plan,
    Plane,
    find_steps,
    find_worker_steps,
    plan,
)

ALL = [f"v1.{minor}.{patch}" for minor in range(28, 35) for patch in (0, 4)]


@pytest.mark.parametrize(
    ("current", "goal", "known", "steps"),
    [
        ("v1.30.0", "v1.30.0", [], []),
        ("v1.30.0", "v1.30.4", [], ["v1.30.4"]),
        ("v1.30.0", "v1.31.2", [], ["v1.31.2"]),
        ("v1.30.0", "v1.31.0", ALL, ["v1.31.0"]),
        ("v1.30.0", "v1.33.0", ALL, ["v1.31.4", "v1.32.4", "v1.33.0"]),
        ("v1.30.4", "v1.32.4", ALL, ["v1.31.4", "v1.32.4"]),
        ("v1.30.0+a", "v1.30.0+b", [], ["v1.30.0+b"]),
        ("v1.30.0", "v1.30.4", ALL, ["v1.30.4"]),
    ],
)
def test_a_control_plane_goes_through_the_newest_of_each_minor_version(
    current: str, goal: str, known: list[str], steps: list[str]
) -> None:
    assert find_steps(current, goal, known) == steps


@pytest.mark.parametrize("known", [[], ["v1.31.0"], ["v1.32.0"]])
def test_there_is_no_way_that_skips_a_minor_version(known: list[str]) -> None:
    with pytest.raises(NoUpgradePath, match="can't skip minor versions"):
        find_steps("v1.30.0", "v1.33.0", known)


@pytest.mark.parametrize(
    ("workers", "current", "goal", "steps"),
    [
        ([], "v1.30.0", "v1.31.0", []),
        (["v1.31.0"], "v1.31.0", "v1.31.0", []),
        (["v1.30.0", "v1.31.0"], "v1.31.0", "v1.31.0", ["v1.31.0"]),
        (["v1.30.0"], "v1.30.0", "v1.33.0", ["v1.33.0"]),
        (["v1.29.0"], "v1.29.0", "v1.33.0", ["v1.32.4", "v1.33.0"]),
        (["v1.28.0"], "v1.28.0", "v1.34.4", ["v1.31.4", "v1.34.4"]),
        (["v1.28.0"], "v1.31.4", "v1.34.4", ["v1.31.4", "v1.34.4"]),
    ],
)
def test_workers_take_as_few_steps_as_the_skew_allows(
    workers: list[str], current: str, goal: str, steps: list[str]
) -> None:
    assert find_worker_steps(workers, current, goal, find_steps(current, goal, ALL)) == steps


def test_workers_that_were_left_too_far_behind_are_reported() -> None:
    with pytest.raises(NoUpgradePath, match=r"workers of v1\.28\.0 can't be upgraded to v1\.34\.4"):
        find_worker_steps(["v1.28.0"], "v1.33.0", "v1.34.4", ["v1.34.4"])


def one(name: str, version: str = "v1.30.0", *, upgrading: bool = False, deferred: bool = False) -> Group:
    return Group(name, version, upgrading=upgrading, deferred=deferred)


HERE = Observed("v1.31.0", Plane("v1.30.0"), [one("a"), one("b"), one("c")])
THERE = replace(HERE, plane=Plane("v1.31.0"), begun=True)


def test_what_is_new_has_the_version_of_the_topology_at_once() -> None:
    made = plan(Observed("v1.31.0", None, new=["a"]))
    assert (made.plane, made.groups, made.step, made.upgrading) == ("v1.31.0", {"a": "v1.31.0"}, "", False)


def test_the_control_plane_goes_first_and_workers_wait() -> None:
    made = plan(HERE)
    assert (made.plane, made.plane_moves, made.plane_waits) == ("v1.31.0", True, False)
    assert set(made.groups.values()) == {"v1.30.0"}
    assert (made.waiting, made.moving, made.step) == (["a", "b", "c"], [], "v1.31.0")


@pytest.mark.parametrize("state", [{"provisioning": True}, {"upgrading": True}])
def test_nobody_goes_while_the_control_plane_moves(state: dict[str, Any]) -> None:
    made = plan(replace(HERE, plane=Plane("v1.30.0", **state)))
    assert (made.plane, made.plane_waits, made.moving) == ("v1.30.0", True, [])
    made = plan(replace(THERE, plane=Plane("v1.31.0", **state)))
    assert (made.plane, made.plane_waits, made.waiting) == ("v1.31.0", False, ["a", "b", "c"])


@pytest.mark.parametrize(
    ("groups", "concurrency", "moving", "waiting"),
    [
        ([one("a"), one("b"), one("c")], 1, ["a"], ["b", "c"]),
        ([one("a"), one("b"), one("c")], 2, ["a", "b"], ["c"]),
        ([one("a", "v1.31.0", upgrading=True), one("b"), one("c")], 1, ["a"], ["b", "c"]),
        ([one("a", "v1.31.0", upgrading=True), one("b"), one("c")], 2, ["a", "b"], ["c"]),
        ([one("a", "v1.31.0"), one("b"), one("c")], 1, ["b"], ["c"]),
        ([one("a", deferred=True), one("b"), one("c")], 1, ["b"], ["a", "c"]),
        ([one("a"), one("b", deferred=True), one("c", deferred=True)], 9, ["a"], ["b", "c"]),
        ([one("a", "v1.31.0"), one("b", "v1.31.0")], 1, [], []),
    ],
)
def test_workers_go_in_order_and_not_too_many_at_a_time(
    groups: list[Group], concurrency: int, moving: list[str], waiting: list[str]
) -> None:
    made = plan(replace(THERE, groups=groups, concurrency=concurrency))
    assert (made.moving, made.waiting) == (moving, waiting)
    assert all(made.groups[name] == "v1.31.0" for name in moving)
    assert all(made.groups[name] == "v1.30.0" for name in waiting)


def test_the_control_plane_waits_for_workers_that_are_still_being_upgraded() -> None:
    made = plan(replace(HERE, groups=[one("a", upgrading=True), one("b")]))
    assert (made.plane, made.plane_waits, made.step) == ("v1.30.0", True, "")


def test_an_annotation_keeps_an_upgrade_from_beginning_but_not_from_going_on() -> None:
    held = replace(HERE, hooks=["before-upgrade.hook.cluster.cluster.x-k8s.io/check"])
    made = plan(held)
    assert (made.plane, made.plane_waits, made.step) == ("v1.30.0", True, "")
    assert made.blocked == ("before-upgrade.hook.cluster.cluster.x-k8s.io/check",)
    assert plan(replace(held, begun=True)).plane == "v1.31.0"


@pytest.mark.parametrize(
    ("plane", "withheld"),
    [
        (Plane("v1.31.0"), False),
        (Plane("v1.31.0", provisioning=True), False),
        (Plane("v1.31.0", upgrading=True), True),
        (Plane("v1.30.0"), True),
        (Plane("v1.30.0", provisioning=True), True),
    ],
)
def test_new_workers_are_made_when_the_control_plane_stands(plane: Plane, withheld: bool) -> None:
    made = plan(Observed("v1.31.0", plane, new=["n"]))
    assert (list(made.withheld) == ["n"], made.groups) == (withheld, {"n": "v1.31.0"})


def test_the_step_is_forgotten_when_all_are_there() -> None:
    assert plan(THERE).step == "v1.31.0"
    there = [one("a", "v1.31.0", upgrading=True)]
    assert plan(replace(THERE, groups=there)).step == "v1.31.0"
    made = plan(replace(THERE, groups=[one("a", "v1.31.0")]))
    assert (made.step, made.upgrading) == ("", False)


def test_a_deferred_group_keeps_the_upgrade_open() -> None:
    made = plan(replace(THERE, groups=[one("a", deferred=True)]))
    assert (made.deferred, made.step, made.upgrading) == (["a"], "v1.31.0", True)


def rolled(seen: Observed) -> list[tuple[str, ...]]:
    """Plays all parts until nothing is left to do; gives the versions after each loop."""
    told: list[tuple[str, ...]] = []
    for _ in range(40):
        made: Plan = plan(seen)
        assert seen.plane is not None
        now = (made.plane, *made.groups.values())
        if not told or told[-1] != now:
            told.append(now)
        if not made.upgrading and not made.step:
            return told
        # What was told is done when the next loop begins: first versions, then Machines.
        plane = Plane(made.plane, upgrading=made.plane != seen.plane.version)
        groups = [
            replace(g, version=made.groups[g.name], upgrading=made.groups[g.name] != g.version) for g in seen.groups
        ]
        seen = replace(seen, plane=plane, groups=groups, begun=bool(made.step))
    raise AssertionError(f"it never ends: {told}")


def test_a_long_way_is_gone_in_steps_in_which_workers_never_lag_too_far() -> None:
    told = rolled(Observed("v1.34.0", Plane("v1.28.0"), [one("a", "v1.28.0"), one("b", "v1.28.0")], known=ALL))
    planes = list(dict.fromkeys(versions[0] for versions in told))
    assert planes == ["v1.28.0", "v1.29.4", "v1.30.4", "v1.31.4", "v1.32.4", "v1.33.4", "v1.34.0"][1:]
    assert told[-1] == ("v1.34.0", "v1.34.0", "v1.34.0")
    assert ("v1.31.4", "v1.31.4", "v1.31.4") in told
    for plane, *workers in told:
        lags = [int(plane.split(".")[1]) - int(worker.split(".")[1]) for worker in workers]
        assert all(0 <= lag <= 3 for lag in lags), (plane, workers)


def test_a_chain_goes_on_when_nobody_remembers_that_it_began() -> None:
    seen = Observed("v1.34.0", Plane("v1.31.4"), [one("a", "v1.28.0")], known=ALL, begun=False)
    made = plan(seen)
    assert (made.groups, made.step) == ({"a": "v1.31.4"}, "v1.31.4")


def test_workers_that_are_at_the_step_wait_for_the_control_plane() -> None:
    seen = Observed("v1.34.0", Plane("v1.31.4"), [one("a", "v1.31.4"), one("b", "v1.28.0")], known=ALL, begun=True)
    made = plan(seen)
    assert (made.plane, made.plane_waits, made.waiting, made.moving) == ("v1.31.4", True, ["a"], ["b"])


# -- versions that somebody else has set -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("strayed", "machines"),
    [
        ("v1.31.0", ["v1.30.0"]),
        ("v1.29.0", ["v1.30.0", "v1.30.0"]),
        ("v1.20.0", ["v1.30.0"]),
        ("v1.30.9", []),
        ("v1.31.0", ["v1.30.0", "v1.31.0"]),
    ],
)
def test_a_group_with_another_version_than_the_topology_gave_it_gets_that_one_back(
    strayed: str, machines: list[str]
) -> None:
    group = Group("a", strayed, upgrading=bool(machines), machines=machines)
    made = plan(Observed("v1.30.0", Plane("v1.30.0"), [group]))
    assert made.groups == {"a": "v1.30.0"}
    assert made.waiting == []


def test_a_group_that_strays_while_the_control_plane_is_upgraded_gets_the_version_of_its_machines_back() -> None:
    group = Group("a", "v1.33.0", upgrading=True, machines=["v1.30.0"])
    made = plan(Observed("v1.31.0", Plane("v1.31.0", upgrading=True), [group]))
    assert made.groups == {"a": "v1.30.0"}
    assert made.waiting == ["a"]


def test_a_group_on_its_way_to_the_version_of_the_control_plane_goes_on() -> None:
    group = Group("a", "v1.31.0", upgrading=True, machines=["v1.30.0", "v1.31.0"])
    made = plan(Observed("v1.31.0", Plane("v1.31.0"), [group]))
    assert made.groups == {"a": "v1.31.0"}
    assert made.moving == ["a"]


def test_a_control_plane_that_was_given_a_newer_version_gets_its_own_back_before_a_machine_has_it() -> None:
    made = plan(Observed("v1.30.0", Plane("v1.31.0", upgrading=True, running=["v1.30.0"])))
    assert (made.plane, made.plane_waits, made.ahead) == ("v1.30.0", False, "")


def test_a_control_plane_whose_machines_have_a_newer_version_is_not_taken_back() -> None:
    made = plan(Observed("v1.30.0", Plane("v1.31.0", running=["v1.31.0"]), [one("a")]))
    assert (made.plane, made.plane_waits, made.ahead) == ("v1.31.0", True, "v1.31.0")
    assert made.groups == {"a": "v1.30.0"}
