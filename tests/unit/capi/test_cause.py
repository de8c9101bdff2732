from __future__ import annotations

from typing import Any

from homeport.api.cluster.v1beta2 import Cluster, ClusterStatus, Machine, MachineStatus
from homeport.api.meta import ObjectMeta, Unstructured
from homeport.capi.name import CONTROL_PLANE_LABEL
from homeport.capi.object.cause import Part, cause, causes, complaint


def condition(kind: str, status: str, reason: str, message: str = "") -> dict[str, Any]:
    return {"type": kind, "status": status, "reason": reason, "message": message}


def vm(*conditions: dict[str, Any], name: str = "vm-7") -> Unstructured:
    return Unstructured(
        {"kind": "NutanixMachine", "metadata": {"name": name}, "status": {"conditions": list(conditions)}}
    )


def machine(*conditions: dict[str, Any], name: str = "cp-1", control_plane: bool = True) -> Machine:
    labels = {CONTROL_PLANE_LABEL: ""} if control_plane else {}
    return Machine(metadata=ObjectMeta(name=name, labels=labels), status=MachineStatus(conditions=list(conditions)))


def cluster(*conditions: dict[str, Any]) -> Cluster:
    return Cluster(metadata=ObjectMeta(name="prod"), status=ClusterStatus(conditions=list(conditions)))


READY = condition("Ready", "True", "Ready")
WAITS = condition("Ready", "False", "NotReady", "* InfrastructureReady: not ready")
NO_IMAGE = condition("Ready", "False", "ImageNotFound", "the image ubuntu-24 was not found.")


def test_the_deepest_cause_is_reported_with_its_path() -> None:
    tree = Part(cluster(WAITS), children=[Part(machine(WAITS), children=[Part(vm(NO_IMAGE), called="VM")])])
    assert cause(tree) == "control plane machine cp-1: VM vm-7: the image ubuntu-24 was not found"


def test_nothing_is_said_when_nothing_is_wrong() -> None:
    assert cause(Part(machine(READY), children=[Part(vm(READY))])) == ""


def test_an_object_that_is_only_waiting_gives_way_to_one_that_knows_why() -> None:
    waiting = condition("Ready", "False", "WaitingForBootstrapData", "waits for the bootstrap data")
    tree = Part(cluster(WAITS), children=[Part(machine(waiting, name="a")), Part(machine(NO_IMAGE, name="b"))])
    assert cause(tree) == "control plane machine b: the image ubuntu-24 was not found"


def test_waiting_is_reported_if_nothing_else_is_wrong() -> None:
    waiting = condition("InfrastructureReady", "False", "WaitingForBootstrapData", "waits for the bootstrap data")
    tree = Part(cluster(WAITS), children=[Part(machine(WAITS, waiting, control_plane=False))])
    assert cause(tree) == "machine cp-1: waits for the bootstrap data"


def test_a_single_condition_says_it_better_than_the_summary() -> None:
    summary = condition("Ready", "False", "NotReady", "* A: x\n* B: y")
    said = complaint(machine(summary, condition("BootstrapConfigReady", "False", "Broken", "no token")))
    assert said is not None
    assert (said.message, said.waits) == ("no token", False)


def test_work_in_progress_is_not_a_cause() -> None:
    assert complaint(machine(READY, condition("Deleting", "False", "NotDeleting"))) is None
    assert complaint(machine(READY, condition("Updating", "True", "InPlaceUpdating", "x"))) is None


def test_a_terminal_failure_of_the_old_contract_counts() -> None:
    broken = Unstructured(
        {"kind": "X", "metadata": {"name": "x"}, "status": {"failureReason": "CreateError", "failureMessage": "quota"}}
    )
    assert cause(Part(machine(WAITS), children=[Part(broken)])) == "X x: quota"


def test_a_condition_without_a_message_is_spelled_out() -> None:
    assert cause(Part(vm(condition("Ready", "False", "Odd")))) == "Ready is False (Odd)"


def test_several_objects_are_named_and_equal_ones_reported_once() -> None:
    parts = [Part(machine(NO_IMAGE, name="a")), Part(machine(READY, name="b")), Part(machine(NO_IMAGE, name="a"))]
    assert causes(parts) == ["control plane machine a: the image ubuntu-24 was not found"]


def test_a_cluster_that_does_not_answer_yet_gives_way_to_the_machine_that_does_not_boot() -> None:
    silent = condition("RemoteConnectionProbe", "False", "ProbeFailed", "no connection to https://10.0.0.26:6443")
    waiting = condition("NodeReady", "False", "WaitingForNode", "the machine has not joined yet")
    machines = [Part(machine(waiting, name="cp-1"))]
    early = condition("ControlPlaneInitialized", "False", "NotInitialized")
    assert cause(Part(cluster(silent, early), children=machines)) == (
        "control plane machine cp-1: the machine has not joined yet"
    )
    late = condition("ControlPlaneInitialized", "True", "Initialized")
    assert cause(Part(cluster(silent, late), children=machines)) == "no connection to https://10.0.0.26:6443"
    assert cause(Part(cluster(silent, early))) == "no connection to https://10.0.0.26:6443"


def test_a_missing_control_plane_is_named_before_the_infrastructure_that_waits_for_it() -> None:
    missing = "KubeadmControlPlane prod-cp does not exist"
    conditions = (
        condition("RemoteConnectionProbe", "False", "ProbeFailed", "the infrastructure is not provisioned yet"),
        condition("ControlPlaneInitialized", "Unknown", "ObjectDoesNotExist", missing),
        condition("ControlPlaneAvailable", "False", "ObjectDoesNotExist", missing),
    )
    waiting = condition("Ready", "False", "WaitingForTemplates", f"{missing} yet")
    assert cause(Part(cluster(*conditions), children=[Part(vm(waiting))])) == missing
