"""The order of add-ons, as tables."""

from __future__ import annotations

import pytest

from homeport.addons.dependency import Peer, dependents, expected_first, find_cycle, reaches

CATALOGUE = {"metallb": frozenset({"cilium"}), "traefik": frozenset({"cilium", "metallb"})}


def before(name: str) -> frozenset[str]:
    return CATALOGUE.get(name, frozenset())


@pytest.mark.parametrize(
    ("graph", "start", "cycle"),
    [
        ({}, "a", ()),
        ({"a": ("b",), "b": ()}, "a", ()),
        ({"a": ("a",)}, "a", ("a", "a")),
        ({"a": ("b",), "b": ("c",), "c": ("a",)}, "a", ("a", "b", "c", "a")),
        ({"a": ("b", "c"), "b": ("d",), "c": ("a",), "d": ("a",)}, "a", ("a", "c", "a")),
        # A circle that it only leads into is reported on those that are in it.
        ({"a": ("b",), "b": ("c",), "c": ("b",)}, "a", ()),
    ],
)
def test_a_circle_is_found_from_those_in_it(
    graph: dict[str, tuple[str, ...]], start: str, cycle: tuple[str, ...]
) -> None:
    assert find_cycle(graph, start) == cycle


def test_reaching_ends_though_there_is_a_circle() -> None:
    graph = {"a": ("b",), "b": ("a",)}
    assert reaches(graph, "a", "b")
    assert not reaches(graph, "a", "c")


def test_what_is_usually_first_is_waited_for_if_the_cluster_has_it() -> None:
    me, net = Peer("lb", addon="metallb"), Peer("net", addon="cilium")
    assert expected_first(me, [me, net], before("metallb")) == [net]
    assert expected_first(me, [me], before("metallb")) == []
    ready = Peer("net", ready=True, addon="cilium")
    assert expected_first(me, [me, ready], before("metallb")) == []
    leaving = Peer("net", deleting=True, addon="cilium")
    assert expected_first(me, [me, leaving], before("metallb")) == []


def test_what_a_user_writes_goes_before_what_is_usual() -> None:
    me, net = Peer("lb", addon="metallb"), Peer("net", addon="cilium", depends_on=("lb",))
    assert expected_first(me, [me, net], before("metallb")) == []


def test_dependents_hold_a_removal_and_usual_ones_only_if_they_leave_too() -> None:
    net = Peer("net", deleting=True, addon="cilium")
    written = Peer("app", depends_on=("net",))
    stays, leaves = Peer("lb", addon="metallb"), Peer("lb", addon="metallb", deleting=True)
    assert dependents(net, [net, written, stays], before) == ([written], [])
    assert dependents(net, [net, leaves], before) == ([], [leaves])
    assert dependents(net, [net, stays], before) == ([], [])


def test_two_that_wait_for_each_other_by_custom_and_by_spec_are_not_stuck() -> None:
    """The network depends on the load balancer by its spec: it is removed first, though networks usually go last."""
    net = Peer("net", deleting=True, addon="cilium", depends_on=("lb",))
    lb = Peer("lb", deleting=True, addon="metallb")
    assert dependents(net, [net, lb], before) == ([], [])
    assert dependents(lb, [net, lb], before) == ([net], [])
