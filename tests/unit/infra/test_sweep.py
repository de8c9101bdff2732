"""Which machines without objects may be removed: those that are proven to be left over, and no other."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from homeport.api.meta import Unstructured
from homeport.infra.orphan.record import Answer, Deletion, Found, Request, parse_deletions, render_deletions
from homeport.infra.orphan.sweep import PATIENCE_SECONDS, Evidence, Orphan, Sweep, judge, orphans_of
from homeport.infra.orphan.witness import Role, Statement, role_of
from homeport.infra.protocol import Owned

LOST = Owned("id-1", "lost", "gone", "cluster", ("10.0.0.5",), "on")
DELETED = {"gone": Deletion(100.0)}
DELETED_PLANE = {"gone": Deletion(100.0, control_plane=True)}


@pytest.mark.parametrize(
    ("owned", "uids", "ids"),
    [
        (Owned("id-1", "a", "known", "cluster"), {"known"}, set()),
        (Owned("id-1", "a", "moved", "cluster"), set(), {"id-1"}),
        (Owned("id-1", "a", "gone", "another"), set(), set()),
        (Owned("id-1", "a", ""), set(), set()),
    ],
)
def test_what_an_object_accounts_for_or_another_cluster_marked_is_no_orphan(
    owned: Owned, uids: set[str], ids: set[str]
) -> None:
    assert orphans_of([owned], "cluster", frozenset(uids), frozenset(ids)) == []


def test_a_copy_of_a_machine_whose_object_was_deleted_is_kept() -> None:
    copy = Owned("id-2", "copy", "gone", "cluster", ("10.0.0.6",), "on")
    known = Evidence({"gone": Deletion(100.0, id="id-1")})
    original, other = judge([LOST, copy], known)
    assert original == Orphan(LOST)
    assert "a copy that a user made" in other.kept
    # What the machine left behind has an id of its own, and upstream's provider IDs end in a name.
    assert judge([replace(copy, remains=True)], known)[0].kept == ""
    assert judge([LOST], Evidence({"gone": Deletion(100.0, id="lost")})) == [Orphan(LOST)]


def test_a_machine_whose_object_was_deleted_and_that_the_cluster_does_not_know_may_go() -> None:
    assert judge([LOST], Evidence(DELETED)) == [Orphan(LOST)]
    assert judge([LOST], Evidence(DELETED_PLANE, members=frozenset({"other", "10.0.0.6"}))) == [Orphan(LOST)]


@pytest.mark.parametrize(
    ("evidence", "words"),
    [
        (Evidence(), "no record that its object was deleted"),
        (Evidence(DELETED, Statement("it is down")), "does not report whether it uses the machine: it is down"),
        (Evidence(DELETED, Statement(roles={"id-1": Role("lost")})), "it is Node lost of the workload cluster"),
        (Evidence(DELETED, Statement(roles={"id-1": Role(etcd=True)})), "it runs etcd of the workload cluster"),
        (Evidence(DELETED_PLANE), "the etcd members of the workload cluster have not been checked"),
        (Evidence(DELETED_PLANE, members=frozenset({"lost"})), "is a member of etcd"),
        (Evidence(DELETED_PLANE, members=frozenset({"10.0.0.5"})), "is a member of etcd"),
        (Evidence(DELETED, missing=("other",)), "machine other of the cluster is missing"),
    ],
)
def test_a_machine_that_may_be_in_use_is_kept(evidence: Evidence, words: str) -> None:
    (found,) = judge([LOST], evidence)
    assert words in found.kept
    assert Sweep().ripe([found], 10 * PATIENCE_SECONDS) == []


def test_one_machine_in_doubt_keeps_all_the_others() -> None:
    other = Owned("id-2", "newer", "never-seen", "cluster")
    proven, doubtful = judge([LOST, other], Evidence(DELETED))
    assert proven.kept == "machine newer must be adopted or removed first"
    assert "no record" in doubtful.kept


def test_proof_must_hold_for_a_while_and_without_interruption() -> None:
    sweep, proven = Sweep(), Orphan(LOST)
    assert sweep.ripe([proven], 0.0) == []
    assert sweep.ripe([proven], PATIENCE_SECONDS - 1) == []
    assert sweep.ripe([proven], PATIENCE_SECONDS) == [proven]
    sweep = Sweep()
    sweep.ripe([proven], 0.0)
    sweep.ripe([Orphan(LOST, "the cluster is silent")], 300.0)
    assert sweep.ripe([proven], PATIENCE_SECONDS + 1) == []
    assert sweep.news([proven]) == [proven]
    assert sweep.news([proven]) == []


def _node(**parts: Any) -> Unstructured:
    base: dict[str, Any] = {"metadata": {"name": "another"}, "spec": {}, "status": {}}
    return Unstructured({key: {**value, **parts.get(key, {})} for key, value in base.items()})


@pytest.mark.parametrize(
    "node",
    [
        _node(spec={"providerID": "nutanix://ID-1"}),
        _node(status={"nodeInfo": {"systemUUID": "ID-1"}}),
        _node(metadata={"name": "lost"}),
        _node(status={"addresses": [{"type": "InternalIP", "address": "10.0.0.5"}]}),
    ],
)
def test_a_node_is_recognised_by_any_of_its_traits(node: Unstructured) -> None:
    found = role_of(LOST, [node], [])
    assert found is not None
    assert found.node == node.name


def test_a_machine_that_runs_etcd_without_a_node_is_recognised() -> None:
    pod = Unstructured({"metadata": {"name": "etcd-x"}, "spec": {"nodeName": "x"}, "status": {"hostIP": "10.0.0.5"}})
    assert role_of(LOST, [], [pod]) == Role(etcd=True)
    assert role_of(LOST, [_node()], []) is None


def test_records_survive_a_round_trip_and_what_is_damaged_counts_as_not_recorded() -> None:
    text = render_deletions(DELETED_PLANE)
    assert text is not None
    assert parse_deletions({"infra.homeport.dev/deleted-machines": text}) == DELETED_PLANE
    assert render_deletions({}) is None
    for damaged in ("", "{", "[]", '{"gone": 1}', '{"gone": {"time": "soon"}}'):
        assert parse_deletions({"infra.homeport.dev/deleted-machines": damaged}) == {}
    answer = Answer(
        "7", (Found(Owned("i", "n", "u", "", ("10.0.0.1",), "on"), Role("n", True, True, "v1", "p"), "why"),)
    )
    assert Answer.parse({"infra.homeport.dev/orphans": answer.render()}) == answer
    request = Request("7", ("i",), True)
    assert Request.parse({"infra.homeport.dev/orphans-request": request.render()}) == request
    assert Request.parse({"infra.homeport.dev/orphans-request": '{"id": "7", "force": "yes"}'}) == Request("7")
