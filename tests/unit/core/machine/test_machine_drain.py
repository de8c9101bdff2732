"""Which Pods leave a Node, in which order."""

from __future__ import annotations

from typing import Any

import pytest

from homeport.api.cluster.v1beta2 import (
    Cluster,
    Machine,
    MachineDrainRule,
    MachineDrainRuleDrainConfig,
    MachineDrainRuleMachineSelector,
    MachineDrainRulePodSelector,
    MachineDrainRuleSpec,
)
from homeport.api.meta import ObjectMeta, Unstructured
from homeport.client.protocol import Key
from homeport.core.machine import drain, volume
from homeport.core.machine.drain import DrainContext

NOW = 1_767_225_600.0  # 2026-01-01T00:00:00Z
DAEMON = [{"kind": "DaemonSet", "name": "ds", "controller": True}]


def pod(name: str = "p", phase: str = "Running", **meta: Any) -> Unstructured:
    return Unstructured(metadata={"name": name, "namespace": "a", **meta}, status={"phase": phase})


def rule(name: str, behavior: str, order: int | None = None, **pods: Any) -> MachineDrainRule:
    selectors = [MachineDrainRulePodSelector(**pods)] if pods else []
    spec = MachineDrainRuleSpec(drain=MachineDrainRuleDrainConfig(behavior=behavior, order=order), pods=selectors)
    return MachineDrainRule(metadata=ObjectMeta(name=name), spec=spec)


def labelled(**labels: str) -> dict[str, Any]:
    return {"matchLabels": labels}


@pytest.mark.parametrize(
    ("given", "around", "behavior", "order"),
    [
        (pod(), DrainContext(), "Drain", 0),
        (pod(ownerReferences=DAEMON), DrainContext(), "Skip", 0),
        (pod(ownerReferences=DAEMON), DrainContext(orphaned=frozenset({Key("a", "ds")})), "Drain", 0),
        (pod(phase="Failed", ownerReferences=DAEMON), DrainContext(), "Drain", 0),
        (pod(annotations={"kubernetes.io/config.mirror": ""}), DrainContext(), "Skip", 0),
        (pod(labels={"cluster.x-k8s.io/drain": "skip"}), DrainContext(), "Skip", 0),
        (pod(labels={"cluster.x-k8s.io/drain": "wait-completed"}), DrainContext(), "WaitCompleted", 0),
        (pod(labels={"cluster.x-k8s.io/drain": "WaitCompleted"}), DrainContext(), "WaitCompleted", 0),
        (pod(labels={"cluster.x-k8s.io/drain": "nonsense"}), DrainContext(), "Drain", 0),
        (pod(), DrainContext(rules=[rule("r", "Drain", 7)]), "Drain", 7),
        (pod(labels={"x": "y"}), DrainContext(rules=[rule("r", "Skip", selector=labelled(x="y"))]), "Skip", 0),
        (pod(labels={"x": "z"}), DrainContext(rules=[rule("r", "Skip", selector=labelled(x="y"))]), "Drain", 0),
        # Both selectors of an entry have to match.
        (
            pod(labels={"x": "y"}),
            DrainContext(
                rules=[rule("r", "Skip", selector=labelled(x="y"), namespace_selector=labelled(n="1"))],
                namespaces={"a": {"n": "2"}},
            ),
            "Drain",
            0,
        ),
        # The first rule that matches counts.
        (pod(), DrainContext(rules=[rule("a", "WaitCompleted"), rule("b", "Skip")]), "WaitCompleted", 0),
        # On a dead Node what was deleted a while ago is as good as gone, elsewhere it is not.
        (pod(deletionTimestamp="2025-12-31T23:59:58Z"), DrainContext(unreachable=True, now=NOW), "Skip", 0),
        (pod(deletionTimestamp="2026-01-01T00:00:00Z"), DrainContext(unreachable=True, now=NOW), "Drain", 0),
        (pod(deletionTimestamp="2025-12-31T23:00:00Z"), DrainContext(now=NOW), "Drain", 0),
    ],
)
def test_drain_behavior_of_a_pod(given: Unstructured, around: DrainContext, behavior: str, order: int) -> None:
    found = drain.judge(given, around)
    assert (found.behavior, found.order) == (behavior, order)


def names(pods: list[Unstructured]) -> list[str]:
    return [each.name for each in pods]


def test_the_lowest_order_goes_first_and_the_rest_waits() -> None:
    rules = [
        rule("first", "Drain", -5, selector=labelled(o="first")),
        rule("last", "Drain", 9, selector=labelled(o="last")),
    ]
    pods = [pod("c", labels={"o": "last"}), pod("b"), pod("a", labels={"o": "first"})]
    made = drain.plan(pods, DrainContext(rules=rules))
    assert names(made.evict) == ["a"]
    assert names(made.later) == ["b", "c"]


