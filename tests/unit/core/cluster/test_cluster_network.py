"""A Cluster says that its Nodes wait for a network plugin, and how to install one."""

from __future__ import annotations

import pytest

from homeport.api.cluster.v1beta2 import Cluster, Machine
from homeport.api.meta import ObjectMeta
from homeport.core.cluster.network import network_plugin
from homeport.runtime.clock import parse_time

SINCE = "2026-01-01T00:00:00Z"
NOW = parse_time(SINCE) + 60
KUBELET = "Node n1: container runtime network not ready: NetworkReady=false reason:NetworkPluginNotReady"
CLUSTER = Cluster(metadata=ObjectMeta(name="harbour", namespace="team"))


def machine(name: str, status: str, message: str = "") -> Machine:
    made = Machine(metadata=ObjectMeta(name=name, namespace="team"))
    said = {"type": "NodeReady", "status": status, "reason": "x", "message": message, "lastTransitionTime": SINCE}
    made.status.conditions = [said]
    return made


def test_nodes_that_wait_for_a_plugin_are_named_with_the_commands() -> None:
    found, timer = network_plugin(CLUSTER, [machine(name, "False", KUBELET) for name in "abc"], NOW)
    assert found is not None
    assert (found.status, found.reason, timer) == ("False", "NoNetworkPlugin", 0)
    assert "a, b and 1 more can't run Pods" in found.message
    assert "clusterName harbour" in found.message
    assert "homeport kubeconfig harbour -n team > harbour.kubeconfig" in found.message


def test_an_add_on_that_is_being_installed_gets_time() -> None:
    found, timer = network_plugin(CLUSTER, [machine("a", "False", KUBELET)], parse_time(SINCE) + 5)
    assert (found, timer) == (None, 15)


@pytest.mark.parametrize(
    "machines",
    [
        [],
        [machine("a", "True")],
        [machine("a", "False", "Node n1: kubelet is out of memory")],
        [machine("a", "Unknown", KUBELET)],
        [machine("a", "True"), machine("b", "False", KUBELET)],  # a plugin is there: one Node is only late
        [Machine(metadata=ObjectMeta(name="new"))],
    ],
    ids=["no machines", "ready", "another reason", "not known", "one is ready", "no report"],
)
def test_nothing_is_said_without_proof(machines: list[Machine]) -> None:
    assert network_plugin(CLUSTER, machines, NOW) == (None, 0)
