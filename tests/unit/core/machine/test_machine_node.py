"""What a Machine says about its Node."""

from __future__ import annotations

import re
from typing import Any

import pytest

from homeport.api.cluster.v1beta2 import Machine, MachineSpec, MachineTaint
from homeport.api.meta import ObjectMeta, OwnerReference, Unstructured
from homeport.core.machine.node import Propagation, managed_labels, node_patch
from homeport.machinery.patch import merge_patch

OURS = {
    "cluster.x-k8s.io/cluster-name": "c",
    "cluster.x-k8s.io/cluster-namespace": "ns",
    "cluster.x-k8s.io/machine": "m",
    "cluster.x-k8s.io/labels-from-machine": "",
    "cluster.x-k8s.io/annotations-from-machine": "",
    "cluster.x-k8s.io/taints-from-machine": "",
}


def machine(*taints: MachineTaint, **meta: Any) -> Machine:
    return Machine(
        metadata=ObjectMeta(name="m", namespace="ns", **meta), spec=MachineSpec(cluster_name="c", taints=list(taints))
    )


def node(taints: list[dict[str, str]] | None = None, **meta: Any) -> Unstructured:
    annotations = {**OURS, **meta.pop("annotations", {})}
    spec = {"taints": taints} if taints else {}
    return Unstructured(metadata={"name": "n", "resourceVersion": "5", "annotations": annotations, **meta}, spec=spec)


@pytest.mark.parametrize(
    ("key", "goes"),
    [
        ("node-role.kubernetes.io/worker", True),
        ("sub.node-role.kubernetes.io/worker", False),
        ("node-restriction.kubernetes.io/x", True),
        ("team.node-restriction.kubernetes.io/x", True),
        ("node.cluster.x-k8s.io/x", True),
        ("a.node.cluster.x-k8s.io/x", True),
        ("notnode.cluster.x-k8s.io/x", False),
        ("cluster.x-k8s.io/cluster-name", False),
        ("plain", False),
    ],
)
def test_labels_go_to_nodes_by_domain(key: str, goes: bool) -> None:
    assert (key in managed_labels({key: "v"})) is goes


def test_further_labels_go_by_pattern() -> None:
    assert managed_labels({"zone.example.com/a": "1", "b": "2"}, [re.compile(r"^zone\.")]) == {
        "zone.example.com/a": "1"
    }


def test_a_node_that_says_it_all_is_not_written() -> None:
    assert node_patch(node(), machine()) is None


def test_a_new_node_gets_everything_in_one_patch() -> None:
    fresh = Unstructured(
        metadata={"name": "n", "resourceVersion": "5"},
        spec={"taints": [{"key": "node.cluster.x-k8s.io/uninitialized", "effect": "NoSchedule"}]},
    )
    owner = OwnerReference(api_version="x/v1", kind="MachineSet", name="s", uid="u", controller=True)
    patch = node_patch(fresh, machine(labels={"node.cluster.x-k8s.io/a": "1"}, owner_references=[owner]))
    assert patch is not None
    assert patch["metadata"]["resourceVersion"] == "5"
    assert patch["metadata"]["labels"] == {"node.cluster.x-k8s.io/a": "1"}
    assert patch["metadata"]["annotations"]["cluster.x-k8s.io/owner-kind"] == "MachineSet"
    assert patch["metadata"]["annotations"]["cluster.x-k8s.io/labels-from-machine"] == "node.cluster.x-k8s.io/a"
    assert patch["spec"] == {"taints": None}
    after = Unstructured(merge_patch(dict(fresh), patch))
    assert node_patch(after, machine(labels={"node.cluster.x-k8s.io/a": "1"}, owner_references=[owner])) is None


def test_what_the_machine_dropped_is_dropped_and_what_others_set_stays() -> None:
    old = node(
        labels={"node.cluster.x-k8s.io/a": "1", "own": "x"},
        annotations={"cluster.x-k8s.io/labels-from-machine": "node.cluster.x-k8s.io/a", "mine": "y"},
    )
    patch = node_patch(old, machine())
    assert patch is not None
    assert patch["metadata"]["labels"] == {"node.cluster.x-k8s.io/a": None}
    assert patch["metadata"]["annotations"] == {"cluster.x-k8s.io/labels-from-machine": ""}


def always(key: str, value: str = "") -> MachineTaint:
    return MachineTaint(key=key, effect="NoSchedule", value=value, propagation="Always")


def once(key: str) -> MachineTaint:
    return MachineTaint(key=key, effect="NoSchedule", propagation="OnInitialization")


def taint(key: str, value: str = "") -> dict[str, str]:
    return {"key": key, "effect": "NoSchedule", **({"value": value} if value else {})}


@pytest.mark.parametrize(
    ("before", "tracked", "wanted", "after", "tracked_after"),
    [
        ([], None, [always("a"), once("b")], [taint("a"), taint("b")], "a:NoSchedule"),
        ([taint("a", "1")], "a:NoSchedule", [always("a", "2")], [taint("a", "2")], "a:NoSchedule"),
        ([taint("a"), taint("x")], "a:NoSchedule", [], [taint("x")], ""),
        # Given when the Node was new, removed since by somebody: that stands.
        ([], "", [once("b")], [], ""),
        # From always to once: it stays and is no longer followed.
        ([taint("a")], "a:NoSchedule", [once("a")], [taint("a")], ""),
    ],
)
def test_taints_follow_the_machine(
    before: list[dict[str, str]],
    tracked: str | None,
    wanted: list[MachineTaint],
    after: list[dict[str, str]],
    tracked_after: str,
) -> None:
    given = node(before, annotations={"cluster.x-k8s.io/taints-from-machine": tracked} if tracked is not None else {})
    if tracked is None:
        del given.metadata["annotations"]["cluster.x-k8s.io/taints-from-machine"]
    patch = node_patch(given, machine(*wanted)) or {}
    merged = merge_patch(dict(given), patch)
    assert (merged["spec"].get("taints") or []) == after
    assert merged["metadata"]["annotations"]["cluster.x-k8s.io/taints-from-machine"] == tracked_after


def test_nodes_of_an_older_revision_are_better_left_alone() -> None:
    patch = node_patch(node(), machine(), outdated=True)
    assert patch is not None
    marked = patch["spec"]["taints"]
    assert marked == [{"key": "node.cluster.x-k8s.io/outdated-revision", "effect": "PreferNoSchedule"}]
    patch = node_patch(node(marked), machine())
    assert patch is not None
    assert patch["spec"] == {"taints": None}


def test_interruptible_instances_are_labelled() -> None:
    patch = node_patch(node(), machine(), interruptible=True, also=Propagation())
    assert patch is not None
    assert patch["metadata"]["labels"] == {"cluster.x-k8s.io/interruptible": ""}