def test_pods_that_are_going_hold_those_of_a_higher_order() -> None:
    rules = [rule("first", "Drain", -5, selector=labelled(o="first"))]
    made = drain.plan(
        [pod("a", labels={"o": "first"}, deletionTimestamp="2026-01-01T00:00:00Z"), pod("b")],
        DrainContext(rules=rules),
    )
    assert (names(made.going), names(made.evict), names(made.later)) == (["a"], [], ["b"])
    assert not made.done


def test_what_was_left_to_complete_and_did_holds_nothing() -> None:
    label = {"cluster.x-k8s.io/drain": "wait-completed"}
    assert drain.plan([pod("job", "Succeeded", labels=label)], DrainContext()).done
    made = drain.plan([pod("job", labels=label)], DrainContext())
    assert names(made.finishing) == ["job"]
    assert drain.explain(made, {}) == "Pod a/job is left to complete"


def test_the_explanation_counts_what_it_does_not_name() -> None:
    pods = [pod(f"p{i}", deletionTimestamp="2026-01-01T00:00:00Z") for i in range(5)]
    made = drain.plan(pods, DrainContext())
    assert drain.explain(made, {}) == "Pods a/p0, a/p1, a/p2 and 2 more are shutting down"


def test_refusals_come_first() -> None:
    made = drain.plan([pod("x"), pod("y")], DrainContext())
    text = drain.explain(made, {"the budget b needs 2": [made.evict[0]]}, [made.evict[1]])
    assert text == "Pod a/x can't be evicted: the budget b needs 2; Pod a/y is shutting down"


def test_rules_are_chosen_by_machine_and_cluster_and_sorted_by_name() -> None:
    def for_(name: str, **selectors: Any) -> MachineDrainRule:
        made = rule(name, "Skip")
        made.spec.machines = [MachineDrainRuleMachineSelector(**selectors)]
        return made

    rules = [
        for_("z", selector=labelled(m="1")),
        rule("everywhere", "Skip"),
        for_("other", selector=labelled(m="2")),
        for_("both", selector=labelled(m="1"), cluster_selector=labelled(c="2")),
    ]
    machine = Machine(metadata=ObjectMeta(labels={"m": "1"}))
    cluster = Cluster(metadata=ObjectMeta(labels={"c": "1"}))
    assert [r.metadata.name for r in drain.matching_rules(rules, machine, cluster)] == ["everywhere", "z"]


# -- volumes ---------------------------------------------------------------------------------------------------------


def attachment(name: str, node: str = "n", *, attached: bool = True, volume: str = "pv") -> Unstructured:
    source: dict[str, Any] = {"persistentVolumeName": volume} if volume else {"inlineVolumeSpec": {}}
    return Unstructured(
        metadata={"name": name}, spec={"nodeName": node, "source": source}, status={"attached": attached}
    )


def persistent(name: str, handle: str = "", claim: str = "") -> Unstructured:
    spec: dict[str, Any] = {}
    if handle:
        spec["csi"] = {"driver": "d", "volumeHandle": handle}
    if claim:
        spec["claimRef"] = {"kind": "PersistentVolumeClaim", "namespace": "a", "name": claim}
    return Unstructured(metadata={"name": name}, spec=spec)


@pytest.mark.parametrize(
    ("reported", "attachments", "volumes", "staying", "expected"),
    [
        ([], [], [], set(), []),
        ([], [attachment("x", node="other")], [], set(), []),
        ([], [attachment("x", attached=False)], [], set(), []),
        ([], [attachment("x")], [persistent("pv", claim="data")], set(), ["claim a/data"]),
        ([], [attachment("x")], [persistent("pv", claim="data")], {"a/data"}, []),
        ([], [attachment("x")], [persistent("pv")], set(), ["volume pv"]),
        ([], [attachment("x")], [], set(), ["volume pv"]),
        ([], [attachment("x", volume="")], [], set(), ["volume VolumeAttachment x"]),
        (["kubernetes.io/csi/d^h"], [], [persistent("pv", "h", "data")], set(), ["claim a/data"]),
        (["kubernetes.io/csi/d^h"], [attachment("x")], [persistent("pv", "h", "data")], set(), ["claim a/data"]),
        (["old/style"], [], [], set(), ["volume old/style"]),
    ],
)
def test_volumes_to_wait_for(
    reported: list[str],
    attachments: list[Unstructured],
    volumes: list[Unstructured],
    staying: set[str],
    expected: list[str],
) -> None:
    node = {"metadata": {"name": "n"}, "status": {"volumesAttached": [{"name": each} for each in reported]}}
    found = volume.attached(node, attachments)
    assert volume.waiting(*found, volumes, staying) == expected
