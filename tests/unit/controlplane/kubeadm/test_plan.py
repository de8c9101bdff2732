from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from homeport.controlplane.kubeadm.etcd.client import Member
from homeport.controlplane.kubeadm.observe.state import MachineState, Observed, Remediation, RemediationRule
from homeport.controlplane.kubeadm.plan.action import (
    Action,
    Create,
    Defer,
    Delete,
    ForgetRemediation,
    Hold,
    Recover,
    ReleaseHook,
    Remediate,
    RemoveMember,
)
from homeport.controlplane.kubeadm.plan.quorum import etcd_problem
from homeport.controlplane.kubeadm.plan.step import plan

NOW = 10_000.0


def machine(number: int, **changes: Any) -> MachineState:
    name = f"cp-{number}"
    return replace(MachineState(name, created=100.0 + number, node=f"n-{name}", member=f"n-{name}"), **changes)


def observed(count: int, *, replicas: int | None = None, **changes: Any) -> Observed:
    machines = [machine(number) for number in range(count)]
    members = [Member(number + 1, f"n-cp-{number}") for number in range(count)] or None
    made = Observed(
        NOW, replicas if replicas is not None else count, machines, initialized=bool(count), members=members
    )
    return replace(made, **changes)


def change(state: Observed, *numbers: int, **changes: Any) -> Observed:
    machines = [replace(each, **changes) if number in numbers else each for number, each in enumerate(state.machines)]
    return replace(state, machines=machines)


def only(actions: list[Action]) -> Action:
    assert len(actions) == 1, actions
    return actions[0]


def held(actions: list[Action]) -> Hold:
    found = actions[-1]
    assert isinstance(found, Hold), actions
    return found


STABLE: list[tuple[str, Observed, list[Action]]] = [
    ("nothing there yet", observed(0, replicas=3), [Create(first=True)]),
    ("as wanted", observed(3), []),
    ("one of three, healthy", observed(1, replicas=3), [Create()]),
    ("two of three, healthy", observed(2, replicas=3), [Create()]),
    ("too many", observed(4, replicas=3), [Delete("cp-0")]),
    ("outdated, one more is allowed", change(observed(3), 0, 1, 2, outdated=("v",)), [Create(rollout=True)]),
    (
        "outdated, the surge is there",
        change(observed(4, replicas=3), 0, 1, 2, outdated=("v",)),
        [Delete("cp-0", rollout=True)],
    ),
    (
        "outdated, no surge",
        change(observed(3, max_surge=0), 0, 1, 2, outdated=("v",)),
        [Delete("cp-0", rollout=True)],
    ),
    (
        "outdated, no surge, one is gone",
        change(observed(2, replicas=3, max_surge=0), 0, 1, outdated=("v",)),
        [Create(rollout=True)],
    ),
    (
        "the user's choice goes first",
        change(change(observed(4, replicas=3), 0, 1, outdated=("v",)), 1, marked_for_deletion=True),
        [Delete("cp-1", rollout=True)],
    ),
    (
        "the user's choice of one that is up to date",
        change(observed(4, replicas=3), 3, marked_for_deletion=True),
        [Delete("cp-3")],
    ),
    (
        "an outdated one that is ill goes before one that is well",
        change(
            change(observed(4, replicas=3), 0, 1, outdated=("v",)), 1, problems={"SchedulerPodHealthy": "restarting"}
        ),
        [Delete("cp-1", rollout=True)],
    ),
]


@pytest.mark.parametrize(("state", "expected"), [row[1:] for row in STABLE], ids=[row[0] for row in STABLE])
def test_one_step_at_a_time(state: Observed, expected: list[Action]) -> None:
    assert plan(state) == expected


