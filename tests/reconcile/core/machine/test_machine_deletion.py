"""A Machine goes in order, and says at each step what it waits for."""

from __future__ import annotations

from typing import Any

import pytest

from homeport.api.cluster.v1beta2 import Cluster, Machine
from homeport.api.meta import Resource
from homeport.client.errors import NotFound
from homeport.client.protocol import Key, MergePatch
from reconcile.core.provider import (
    BOOTSTRAP,
    CONTROL_PLANE,
    INFRA_MACHINE,
    M1,
    NODE,
    PROVISIONED,
    World,
    cluster,
    foreign,
    machine,
    node,
    said,
    world,
)

POD = Resource("", "v1", "Pod", "pods")
HOLD = {"finalizers": ["provider.example.com/hold"]}


def pod(name: str, **parts: Any) -> dict[str, Any]:
    spec = {"nodeName": "n1", "containers": [{"name": "c", "image": "i"}], **parts.pop("spec", {})}
    metadata = {"name": name, **parts.pop("metadata", {})}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata,
        "spec": spec,
        "status": {"phase": "Running", **parts},
    }


def budget(selector: dict[str, str]) -> dict[str, Any]:
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "keep-two"},
        "spec": {"minAvailable": 2, "selector": {"matchLabels": selector}},
        "status": {
            "disruptionsAllowed": 0,
            "currentHealthy": 2,
            "desiredHealthy": 2,
            "expectedPods": 2,
            "observedGeneration": 1,
        },
    }


def going(**parts: Any) -> list[dict[str, Any]]:
    """A worker with a Node beside a control plane machine, and what the worker refers to."""
    status = {"nodeRef": {"name": "n1"}, **parts.pop("status", {}), **PROVISIONED_MACHINE}
    spec = {"providerID": "fake://m1", **parts.pop("spec", {})}
    plane = machine("cp", metadata={"labels": {"cluster.x-k8s.io/control-plane": ""}})
    return [
        cluster(status=PROVISIONED, **parts.pop("cluster", {})),
        machine(spec=spec, status=status, **parts),
        plane,
        foreign(BOOTSTRAP, "m1", metadata=HOLD),
        foreign(INFRA_MACHINE, "m1", metadata=HOLD, spec={"providerID": "fake://m1"}),
        foreign(CONTROL_PLANE, "c1"),
    ]


PROVISIONED_MACHINE = {"initialization": {"infrastructureProvisioned": True, "bootstrapDataSecretCreated": True}}


async def let_go(w: World, kind: Resource) -> None:
    """Plays the provider that has cleaned up."""
    await w.client.patch(kind, M1, MergePatch({"metadata": {"finalizers": None}}))


async def test_everything_goes_one_after_the_other_and_the_machine_last() -> None:
    async with world(*going()) as w:
        await w.connect(node())
        await w.client.delete(Machine, M1)
        _, found = await w.machine()
        assert found.status.phase == "Deleting"
        assert said(found, "Deleting") == (
            "True",
            "WaitingForInfrastructureDeletion",
            "waiting for FakeMachine m1 to be deleted (held by provider.example.com/hold)",
        )
        assert (await w.client.get(INFRA_MACHINE, M1)).metadata["deletionTimestamp"]
        assert not (await w.client.get(BOOTSTRAP, M1)).metadata.get("deletionTimestamp")
        await let_go(w, INFRA_MACHINE)
        _, found = await w.machine()
        assert said(found, "Deleting")[1] == "WaitingForBootstrapDeletion"
        assert (await w.workload.get(NODE, Key("", "n1")))["spec"]["unschedulable"]
        await let_go(w, BOOTSTRAP)
        outcome = await w.p.reconcile(w.machines, M1)
        assert outcome.error is None
        assert outcome.wait is None
        with pytest.raises(NotFound):
            await w.client.get(Machine, M1)
        with pytest.raises(NotFound):
            await w.workload.get(NODE, Key("", "n1"))


