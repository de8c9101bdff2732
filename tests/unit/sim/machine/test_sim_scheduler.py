"""Which node takes a Pod, and what is said when none does."""

from __future__ import annotations

from typing import Any

import pytest

from homeport.sim.machine.workload.pod.load import Load, requests
from homeport.sim.machine.workload.pod.scheduler import why_not


def node(*, cpu: str = "4", memory: str = "8Gi", pods: str = "110", **spec: Any) -> dict[str, Any]:
    amounts = {"cpu": cpu, "memory": memory, "pods": pods}
    labels = {"zone": "a", "size": "4"}
    return {"metadata": {"name": "n", "labels": labels}, "spec": spec, "status": {"allocatable": amounts}}


def pod(cpu: str = "", memory: str = "", **spec: Any) -> dict[str, Any]:
    asked = {name: amount for name, amount in (("cpu", cpu), ("memory", memory)) if amount}
    return {"metadata": {"name": "p"}, "spec": {"containers": [{"resources": {"requests": asked}}], **spec}}


def refused(found: dict[str, Any], at: dict[str, Any], *others: dict[str, Any]) -> str:
    load = Load.of(at)
    for each in others:
        load.take(each)
    return why_not(found, at, load)


def affine(operator: str, key: str, *values: str, fields: bool = False) -> dict[str, Any]:
    what = "matchFields" if fields else "matchExpressions"
    terms = [{what: [{"key": key, "operator": operator, "values": list(values)}]}]
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    return pod(affinity={"nodeAffinity": required})


@pytest.mark.parametrize(
    ("found", "others", "why"),
    [
        (pod("4"), [], ""),
        (pod("4001m"), [], "Insufficient cpu"),
        (pod("2"), [pod("2500m")], "Insufficient cpu"),
        (pod("1", "8Gi"), [], ""),
        (pod("1", "8Gi"), [pod("", "1")], "Insufficient memory"),
        (pod(), [pod()] * 110, "Too many pods"),
        (pod(nodeSelector={"zone": "a"}), [], ""),
        (pod(nodeSelector={"zone": "b"}), [], "node(s) didn't match Pod's node affinity/selector"),
    ],
)
def test_a_node_takes_what_it_has_room_for(found: dict[str, Any], others: list[dict[str, Any]], why: str) -> None:
    assert refused(found, node(), *others) == why


def test_what_a_node_does_not_have_at_all_is_lacking() -> None:
    wants = {"metadata": {"name": "p"}, "spec": {"containers": [{"resources": {"limits": {"nvidia.com/gpu": "1"}}}]}}
    assert refused(wants, node()) == "Insufficient nvidia.com/gpu"


def test_taints_and_cordons_keep_pods_away() -> None:
    tainted = node(taints=[{"key": "k", "effect": "NoSchedule"}])
    assert refused(pod(), tainted) == "node(s) had untolerated taint(s)"
    assert refused(pod(tolerations=[{"operator": "Exists"}]), tainted) == ""
    assert refused(pod(), node(unschedulable=True)) == "node(s) were unschedulable"


@pytest.mark.parametrize(
    ("found", "fits"),
    [
        (affine("In", "zone", "a", "b"), True),
        (affine("In", "zone", "b"), False),
        (affine("NotIn", "zone", "a"), False),
        (affine("NotIn", "other", "a"), True),
        (affine("Exists", "zone"), True),
        (affine("DoesNotExist", "zone"), False),
        (affine("Gt", "size", "3"), True),
        (affine("Lt", "size", "4"), False),
        (affine("Gt", "zone", "3"), False),
        (affine("In", "metadata.name", "n", fields=True), True),
        (affine("In", "metadata.name", "m", fields=True), False),
    ],
)
def test_affinity_that_is_required_decides(found: dict[str, Any], fits: bool) -> None:
    assert (refused(found, node()) == "") is fits


def test_containers_for_the_beginning_count_one_by_one() -> None:
    spec = {
        "containers": [{"resources": {"requests": {"cpu": "1"}}}, {"resources": {"limits": {"cpu": "500m"}}}],
        "initContainers": [{"resources": {"requests": {"cpu": "2"}}}, {"resources": {"requests": {"cpu": "1"}}}],
        "overhead": {"memory": "1Mi"},
    }
    assert {name: str(amount) for name, amount in requests({"spec": spec}).items()} == {"cpu": "2", "memory": "1048576"}