BLOCKED: list[tuple[str, Callable[[Observed], Observed], str, set[str]]] = [
    ("no Node yet", lambda s: change(s, 1, node=""), "Node of Machine cp-1", {"components", "etcd"}),
    (
        "a component",
        lambda s: change(s, 0, problems={"SchedulerPodHealthy": "CrashLoopBackOff"}),
        "Machine cp-0: SchedulerPodHealthy: CrashLoopBackOff",
        {"components"},
    ),
    ("a member", lambda s: change(s, 1, etcd_problem="alarm NOSPACE"), "cp-1: alarm NOSPACE", {"etcd"}),
    ("an upgrade to come", lambda s: replace(s, pending_version="v1.31.0"), "upgrade to v1.31.0", {"topology"}),
    ("certificates", lambda s: replace(s, certificates=False), "certificates", {"certificates"}),
    ("an update in place", lambda s: change(s, 0, updating=True), "in place of Machine cp-0", {"components"}),
]


@pytest.mark.parametrize(("spoil", "said", "kinds"), [row[1:] for row in BLOCKED], ids=[row[0] for row in BLOCKED])
def test_no_machine_is_added_before_all_is_well(
    spoil: Callable[[Observed], Observed], said: str, kinds: set[str]
) -> None:
    hold = held(plan(spoil(observed(2, replicas=3))))
    assert said in hold.message
    assert hold.kinds == kinds


def test_a_machine_that_goes_is_not_asked_whether_it_is_well() -> None:
    state = change(observed(4, replicas=3), 0, outdated=("v",), problems={"APIServerPodHealthy": "gone"})
    assert plan(state) == [Delete("cp-0", rollout=True)]
    assert "cp-2" in held(plan(change(state, 2, etcd_problem="alarm NOSPACE"))).message


def test_missing_certificates_do_not_keep_machines_from_going() -> None:
    assert plan(observed(4, replicas=3, certificates=False)) == [Delete("cp-0")]


def test_a_control_plane_that_lost_all_machines_is_not_initialized_again() -> None:
    hold = held(plan(observed(0, replicas=3, initialized=True)))
    assert "restore an etcd backup" in hold.message


# -- failure domains ---------------------------------------------------------------------------------------------


def test_new_machines_go_where_the_fewest_are_up_to_date() -> None:
    state = observed(2, replicas=3, domains=("a", "b", "c"))
    state = change(change(state, 0, failure_domain="a"), 1, failure_domain="b")
    assert plan(state) == [Create("c")]
    state = change(
        change(change(observed(3, domains=("a", "b", "c")), 0, failure_domain="a"), 1, failure_domain="b"),
        2,
        failure_domain="c",
    )
    state = change(state, 0, 1, outdated=("v",))
    assert plan(state) == [Create("a", rollout=True)]


def test_the_oldest_of_the_fullest_domain_goes_first() -> None:
    state = observed(5, replicas=3, domains=("a", "b"))
    state = change(change(state, 0, 1, failure_domain="a"), 2, 3, 4, failure_domain="b")
    assert plan(state) == [Delete("cp-2")]


def test_a_machine_outside_all_domains_goes_before_others() -> None:
    state = observed(4, replicas=3, domains=("a", "b"))
    state = change(change(state, 0, 1, failure_domain="a"), 2, failure_domain="b")
    assert plan(change(state, 3, failure_domain="old")) == [Delete("cp-3")]


# -- leaving -----------------------------------------------------------------------------------------------------


def leaving(count: int = 3, number: int = 0, **changes: Any) -> Observed:
    said = {"deleting": True, "deleted": 50.0, "awaits_hook": True, "etcd_problem": "being deleted", **changes}
    return change(observed(count), number, **said)


def test_a_member_of_etcd_is_removed_before_its_machine_goes() -> None:
    assert plan(leaving()) == [ReleaseHook("cp-0", 1)]


def test_nothing_else_happens_while_a_machine_goes() -> None:
    state = change(leaving(awaits_hook=False), 1, 2, outdated=("v",))
    assert "being drained" in held(plan(state)).message


@pytest.mark.parametrize(("in_order", "expected"), [(True, Hold), (False, ReleaseHook)])
def test_other_hooks_go_first_where_the_kubelet_needs_its_own_api_server(in_order: bool, expected: type) -> None:
    state = replace(
        leaving(other_hooks=("pre-terminate.delete.hook.machine.cluster.x-k8s.io/backup",)), hooks_in_order=in_order
    )
    assert isinstance(only(plan(state)), expected)