async def test_what_the_provider_says_of_its_deletion_is_passed_on() -> None:
    async with world(*going()) as w:
        await w.connect(node())
        ready = {"type": "Ready", "status": "False", "reason": "Deleting", "message": "VM vm-7 is locked by a snapshot"}
        await w.say(INFRA_MACHINE, M1, status={"conditions": [ready]})
        await w.client.delete(Machine, M1)
        _, found = await w.machine()
        assert said(found, "Deleting")[2] == "waiting for FakeMachine m1 to be deleted: VM vm-7 is locked by a snapshot"


async def test_hooks_hold_the_machine_before_the_drain_and_before_the_end() -> None:
    names = ("pre-drain.delete.hook.machine.cluster.x-k8s.io/a", "pre-terminate.delete.hook.machine.cluster.x-k8s.io/b")
    async with world(*going(metadata={"annotations": {names[0]: "backup", names[1]: ""}})) as w:
        await w.connect(node(), pod("p1"))
        await w.client.delete(Machine, M1)
        outcome, found = await w.machine()
        assert said(found, "Deleting")[1] == "WaitingForPreDrainHook"
        assert "(of backup)" in said(found, "Deleting")[2]
        assert outcome.wait is not None
        assert outcome.wait.after is None
        await w.client.patch(Machine, M1, MergePatch({"metadata": {"annotations": {names[0]: None}}}))
        _, found = await w.machine()
        assert said(found, "Deleting")[1] == "DrainingNode"
        await w.workload.delete(POD, Key("default", "p1"), grace_seconds=0)
        _, found = await w.machine()
        assert said(found, "Deleting")[1] == "WaitingForPreTerminateHook"
        assert found.status.deletion.wait_for_pre_terminate_hook_start_time
        assert not (await w.client.get(INFRA_MACHINE, M1)).metadata.get("deletionTimestamp")


async def test_a_drain_names_the_pod_and_the_budget_that_hold_it() -> None:
    labels = {"app": "db"}
    async with world(*going()) as w:
        await w.connect(
            node(),
            node("n2", spec={"providerID": "fake://x"}),
            pod("db-0", metadata={"labels": labels}, conditions=[{"type": "Ready", "status": "True"}]),
            pod(
                "db-1",
                metadata={"labels": labels},
                spec={"nodeName": "n2"},
                conditions=[{"type": "Ready", "status": "True"}],
            ),
            pod("web"),
            budget(labels),
        )
        await w.client.delete(Machine, M1)
        outcome, found = await w.machine()
        status, reason, message = said(found, "Deleting")
        assert (status, reason) == ("True", "DrainingNode")
        assert message.startswith(
            "draining Node n1: Pod default/db-0 can't be evicted: it would violate a disruption budget"
        )
        assert "keep-two" in message
        assert outcome.wait is not None
        assert outcome.wait.after is not None
        assert found.status.deletion.node_drain_start_time


