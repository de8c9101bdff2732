"""What keeps a move from starting, and what is said about it."""

from __future__ import annotations

from typing import Any

import pytest

from homeport.api.clusterctl.v1alpha3 import Provider
from homeport.api.meta import Resource, Unstructured
from homeport.capi.definition.kind import definitions
from homeport.capi.name import BLOCK_MOVE, CLUSTER_NAME_LABEL
from homeport.move.graph import Graph
from homeport.move.kind import MovedKind
from homeport.move.node import Node
from homeport.move.pause import restless_objects
from homeport.move.preflight import occupied, provider_problems, source_problems
from homeport.move.replica import MARK, Mark
from homeport.move.side import SECRET
from homeport.runtime.testing import establish, plane

CLUSTER = MovedKind(
    Resource("cluster.x-k8s.io", "v1beta2", "Cluster", "clusters"), moves=True, hierarchy=True, provider="cluster-api"
)
MACHINE = MovedKind(Resource("cluster.x-k8s.io", "v1beta2", "Machine", "machines"), provider="infrastructure-nutanix")
READY = {"initialization": {"infrastructureProvisioned": True, "controlPlaneInitialized": True}}


def cluster(status: dict[str, Any] | None = None, **meta: Any) -> Node:
    body = {"name": "one", "namespace": "a", "uid": "c", **meta}
    return Node(CLUSTER, Unstructured({"metadata": body, "spec": {}, "status": READY if status is None else status}))


def machine(status: dict[str, Any], **meta: Any) -> Node:
    owner = [{"uid": "c", "kind": "Cluster", "name": "one"}]
    body = {"name": "m", "namespace": "a", "uid": "m", "ownerReferences": owner, **meta}
    return Node(MACHINE, Unstructured({"metadata": body, "status": status}))


def problems(*nodes: Node) -> list[str]:
    return source_problems(Graph.build(nodes).selection())


RUNNING = {"nodeRef": {"name": "m"}, "phase": "Running"}


@pytest.mark.parametrize(
    ("nodes", "expected"),
    [
        ((cluster(), machine(RUNNING)), ""),
        ((cluster(), machine({"conditions": [{"type": "ControllerHealthy", "status": "True"}]})), ""),
        ((cluster({"infrastructureReady": True, "conditions": [{"type": "ControlPlaneInitialized", "status": "True"}]}),), ""),
        ((cluster({}),), "Cluster a/one: its infrastructure is not provisioned yet: wait for the condition"),
        (
            (cluster({"initialization": {"infrastructureProvisioned": True}}),),
            "Cluster a/one: its control plane is not initialized yet: wait for the condition ControlPlaneInitialized",
        ),
        ((cluster(), machine({"phase": "Provisioning"})), "Machine a/m has no Node yet (phase Provisioning): wait"),
        ((cluster(deletionTimestamp="x"),), "Cluster a/one is being deleted: wait until it is gone"),
        ((cluster(), machine({}, deletionTimestamp="x")), "Machine a/m is being deleted: wait until it is gone"),
    ],
)  # fmt: skip
def test_only_clusters_that_are_complete_move(nodes: tuple[Node, ...], expected: str) -> None:
    found = problems(*nodes)
    assert len(found) == bool(expected)
    assert not expected or found[0].startswith(expected)


def test_objects_that_controllers_still_work_on_are_waited_for() -> None:
    def restless(*nodes: Node) -> list[str]:
        return restless_objects(Graph.build(nodes).selection())

    unpaused = {"conditions": [{"type": "Paused", "status": "False"}]}
    labels = {CLUSTER_NAME_LABEL: "one"}
    assert restless(cluster(), machine(RUNNING)) == []
    assert "its VM is being created" in restless(cluster(), machine(RUNNING, annotations={BLOCK_MOVE: ""}))[0]
    assert "has not confirmed the pause" in restless(cluster(unpaused))[0]
    assert "Machine a/m" in restless(cluster(), machine(unpaused, labels=labels))[0]


def test_what_the_target_has_already_is_accepted_only_if_it_is_a_copy_or_the_same() -> None:
    node = Node(MovedKind(SECRET), Unstructured({"metadata": {"name": "s", "uid": "u"}, "data": {"a": "MQ=="}}))

    def there(data: str, uid: str = "") -> Unstructured:
        annotations = {MARK: Mark("id", uid).render()} if uid else {}
        return Unstructured({"metadata": {"name": "s", "annotations": annotations}, "data": {"a": data}})

    assert occupied(node, None) == ""
    assert occupied(node, there("MQ==")) == ""
    assert occupied(node, there("Mg==", "u")) == ""
    assert "exists on the target and differs" in occupied(node, there("Mg=="))
    assert "exists on the target and differs" in occupied(node, there("Mg==", "another"))


async def test_the_target_runs_the_providers_of_what_moves_in_no_older_version() -> None:
    def provider(name: str, version: str) -> dict[str, Any]:
        meta = {"name": name, "namespace": "default"}
        at = Provider.__resource__
        return {
            "apiVersion": at.api_version,
            "kind": at.kind,
            "metadata": meta,
            "providerName": name,
            "type": "CoreProvider",
            "version": version,
        }

    selection = Graph.build([cluster(), machine(RUNNING)]).selection()
    async with plane(crds=definitions()) as source, plane() as target:
        await establish(target.client, *definitions())
        await source.have(
            provider("cluster-api", "v1.14.2"),
            provider("infrastructure-nutanix", "v1.7.0"),
            provider("unused", "v9.0.0"),
        )
        assert await provider_problems(source.client, target.client, selection) == []
        await target.have(provider("cluster-api", "v1.13.0"))
        assert await provider_problems(source.client, target.client, selection) == [
            "provider cluster-api has version v1.13.0 on the target and v1.14.2 on the source: upgrade the target first",
            "provider infrastructure-nutanix is not in the inventory of the target: install it there",
        ]
