"""What a config says about its Node, as a patch."""

from __future__ import annotations

from typing import Any

import pytest

from homeport.api.meta import Unstructured
from homeport.bootstrap.k0s.node import LABELS_ANNOTATION, TAINTS_ANNOTATION, OtherProviderID, node_patch
from homeport.capi.k0s.argument import parse_arguments

ID = "nutanix://11111111-1111-1111-1111-111111111111"


def node(spec: dict[str, Any] | None = None, **meta: Any) -> Unstructured:
    return Unstructured({"metadata": {"name": "a", "resourceVersion": "7", **meta}, "spec": spec or {}})


def test_a_node_gets_its_provider_id() -> None:
    assert node_patch(node(), parse_arguments([]), ID) == {
        "metadata": {"resourceVersion": "7"},
        "spec": {"providerID": ID},
    }
    assert node_patch(node({"providerID": ID}), parse_arguments([]), ID) is None


def test_a_node_of_another_machine_is_left_alone() -> None:
    with pytest.raises(OtherProviderID):
        node_patch(node({"providerID": "nutanix://other"}), parse_arguments(["--labels=a=b"]), ID)


def test_labels_and_taints_come_and_go_with_the_config() -> None:
    given = parse_arguments(["--labels=a=b", "--taints=t=v:NoSchedule"])
    theirs = {"key": "theirs", "effect": "NoSchedule"}
    patch = node_patch(node({"providerID": ID, "taints": [theirs]}, labels={"x": "y"}), given, ID)
    assert patch is not None
    assert patch["metadata"]["labels"] == {"a": "b"}
    assert patch["metadata"]["annotations"] == {LABELS_ANNOTATION: "a", TAINTS_ANNOTATION: "t:NoSchedule"}
    assert patch["spec"]["taints"] == [theirs, {"key": "t", "value": "v", "effect": "NoSchedule"}]
    kept = node(
        {"providerID": ID, "taints": patch["spec"]["taints"]},
        labels={"x": "y", "a": "b"},
        annotations=patch["metadata"]["annotations"],
    )
    assert node_patch(kept, given, ID) is None
    dropped = node_patch(kept, parse_arguments([]), ID)
    assert dropped is not None
    assert dropped["metadata"]["labels"] == {"a": None}
    assert dropped["metadata"]["annotations"] == {LABELS_ANNOTATION: None, TAINTS_ANNOTATION: None}
    assert dropped["spec"]["taints"] == [theirs]


def test_another_value_of_a_taint_replaces_the_old_one() -> None:
    had = node(
        {"providerID": ID, "taints": [{"key": "t", "value": "old", "effect": "NoSchedule"}]},
        annotations={TAINTS_ANNOTATION: "t:NoSchedule"},
    )
    patch = node_patch(had, parse_arguments(["--taints=t=new:NoSchedule"]), ID)
    assert patch is not None
    assert patch["spec"]["taints"] == [{"key": "t", "value": "new", "effect": "NoSchedule"}]
