"""In which order a Cluster goes, and what it says meanwhile; how its machines are counted; what it may say."""

from __future__ import annotations

from typing import Any

import pytest

from homeport.api.cluster.v1beta2 import (
    Cluster,
    ContractRef,
    Machine,
    MachineDeployment,
    MachinePool,
    MachineSet,
    StatusVersion,
)
from homeport.api.meta import ObjectMeta, OwnerReference, Unstructured
from homeport.core.cluster import admission, deletion, replicas
from homeport.core.cluster.observed import Descendants
from homeport.core.related import Related

THEN = "2026-01-01T00:00:00Z"
OWNER = OwnerReference(api_version="cluster.x-k8s.io/v1beta2", kind="Cluster", name="c", uid="u")
MAKER = OwnerReference(api_version="cluster.x-k8s.io/v1beta2", kind="MachineSet", name="s", uid="s", controller=True)
CP = ContractRef(api_group="g", kind="ControlPlane", name="cp")
INFRA = ContractRef(api_group="g", kind="Network", name="net")


def cluster(*, plane: bool = True) -> Cluster:
    made = Cluster(metadata=ObjectMeta(name="c", uid="u", deletion_timestamp=THEN))
    made.spec.infrastructure_ref = INFRA
    made.spec.control_plane_ref = CP if plane else None
    return made


def obj(kind: Any, name: str, *, owned: bool = True, deleting: bool = False, plane: bool = False) -> Any:
    labels = {"cluster.x-k8s.io/control-plane": ""} if plane else {}
    owners = [OWNER] if owned else [MAKER]
    stamp = THEN if deleting else None
    return kind(metadata=ObjectMeta(name=name, labels=labels, owner_references=owners, deletion_timestamp=stamp))


def related(ref: ContractRef, *, deleting: bool = False, **parts: Any) -> Related:
    meta = {"name": ref.name, **({"deletionTimestamp": THEN} if deleting else {})}
    return Related(ref, object=Unstructured(metadata=meta, kind=ref.kind, **parts))


def test_what_the_cluster_owns_goes_at_once_and_the_rest_follows_its_owners() -> None:
    found = Descendants(
        machines=[obj(Machine, "alone"), obj(Machine, "of-set", owned=False), obj(Machine, "plane", plane=True)],
        sets=[obj(MachineSet, "of-md", owned=False), obj(MachineSet, "single", deleting=True)],
        deployments=[obj(MachineDeployment, "md")],
        pools=[obj(MachinePool, "mp")],
    )
    step = deletion.plan(cluster(), found, related(CP), related(INFRA))
    assert sorted(each.metadata.name for each in step.delete.objects) == ["alone", "md", "mp"]
    assert step.delete.related is None
    assert step.wait is not None
    assert step.wait.reason == "WaitingForWorkersDeletion"


def test_without_control_plane_object_its_machines_go_with_the_workers() -> None:
    found = Descendants(machines=[obj(Machine, "plane", plane=True)])
    step = deletion.plan(cluster(plane=False), found, Related(), related(INFRA))
    assert [each.metadata.name for each in step.delete.objects] == ["plane"]
    assert step.wait is not None
    assert step.wait.message.startswith("0 of 1 machines deleted")


def test_the_control_plane_goes_when_the_workers_are_gone() -> None:
    found = Descendants(machines=[obj(Machine, "plane", owned=False, plane=True)])
    step = deletion.plan(cluster(), found, related(CP), related(INFRA))
    assert step.delete.related is not None
    assert step.delete.related.ref is CP
    again = deletion.plan(cluster(), found, related(CP, deleting=True), related(INFRA))
    assert again.delete.related is None
    assert again.wait is not None
    assert again.wait.reason == "WaitingForControlPlaneDeletion"


def test_the_infrastructure_goes_last_and_then_nothing_is_left() -> None:
    step = deletion.plan(cluster(), Descendants(), Related(CP), related(INFRA))
    assert step.delete.related is not None
    assert step.delete.related.ref is INFRA
    assert deletion.plan(cluster(), Descendants(), Related(CP), Related(INFRA)).wait is None


