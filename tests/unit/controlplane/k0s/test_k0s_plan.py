"""The next step of a k0s control plane, as a table: what is observed, and what is done about it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from homeport.controlplane.k0s.action import Action, Create, Defer, Delete, Hold, Leave, Release, Upgrade
from homeport.controlplane.k0s.observed import MachineState, MemberState, Observed, PlanState
from homeport.controlplane.k0s.plan import plan
from homeport.controlplane.k0s.quorum import etcd_problem

NEW, OLD = "v1.34.1+k0s.0", "v1.33.4+k0s.0"


def machine(name: str, **more: Any) -> MachineState:
    given: dict[str, Any] = {
        "name": name,
        "created": float(ord(name)),
        "node": True,
        "member": name,
        "version": NEW,
        **more,
    }
    return MachineState(**given)


def leaving(name: str, **more: Any) -> MachineState:
    return machine(name, deleting=True, deleted=1.0, awaits_hook=True, **more)


def joining(name: str, **more: Any) -> MachineState:
    return machine(name, node=False, member="", problem="k0s does not report it as a controller", **more)


def observed(*machines: MachineState, replicas: int = 3, **more: Any) -> Observed:
    members = tuple(MemberState(each.member) for each in machines if each.member)
    given: dict[str, Any] = {
        "now": 1000.0,
        "replicas": replicas,
        "version": NEW,
        "machines": machines,
        "initialized": True,
        "members": members,
        **more,
    }
    return Observed(**given)


A, B, C = machine("a"), machine("b"), machine("c")
ILL = machine("c", problem="its infrastructure is not ready", unhealthy=True)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        # -- scale
        (observed(initialized=False, down="no connection"), Create(first=True)),
        (observed(joining("a"), initialized=False, down="no connection"), "WaitingForMachine"),
        (observed(A), Create()),
        (observed(A, joining("b")), "WaitingForMachine"),
        (observed(A, B), Create()),
        (observed(A, B, C), None),
        (observed(A, B, C, down="no answer"), "WorkloadClusterUnreachable"),
        (observed(A, domains=["x", "y"]), Create("x")),
        (observed(machine("a", failure_domain="x"), domains=["x", "y"]), Create("y")),
        (observed(A, B, ILL, replicas=5), Delete("c", "it is unhealthy", remediation=True)),
        (observed(A, B, replace(ILL, unhealthy=False), replicas=5), "QuorumAtRisk"),
        (observed(A, B, C, replicas=1), Delete("a", "the control plane is scaled down")),
        (
            observed(A, B, machine("c", marked_for_deletion=True), replicas=1),
            Delete("c", "the control plane is scaled down"),
        ),
        (observed(), "AllMachinesLost"),
        # -- leaving
        (observed(leaving("a"), B, C), Leave("a", "a")),
        (observed(replace(leaving("a"), awaits_hook=False), B, C), "WaitingForMachineDeletion"),
        (observed(replace(leaving("a"), hook=False), B, C), "WaitingForMachineDeletion"),
        (observed(replace(leaving("a"), other_hooks=("x",)), B, C), "WaitingForMachineDeletion"),
        (
            observed(leaving("a"), B, C, members=(MemberState("a", leave=True), MemberState("b"), MemberState("c"))),
            "WaitingForEtcdMemberToLeave",
        ),
        (
            observed(
                replace(leaving("a"), member=""),
                B,
                C,
                members=(MemberState("a", joined=False), MemberState("b"), MemberState("c")),
            ),
            Release("a"),
        ),
        (observed(leaving("a"), B, replace(ILL, unhealthy=False)), "QuorumAtRisk"),
        (observed(leaving("a"), B, C, down="no answer"), "QuorumAtRisk"),
        (observed(replace(leaving("a"), member=""), B, C, members=()), "QuorumAtRisk"),
        (observed(leaving("a")), Release("a")),
        (observed(leaving("a"), B, C, etcd=False), Release("a")),
        # -- remediation
        (observed(A, B, ILL), Delete("c", "it is unhealthy", remediation=True)),
        (observed(replace(ILL, name="a", member="a"), replicas=1), Defer("a", "it is the only control plane Machine")),
        (observed(A, replace(ILL, name="b", member="b"), ILL), Defer("b", "")),
        (observed(A, joining("b"), ILL), Defer("c", "waiting for Machine b to come up first")),
        (observed(joining("a", unhealthy=True), initialized=False), Delete("a", "it is unhealthy", remediation=True)),
        (observed(A, B, joining("c", unhealthy=True)), Delete("c", "it is unhealthy", remediation=True)),
        # -- replacement
        (observed(machine("a", outdated=("x",)), B, C), Create()),
        (observed(machine("a", outdated=("x",)), B, C, machine("d")), Delete("a", "it is replaced by another")),
        (observed(machine("a", behind=True, version=OLD), B, C, strategy="Recreate"), Create()),
        (
            observed(machine("a", behind=True, version=OLD), B, C, strategy="RecreateDeleteFirst"),
            Delete("a", "it is replaced by another"),
        ),
        (
            observed(
                machine("a", behind=True, version=OLD), B, replace(ILL, unhealthy=False), strategy="RecreateDeleteFirst"
            ),
            "QuorumAtRisk",
        ),
        (observed(A, B, joining("c", outdated=("x",))), Delete("c", "it has not joined, and would be replaced")),
        (observed(A, B, C, unsafe="one minor version at a time"), "UnsafeChange"),
        (observed(A, B, unreadable="Machine x can't be read"), "UnreadableObjects"),
        # -- upgrades in place
        (observed(machine("a", behind=True, version=OLD), B, C), Upgrade(("a",))),
        (
            observed(machine("a", behind=True), B, C, plan=PlanState(NEW, "Schedulable", 990.0)),
            "Updating",
        ),
        (
            observed(machine("a", behind=True), B, C, plan=PlanState("v1.34.0+k0s.0", "Schedulable", 990.0)),
            Upgrade(("a",), replace=True),
        ),
        (observed(machine("a", behind=True), B, C, plan=PlanState(NEW, "ApplyFailed", 990.0)), "PlanFailed"),
        (
            observed(machine("a", behind=True), B, C, plan=PlanState(NEW, "ApplyFailed", 100.0)),
            Upgrade(("a",), replace=True),
        ),
        (observed(machine("a", behind=True), B, C, plan=PlanState(NEW, "Completed", 990.0)), "Updating"),
        (observed(machine("a", behind=True), B, C, plan=PlanState(OLD, "", 0.0, ours=False)), "PlanFailed"),
        (observed(machine("a", behind=True), B, replace(ILL, unhealthy=False)), "QuorumAtRisk"),
        (observed(machine("a", ahead=True, version="v1.35.0+k0s.0"), B, C), None),
    ],
)
def test_the_next_step(given: Observed, expected: Action | str | None) -> None:
    found = plan(given)
    if isinstance(expected, str):
        assert isinstance(found, Hold)
        assert found.reason == expected, found
    elif isinstance(expected, Defer) and not expected.message:
        assert isinstance(found, Defer)
        assert found.machine == expected.machine
    else:
        assert found == expected


def test_no_step_of_any_state_takes_the_quorum() -> None:
    """All states of up to five Machines, each well, ill, joining or leaving."""
    kinds = (
        lambda name: machine(name),
        lambda name: machine(name, problem="ill"),
        lambda name: machine(name, problem="ill", unhealthy=True),
        lambda name: machine(name, outdated=("x",)),
        lambda name: leaving(name),
        lambda name: joining(name),
    )
    checked = 0
    for number in range(len(kinds) ** 4):
        picked = []
        for name in "abcd":
            number, which = divmod(number, len(kinds))
            picked.append(kinds[which](name))
        for replicas in (1, 3, 5):
            given = observed(*picked, replicas=replicas)
            found = plan(given)
            if isinstance(found, Leave):
                assert _survives(given, found.member), (given, found)
                checked += 1
            if isinstance(found, Delete):
                target = next(each for each in picked if each.name == found.machine)
                assert not target.member or _survives(given, target.member), (given, found)
                checked += 1
    assert checked > 500


def _survives(given: Observed, member: str) -> bool:
    rest = [each for each in given.machines if each.member and each.member != member]
    return sum(1 for each in rest if each.healthy) >= len(rest) // 2 + 1


def test_a_member_without_a_machine_counts_as_unhealthy() -> None:
    given = observed(A, B, members=(MemberState("a"), MemberState("b"), MemberState("x")))
    assert "x (has no Machine)" in etcd_problem(given, removed="a")
    assert etcd_problem(given) == ""