def test_the_second_waits_until_the_first_is_gone() -> None:
    state = change(leaving(hook=False), 1, deleting=True, deleted=60.0, awaits_hook=True)
    assert "Machine cp-0" in held(plan(state)).message


def test_the_last_machine_may_go_as_it_is() -> None:
    assert plan(leaving(1)) == [ReleaseHook("cp-0")]


def test_no_member_goes_that_the_quorum_needs() -> None:
    state = change(leaving(), 1, etcd_problem="does not answer")
    hold = held(plan(state))
    assert hold.reason == "QuorumAtRisk"
    assert "n-cp-1" in hold.message
    assert "cp-0" in hold.message


def test_no_machine_goes_while_the_members_are_unknown() -> None:
    assert held(plan(replace(leaving(), members=None))).reason == "QuorumAtRisk"


def test_no_machine_goes_that_carries_the_last_healthy_control_plane() -> None:
    state = change(leaving(), 1, 2, problems={"APIServerPodHealthy": "CrashLoopBackOff"})
    assert "no other Machine has a healthy control plane" in held(plan(state)).message


def test_external_etcd_is_not_managed() -> None:
    state = replace(leaving(), etcd_managed=False, members=None)
    assert plan(state) == [ReleaseHook("cp-0")]


def test_a_member_that_is_gone_already_does_not_hold_its_machine() -> None:
    state = leaving()
    assert plan(replace(state, members=[each for each in state.members or () if each.id != 1])) == [ReleaseHook("cp-0")]


# -- members without a Machine -----------------------------------------------------------------------------------


def test_a_member_without_a_machine_is_removed_first() -> None:
    state = change(observed(3, replicas=5), 0, outdated=("v",))
    members = [*(state.members or ()), Member(9, "n-gone")]
    assert plan(replace(state, members=members, gone=frozenset({9}))) == [RemoveMember(9, "n-gone")]


def test_a_member_without_a_machine_stays_until_its_machine_is_proven_gone() -> None:
    """The Machine may be missing because this plane was restored from a backup that is older than it."""
    state = observed(3)
    members = [*(state.members or ()), Member(9, "n-newer"), Member(10, "", learner=True)]
    assert not any(isinstance(each, RemoveMember) for each in plan(replace(state, members=members)))


def test_members_without_a_machine_count_as_healthy_only_when_they_answer() -> None:
    state = change(observed(3, replicas=2), 0, etcd_problem="does not answer")
    members = [*(state.members or ()), Member(8, "n-x"), Member(9, "n-y")]
    silent = replace(state, members=members)
    assert "n-x (has no Machine and does not answer)" in etcd_problem(silent, removed="n-cp-1")
    assert etcd_problem(replace(silent, answering=frozenset({"n-x", "n-y"})), removed="n-cp-1") == ""


def test_it_may_belong_to_a_machine_that_has_no_node_yet() -> None:
    state = change(observed(3), 2, node="", member="")
    assert not any(isinstance(each, RemoveMember) for each in plan(state))


def test_it_stays_when_its_removal_could_cost_the_quorum() -> None:
    state = change(observed(3), 0, 1, etcd_problem="does not answer")
    members = [*(state.members or ()), Member(9, "n-gone")]
    hold = held(plan(replace(state, members=members, gone=frozenset({9}))))
    assert hold.reason == "QuorumAtRisk"
    assert "n-gone" in hold.message


def test_a_member_that_never_started_goes_though_it_is_a_learner() -> None:
    state = observed(3)
    members = [*(state.members or ()), Member(9, "", learner=True)]
    assert plan(replace(state, members=members, gone=frozenset({9}))) == [RemoveMember(9, "")]


# -- remediation -------------------------------------------------------------------------------------------------


def test_an_unhealthy_machine_is_replaced() -> None:
    state = change(observed(3), 1, unhealthy=True, etcd_problem="does not answer")
    assert plan(state) == [Remediate("cp-1", Remediation("cp-1", NOW))]