def test_what_can_not_be_read_is_not_taken_for_gone() -> None:
    step = deletion.plan(cluster(), Descendants(), Related(CP, trouble="not installed"), related(INFRA))
    assert step.delete == deletion.Delete()
    assert step.wait is not None
    assert "not installed" in step.wait.message


def test_what_belongs_to_another_cluster_stays() -> None:
    theirs = Related(CP, trouble="ControlPlane cp belongs to Cluster other", foreign=True)
    step = deletion.plan(cluster(), Descendants(), theirs, Related(INFRA, trouble="theirs", foreign=True))
    assert step == deletion.Step(deletion.Delete(), None)


def test_a_kind_that_is_not_served_has_no_objects_to_wait_for() -> None:
    step = deletion.plan(cluster(), Descendants(), Related(CP, trouble="no CRD", unserved=True), Related())
    assert step.wait is None


def test_machines_that_lost_their_maker_go_with_the_cluster() -> None:
    lost = obj(Machine, "lost")
    lost.metadata.owner_references = []
    step = deletion.plan(cluster(), Descendants(machines=[lost]), related(CP), related(INFRA))
    assert [each.metadata.name for each in step.delete.objects] == ["lost"]


def test_control_plane_machines_that_outlived_their_control_plane_go_before_the_infrastructure() -> None:
    lost = obj(Machine, "plane", plane=True)
    lost.metadata.owner_references = []
    step = deletion.plan(cluster(), Descendants(machines=[lost]), Related(CP), related(INFRA))
    assert [each.metadata.name for each in step.delete.objects] == ["plane"]
    assert step.delete.related is None
    assert step.wait is not None
    assert step.wait.reason == "WaitingForControlPlaneDeletion"
    assert "machine plane" in step.wait.message


@pytest.mark.parametrize(
    ("parts", "tail"),
    [
        ({}, ""),
        ({"status": {"conditions": [{"type": "Ready", "status": "False", "message": "VIP in use"}]}}, ": VIP in use"),
        (
            {"status": {"conditions": [{"type": "Deleting", "status": "True", "message": "two left"}]}},
            ": two left",
        ),
    ],
)
def test_what_a_provider_says_is_passed_on(parts: dict[str, Any], tail: str) -> None:
    step = deletion.plan(cluster(), Descendants(), Related(CP), related(INFRA, deleting=True, **parts))
    assert step.wait is not None
    assert step.wait.message == f"waiting for Network net to be deleted{tail}"


def draining(name: str) -> Machine:
    made: Machine = obj(Machine, name, owned=False, deleting=True)
    made.status.conditions = [
        {"type": "Deleting", "status": "True", "reason": "DrainingNode", "message": "draining Node n: Pod a/b"}
    ]
    return made


def test_progress_counts_what_is_gone_and_asks_the_one_that_goes_the_longest() -> None:
    group = obj(MachineDeployment, "md", deleting=True)
    group.spec.replicas = 5
    found = Descendants(machines=[obj(Machine, "a", owned=False), draining("x")], deployments=[group])
    assert deletion.progress(cluster(), found) == (
        "3 of 5 worker machines deleted; waiting for machine x: draining Node n: Pod a/b"
    )
    found = Descendants(deployments=[group])
    assert deletion.progress(cluster(), found, peak=7) == (
        "all 7 worker machines deleted; waiting for MachineDeployment md"
    )


# -- counting --------------------------------------------------------------------------------------------------------


def test_workers_are_summed_over_all_that_makes_them() -> None:
    group = obj(MachineDeployment, "md")
    group.spec.replicas, group.status.replicas, group.status.ready_replicas = 3, 2, 1
    nested, single = obj(MachineSet, "of-md", owned=False), obj(MachineSet, "single")
    nested.spec.replicas, single.spec.replicas = 3, 1
    alone = obj(Machine, "alone")
    alone.status.conditions = [{"type": "Ready", "status": "True"}]
    made = replicas.workers(
        cluster(), Descendants(machines=[alone], sets=[nested, single], deployments=[group], pools=[])
    )
    assert (made.desired_replicas, made.replicas, made.ready_replicas) == (5, 3, 2)


