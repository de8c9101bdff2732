"""What is written to a Node, as tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from homeport.api.meta import Unstructured
from homeport.capi.cloud import Address, CloudInstance
from homeport.ccm.label import label_value
from homeport.ccm.node import (
    SHUTDOWN,
    UNINITIALIZED,
    family_hint,
    initialised,
    plan_addresses,
    plan_patch,
    plan_taints,
    reachable,
    wanted_labels,
)

NOW = "2024-01-01T00:00:00Z"
NEW = {"key": UNINITIALIZED, "value": "true", "effect": "NoSchedule"}
OFF = {"key": SHUTDOWN, "effect": "NoSchedule", "timeAdded": NOW}
OTHER = {"key": "node-role.kubernetes.io/control-plane", "effect": "NoSchedule"}
ONE = CloudInstance(
    "nutanix://1",
    "ahv-vm",
    region="pc",
    zone="pe-1",
    addresses=(Address("InternalIP", "10.0.0.1"), Address("Hostname", "a")),
)


def node(
    *,
    taints: Sequence[dict[str, Any]] = (),
    labels: Mapping[str, str] = {},
    addresses: Sequence[dict[str, str]] = (),
    **spec: Any,
) -> Unstructured:
    return Unstructured(
        apiVersion="v1",
        kind="Node",
        metadata={"name": "a", "resourceVersion": "7", "labels": dict(labels)},
        spec={"taints": list(taints), **spec},
        status={"addresses": list(addresses)},
    )


@pytest.mark.parametrize(
    ("before", "shutdown", "after"),
    [
        ([NEW], False, []),
        ([NEW, OTHER], False, [OTHER]),
        ([OTHER], False, [OTHER]),
        ([OTHER], True, [OTHER, OFF]),
        ([OTHER, {**OFF, "timeAdded": "before"}], True, [OTHER, {**OFF, "timeAdded": "before"}]),
        ([OFF, OTHER], False, [OTHER]),
        ([NEW], True, [OFF]),
    ],
)
def test_taints_follow_the_machine(before: list[dict[str, Any]], shutdown: bool, after: list[dict[str, Any]]) -> None:
    assert plan_taints(before, CloudInstance("x", "t", shutdown=shutdown), NOW) == after


def test_a_new_node_is_initialised_by_one_patch_that_is_refused_if_somebody_else_was_quicker() -> None:
    patch = plan_patch(node(taints=[NEW, OTHER]), ONE, NOW)
    assert patch["spec"] == {"providerID": "nutanix://1", "taints": [OTHER]}
    assert patch["metadata"]["resourceVersion"] == "7"
    assert patch["metadata"]["labels"] == {
        "node.kubernetes.io/instance-type": "ahv-vm",
        "beta.kubernetes.io/instance-type": "ahv-vm",
        "topology.kubernetes.io/zone": "pe-1",
        "failure-domain.beta.kubernetes.io/zone": "pe-1",
        "topology.kubernetes.io/region": "pc",
        "failure-domain.beta.kubernetes.io/region": "pc",
    }


def test_a_node_that_is_as_it_should_be_is_not_written() -> None:
    assert plan_patch(node(taints=[OTHER], labels=wanted_labels(ONE), providerID="nutanix://0"), ONE, NOW) == {}


def test_a_provider_id_that_is_there_stays() -> None:
    assert "spec" not in plan_patch(node(providerID="nutanix://0"), ONE, NOW)


def test_what_the_infrastructure_does_not_know_becomes_no_label() -> None:
    assert wanted_labels(CloudInstance("x", "")) == {}


def test_labels_of_the_provider_are_made_fit() -> None:
    found = wanted_labels(CloudInstance("x", "", zone="Büro 1/2", labels={"nutanix.com/prism-host-name": "host 1"}))
    assert found["topology.kubernetes.io/zone"] == "B-ro-1-2"
    assert found["nutanix.com/prism-host-name"] == "host-1"


IP, OLD_IP, HOST = (
    {"type": "InternalIP", "address": "10.0.0.1"},
    {"type": "InternalIP", "address": "10.0.0.9"},
    {"type": "Hostname", "address": "a"},
)


@pytest.mark.parametrize(
    ("held", "known", "planned"),
    [
        ([], ONE.addresses, [IP, HOST]),
        ([IP, HOST], ONE.addresses, None),
        ([HOST, IP], ONE.addresses, None),
        ([OLD_IP, HOST], ONE.addresses, [IP, HOST]),
        ([OLD_IP, HOST], (Address("InternalIP", "10.0.0.1"),), [IP, HOST]),
        ([OLD_IP], (), None),
    ],
)
def test_addresses_are_refreshed(
    held: list[dict[str, str]], known: tuple[Address, ...], planned: list[dict[str, str]] | None
) -> None:
    assert plan_addresses(node(addresses=held), CloudInstance("x", "t", addresses=known)) == planned


SIX = {"type": "InternalIP", "address": "fd00::1"}
BOTH = (Address("InternalIP", "10.0.0.1"), Address("InternalIP", "fd00::1"), Address("Hostname", "a"))


@pytest.mark.parametrize(
    ("held", "first", "planned"),
    [
        ([], 0, [IP, SIX, HOST]),
        ([], 4, [IP, SIX, HOST]),
        ([], 6, [SIX, IP, HOST]),
        ([SIX, HOST, IP], 6, None),
        ([IP, HOST, SIX], 6, [SIX, IP, HOST]),
        ([IP, HOST, SIX], 0, None),
    ],
)
def test_the_first_family_of_the_cluster_comes_first(
    held: list[dict[str, str]], first: int, planned: list[dict[str, str]] | None
) -> None:
    assert plan_addresses(node(addresses=held), CloudInstance("x", "t", addresses=BOTH), first) == planned


@pytest.mark.parametrize(
    ("annotations", "spec", "family"),
    [
        ({}, {}, 0),
        ({"alpha.kubernetes.io/provided-node-ip": "fd00::1,10.0.0.1"}, {"podCIDRs": ["10.1.0.0/24"]}, 6),
        ({}, {"podCIDRs": ["fd00:2::/64", "10.1.0.0/24"]}, 6),
        ({}, {"podCIDR": "10.1.0.0/24"}, 4),
    ],
)
def test_a_node_may_say_which_family_comes_first(
    annotations: dict[str, str], spec: dict[str, Any], family: int
) -> None:
    assert family_hint(Unstructured({"metadata": {"name": "a", "annotations": annotations}, "spec": spec})) == family


@pytest.mark.parametrize(
    ("found", "instance", "expected"),
    [
        (node(taints=[NEW]), ONE, True),
        (node(taints=[NEW]), CloudInstance("x", "t"), False),
        (node(taints=[NEW], addresses=[IP]), CloudInstance("x", "t"), True),
        (node(taints=[NEW], addresses=[HOST]), CloudInstance("x", "t"), False),
        (node(), CloudInstance("x", "t"), True),
    ],
)
def test_a_new_node_without_an_address_is_not_opened_yet(
    found: Unstructured, instance: CloudInstance, expected: bool
) -> None:
    assert reachable(found, instance) is expected


def test_the_taint_of_the_kubelet_says_whether_a_node_is_new() -> None:
    assert not initialised(node(taints=[NEW]))
    assert initialised(node(taints=[OTHER, OFF]))
    assert initialised(node())


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("pe-1", "pe-1"),
        ("PE 1 (Berlin)", "PE-1-Berlin"),
        ("-a-", "a"),
        ("ü", ""),
        ("x" * 70, "x" * 63),
        ("x" * 62 + "--y", "x" * 62),
    ],
)
def test_values_become_labels(text: str, value: str) -> None:
    assert label_value(text) == value