def test_the_most_broken_goes_first() -> None:
    state = change(change(observed(5), 1, unhealthy=True), 3, unhealthy=True, etcd_problem="alarm NOSPACE")
    assert plan(state) == [Remediate("cp-3", Remediation("cp-3", NOW))]
    assert plan(change(state, 1, marked_for_remediation=True)) == [Remediate("cp-1", Remediation("cp-1", NOW))]


REFUSED: list[tuple[str, Observed, str, str]] = [
    ("the only one", change(observed(1), 0, unhealthy=True), "CannotBeRemediated", "only control plane"),
    (
        "another comes up",
        change(change(observed(3), 0, unhealthy=True), 2, node="", member=""),
        "RemediationDeferred",
        "cp-2 to come up",
    ),
    ("members unknown", replace(change(observed(3), 0, unhealthy=True), members=None), "RemediationDeferred", "etcd"),
    (
        "the quorum",
        change(change(observed(3), 0, 1, etcd_problem="does not answer"), 0, unhealthy=True),
        "CannotBeRemediated",
        "n-cp-1",
    ),
    (
        "the last good one",
        change(change(observed(3), 1, 2, problems={"APIServerPodHealthy": "down"}), 0, unhealthy=True),
        "CannotBeRemediated",
        "no other Machine",
    ),
    (
        "an upgrade to come",
        replace(change(observed(3), 0, unhealthy=True), pending_version="v1.31.0"),
        "RemediationDeferred",
        "v1.31.0",
    ),
]


@pytest.mark.parametrize(("state", "reason", "said"), [row[1:] for row in REFUSED], ids=[row[0] for row in REFUSED])
def test_no_machine_is_replaced_at_a_risk(state: Observed, reason: str, said: str) -> None:
    found = plan(state)
    assert not any(isinstance(each, Remediate | Delete | ReleaseHook | RemoveMember) for each in found)
    defer = found[0]
    assert isinstance(defer, Defer)
    assert (defer.machine, defer.reason) == ("cp-0", reason)
    assert said in defer.message


def test_before_initialisation_the_only_machine_may_be_replaced() -> None:
    state = replace(change(observed(1), 0, unhealthy=True, node="", member=""), initialized=False, members=None)
    assert plan(state) == [Remediate("cp-0", Remediation("cp-0", NOW))]


RULE = RemediationRule(max_retry=2, retry_period=300.0, min_healthy_period=3600.0)
RETRIES: list[tuple[str, Remediation, Action | str]] = [
    ("soon after the last", Remediation("old", NOW - 100, 1), "RemediationDeferred"),
    ("after the retry period", Remediation("old", NOW - 400, 1), Remediate("cp-0", Remediation("cp-0", NOW, 2))),
    ("too often", Remediation("old", NOW - 400, 2), "CannotBeRemediated"),
    ("healthy for long", Remediation("old", NOW - 4000, 2), Remediate("cp-0", Remediation("cp-0", NOW, 0))),
]


@pytest.mark.parametrize(("last", "expected"), [row[1:] for row in RETRIES], ids=[row[0] for row in RETRIES])
def test_retries_are_counted(last: Remediation, expected: Action | str) -> None:
    state = change(observed(3, rule=RULE), 0, unhealthy=True, remediation=last)
    found = plan(state)[0]
    if isinstance(expected, str):
        assert isinstance(found, Defer)
        assert found.reason == expected
    else:
        assert found == expected


def test_a_replacement_is_made_though_another_machine_is_ill() -> None:
    running = Remediation("cp-9", NOW - 10)
    state = change(observed(4, replicas=5, in_progress=running), 3, etcd_problem="alarm NOSPACE")
    assert plan(state) == [Create(remediation=running)]
    worse = change(observed(2, replicas=3, in_progress=running), 1, etcd_problem="alarm NOSPACE")
    assert "etcd" in held(plan(worse)).kinds