async def test_daemon_sets_and_static_pods_stay_and_hold_nothing() -> None:
    owner = [{"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "agent", "uid": "u", "controller": True}]
    daemon_set = {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": "agent"},
        "spec": {
            "selector": {"matchLabels": {"a": "b"}},
            "template": {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}},
        },
    }
    async with world(*going()) as w:
        await w.connect(
            node(),
            daemon_set,
            pod("agent-x", metadata={"ownerReferences": owner}),
            pod("static", metadata={"annotations": {"kubernetes.io/config.mirror": "x"}}),
        )
        await w.client.delete(Machine, M1)
        _, found = await w.machine()
        assert said(found, "Deleting")[1] == "WaitingForInfrastructureDeletion"
        assert await w.workload.get(POD, Key("default", "agent-x"))


async def test_rules_order_the_drain() -> None:
    rule = {
        "apiVersion": "cluster.x-k8s.io/v1beta2",
        "kind": "MachineDrainRule",
        "metadata": {"name": "db-last"},
        "spec": {"drain": {"behavior": "Drain", "order": 10}, "pods": [{"selector": {"matchLabels": {"app": "db"}}}]},
    }
    async with world(*going(), rule) as w:
        await w.connect(node(), pod("db", metadata={"labels": {"app": "db"}}), pod("web"))
        await w.client.delete(Machine, M1)
        _, found = await w.machine()
        assert "then Pod default/db will be evicted" in said(found, "Deleting")[2]
        assert not (await w.workload.get(POD, Key("default", "db"))).metadata.get("deletionTimestamp")


@pytest.mark.parametrize(
    ("metadata", "spec"),
    [
        ({"annotations": {"machine.cluster.x-k8s.io/exclude-node-draining": ""}}, {}),
        ({}, {"deletion": {"nodeDrainTimeoutSeconds": 1}}),
    ],
)
async def test_a_drain_that_is_excluded_or_too_long_is_over(metadata: dict[str, Any], spec: dict[str, Any]) -> None:
    status = {"deletion": {"nodeDrainStartTime": "2020-01-01T00:00:00Z"}}
    async with world(*going(metadata=metadata, spec=spec, status=status)) as w:
        await w.connect(node(), pod("p1"))
        await w.client.delete(Machine, M1)
        _, found = await w.machine()
        assert said(found, "Deleting")[1] == "WaitingForInfrastructureDeletion"


async def test_volumes_are_waited_for_by_the_name_of_their_claims() -> None:
    volume = {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": "pv-1"},
        "spec": {
            "capacity": {"storage": "1Gi"},
            "accessModes": ["ReadWriteOnce"],
            "csi": {"driver": "csi.example.com", "volumeHandle": "h"},
            "claimRef": {"kind": "PersistentVolumeClaim", "namespace": "shop", "name": "data"},
        },
    }
    attachment = {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "VolumeAttachment",
        "metadata": {"name": "a-1"},
        "spec": {"attacher": "csi.example.com", "nodeName": "n1", "source": {"persistentVolumeName": "pv-1"}},
        "status": {"attached": True},
    }
    async with world(*going()) as w:
        await w.connect(node(), volume, attachment)
        await w.client.delete(Machine, M1)
        _, found = await w.machine()
        assert said(found, "Deleting") == (
            "True",
            "WaitingForVolumeDetach",
            "detaching volumes of Node n1: still attached: claim shop/data",
        )


async def test_without_connection_the_drain_says_so_and_the_timeout_still_counts() -> None:
    async with world(*going(spec={"deletion": {"nodeDrainTimeoutSeconds": 60}})) as w:
        await w.client.delete(Machine, M1)
        outcome, found = await w.machine()
        assert "no connection to the workload cluster" in said(found, "Deleting")[2]
        assert outcome.wait is not None
        assert outcome.wait.after is not None
        assert 55 < outcome.wait.after <= 60


async def test_nothing_is_drained_when_the_whole_cluster_goes() -> None:
    async with world(*going()) as w:
        await w.connect(node(), pod("p1"))
        await w.client.delete(Cluster, Key("default", "c1"))
        await w.client.delete(Machine, M1)
        _, found = await w.machine()
        assert said(found, "Deleting")[1] == "WaitingForInfrastructureDeletion"
        assert await w.workload.get(POD, Key("default", "p1"))


async def test_the_last_control_plane_machine_is_not_drained() -> None:
    held = going()
    held[1]["metadata"]["labels"]["cluster.x-k8s.io/control-plane"] = ""
    del held[2]
    async with world(*held) as w:
        await w.connect(node(), pod("p1"))
        await w.client.delete(Machine, M1)
        _, found = await w.machine()
        assert said(found, "Deleting")[1] == "WaitingForInfrastructureDeletion"


async def test_a_machine_whose_cluster_is_gone_goes_too() -> None:
    async with world(*going()[1:]) as w:
        await w.client.delete(Machine, M1)
        _, found = await w.machine()
        assert said(found, "Deleting")[1] == "WaitingForInfrastructureDeletion"


async def test_a_node_that_can_not_be_deleted_holds_the_machine_for_its_timeout_alone() -> None:
    held = going(spec={"deletion": {"nodeDeletionTimeoutSeconds": 0}})
    held[1]["metadata"]["annotations"] = {
        "machine.cluster.x-k8s.io/exclude-node-draining": "",
        "machine.cluster.x-k8s.io/exclude-wait-for-node-volume-detach": "",
    }
    del held[3:5]
    async with world(*held) as w:
        await w.client.delete(Machine, M1)
        outcome, found = await w.machine()
        assert said(found, "Deleting")[1] == "DeletingNode"
        assert outcome.wait is not None
        assert outcome.wait.after == 2.0