def test_a_cluster_without_workers_reports_no_worker_counts() -> None:
    made = replicas.workers(cluster(), Descendants())
    assert (made.desired_replicas, made.replicas, made.versions) == (None, None, [])


def test_versions_are_merged_oldest_first() -> None:
    given = [("v1.30.10", 1), ("v1.30.2", 2), ("v1.30.10", 3)]
    merged = replicas.merged(StatusVersion(version=version, replicas=count) for version, count in given)
    assert [(v.version, v.replicas) for v in merged] == [("v1.30.2", 2), ("v1.30.10", 4)]


# -- admission -------------------------------------------------------------------------------------------------------

REF = {"apiGroup": "g", "kind": "K", "name": "n"}


def wire(name: str = "c", **spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": name}, "spec": {"infrastructureRef": REF, **spec}}


@pytest.mark.parametrize(
    ("given", "old", "fields"),
    [
        (wire(), None, []),
        (wire(infrastructureRef=None), None, ["spec"]),
        (wire(infrastructureRef=None, controlPlaneRef=REF), wire(controlPlaneRef=REF), ["spec.infrastructureRef"]),
        (wire(), wire(controlPlaneRef=REF), ["spec.controlPlaneRef"]),
        (wire("a" * 64), None, ["metadata.name"]),
        (wire(clusterNetwork={"pods": {"cidrBlocks": ["10.0.0.0/8", "fd00::/108"]}}), None, []),
        (
            wire(clusterNetwork={"services": {"cidrBlocks": ["10.0.0.0/33"]}}),
            None,
            ["spec.clusterNetwork.services.cidrBlocks[0]"],
        ),
        (
            wire(clusterNetwork={"pods": {"cidrBlocks": ["10.0.0.1"]}}),
            None,
            ["spec.clusterNetwork.pods.cidrBlocks[0]"],
        ),
        (
            wire(clusterNetwork={"pods": {"cidrBlocks": ["10.0.0.0/8"]}, "services": {"cidrBlocks": ["10.96.0.0/12"]}}),
            None,
            ["spec.clusterNetwork.services.cidrBlocks[0]"],
        ),
        (
            wire(clusterNetwork={"pods": {"cidrBlocks": ["192.168.0.0/16", "192.168.4.0/24"]}}),
            None,
            ["spec.clusterNetwork.pods.cidrBlocks[1]"],
        ),
        (
            wire(
                clusterNetwork={"pods": {"cidrBlocks": ["192.168.0.0/16"]}},
                controlPlaneEndpoint={"host": "192.168.4.4", "port": 6443},
            ),
            None,
            ["spec.controlPlaneEndpoint.host"],
        ),
        (wire(controlPlaneEndpoint={"host": "10.0.0.300", "port": 6443}), None, ["spec.controlPlaneEndpoint.host"]),
        (wire(controlPlaneEndpoint={"host": "https://a", "port": 6443}), None, ["spec.controlPlaneEndpoint.host"]),
        (wire(controlPlaneEndpoint={"host": "api.example.com", "port": 6443}), None, []),
        (wire(controlPlaneEndpoint={"host": "fd00::1", "port": 6443}), None, []),
        (wire(topology={"classRef": {"name": "x"}, "version": "v1.30.0"}), None, []),
    ],
)
def test_clusters_that_are_refused(given: dict[str, Any], old: dict[str, Any] | None, fields: list[str]) -> None:
    assert [cause.field for cause in admission.validate(given, old)] == fields


def test_a_new_cluster_has_its_finalizer_from_the_start() -> None:
    given = wire()
    admission.default(given, None)
    assert given["metadata"]["finalizers"] == ["cluster.cluster.x-k8s.io"]