def test_an_announced_remediation_is_finished_after_a_restart() -> None:
    running = Remediation("cp-1", NOW - 10, 1)
    state = change(observed(3, in_progress=running), 1, unhealthy=True)
    assert plan(state) == [Remediate("cp-1", running, recorded=True)]


def test_a_second_waits_for_the_first() -> None:
    state = change(observed(4, replicas=5, in_progress=Remediation("cp-9", NOW - 10)), 0, unhealthy=True)
    assert not any(isinstance(each, Remediate) for each in plan(state))


@pytest.mark.parametrize(
    "state",
    [
        change(observed(3, in_progress=Remediation("cp-9", NOW)), 2, remediation=Remediation("cp-9", NOW)),
        observed(3, in_progress=Remediation("cp-9", NOW)),
        observed(3, in_progress=Remediation("cp-1", NOW)),
    ],
    ids=["the replacement is there", "none is needed", "it recovered"],
)
def test_a_remediation_that_is_over_is_forgotten(state: Observed) -> None:
    assert plan(state) == [ForgetRemediation()]


def test_a_machine_that_recovers_is_no_longer_to_be_replaced() -> None:
    assert plan(change(observed(3), 1, recovered=True)) == [Recover("cp-1")]


def test_remediation_data_survives_being_written() -> None:
    data = Remediation("cp-1", 1_767_225_600.0, 3)
    assert Remediation.parse(data.render()) == data
    assert Remediation.parse("not json") is None
    assert Remediation.parse('{"machine":"m","timestamp":"2026-01-01T00:00:00Z"}') == Remediation("m", 1_767_225_600.0)


# -- quorum, exhaustively ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("count", [1, 2, 3, 4, 5])
def test_no_plan_ever_leaves_fewer_healthy_voters_than_the_quorum(count: int) -> None:
    for sick in range(2**count):
        ill = [number for number in range(count) if sick >> number & 1]
        for number in range(count):
            for changes in ({"unhealthy": True}, {"deleting": True, "awaits_hook": True}, {"outdated": ("v",)}):
                state = change(change(observed(count), *ill, etcd_problem="does not answer"), number, **changes)
                for action in plan(state):
                    if isinstance(action, Remediate | Delete | ReleaseHook) and count > 1:
                        left = [each for each in range(count) if f"cp-{each}" != action.machine]
                        well = [each for each in left if each not in ill]
                        assert len(well) >= len(left) // 2 + 1, (action, ill)


# -- Machines that never joined --------------------------------------------------------------------------------------


def unjoined(count: int, number: int, *, replicas: int = 3) -> Observed:
    """`count` Machines of which one is outdated and has neither a Node nor a member."""
    state = change(observed(count, replicas=replicas), number, node="", member="", outdated=("v",))
    return replace(state, members=[each for each in state.members or () if each.name != f"n-cp-{number}"])


def test_an_outdated_machine_that_never_joined_goes_before_another_one_comes() -> None:
    assert plan(unjoined(3, 2)) == [Delete("cp-2", rollout=True)]
    assert plan(change(unjoined(4, 3), 0, 1, 2, outdated=("v",))) == [Delete("cp-3", rollout=True)]


def test_two_that_never_joined_do_not_wait_for_each_other() -> None:
    state = change(unjoined(3, 2), 1, node="", member="", outdated=("v",))
    assert plan(replace(state, members=[Member(1, "n-cp-0")])) == [Delete("cp-2", rollout=True)]


def test_the_machine_that_initialises_the_cluster_stays() -> None:
    state = change(observed(1, initialized=False, members=None), 0, node="", member="", outdated=("v",))
    assert "cp-0" in held(plan(state)).message


def test_one_whose_member_may_be_there_is_waited_for() -> None:
    state = unjoined(3, 2)
    assert "cp-2" in held(plan(replace(state, members=[*(state.members or ()), Member(9, "n-cp-2")]))).message


def test_the_member_of_a_machine_without_a_node_goes_before_the_machine() -> None:
    state = change(leaving(2, 1), 1, node="", member="")
    assert plan(state) == [ReleaseHook("cp-1", 2)]
