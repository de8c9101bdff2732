"""A Machine's phases and conditions, by what was seen."""

from __future__ import annotations

from typing import Any

import pytest

from homeport.api.cluster.v1beta2 import (
    Cluster,
    ContractRef,
    Machine,
    MachineDeployment,
    MachineNodeReference,
    MachineReadinessGate,
    MachineSet,
)
from homeport.api.meta import ObjectMeta, Unstructured
from homeport.capi.name import CONTROL_PLANE_LABEL
from homeport.core.machine import deletion, health
from homeport.core.machine.observed import Connection, Observed
from homeport.core.machine.status import phase, ready, report
from homeport.core.machine.uptodate import outdated, up_to_date
from homeport.core.related import Related
from homeport.machinery import condition
from homeport.runtime.outcome import Wait

NOW = 1_767_225_600.0  # 2026-01-01T00:00:00Z
THEN = "2025-12-31T23:50:00Z"  # ten minutes earlier


def machine(**meta: Any) -> Machine:
    made = Machine(metadata=ObjectMeta(name="m", namespace="ns", generation=1, **meta))
    made.spec.cluster_name = "c"
    made.spec.infrastructure_ref = ContractRef(api_group="g", kind="VM", name="m")
    return made


def _join(machine: Machine) -> None:
    machine.status.node_ref = MachineNodeReference(name="n")
    machine.status.initialization.infrastructure_provisioned = True


def cluster(*, initialized: bool = True) -> Cluster:
    made = Cluster(metadata=ObjectMeta(name="c", namespace="ns"))
    made.status.initialization.infrastructure_provisioned = True
    made.status.initialization.control_plane_initialized = initialized
    return made


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (lambda m: None, "Pending"),
        (lambda m: setattr(m.status.initialization, "bootstrap_data_secret_created", True), "Provisioning"),
        (lambda m: setattr(m.spec, "provider_id", "x://1"), "Provisioned"),
        (lambda m: setattr(m.status, "node_ref", MachineNodeReference(name="n")), "Pending"),
        (_join, "Running"),
        (lambda m: setattr(m.metadata, "deletion_timestamp", THEN), "Deleting"),
    ],
)
def test_phases(change: Any, expected: str) -> None:
    made = machine()
    change(made)
    assert phase(made) == expected


def node(**conditions: str) -> Unstructured:
    found = {"Ready": "True", "MemoryPressure": "False", "DiskPressure": "False", "PIDPressure": "False", **conditions}
    return Unstructured(
        metadata={"name": "n"},
        status={"conditions": [{"type": t, "status": s, "message": "why"} for t, s in found.items() if s]},
    )


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (node(), ("True", "NodeHealthy", "")),
        (node(Ready="False"), ("False", "NodeNotHealthy", "Node n: Ready: why")),
        (node(Ready="Unknown"), ("Unknown", "NodeHealthyUnknown", "Node n: Ready: why")),
        (node(DiskPressure="True"), ("False", "NodeNotHealthy", "Node n: DiskPressure: why")),
        (node(DiskPressure=""), ("Unknown", "NodeHealthyUnknown", "Node n: DiskPressure: not reported yet")),
        (
            node(Ready="Unknown", MemoryPressure="Unknown", DiskPressure="Unknown", PIDPressure="Unknown"),
            ("Unknown", "NodeHealthyUnknown", "Node n: Ready, MemoryPressure, DiskPressure, PIDPressure: why"),
        ),
        (node(Ready="Unknown", DiskPressure="True"), ("False", "NodeNotHealthy", "Node n: Ready, DiskPressure: why")),
    ],
)
def test_node_health_follows_its_conditions(given: Unstructured, expected: tuple[str, str, str]) -> None:
    assert tuple(health.node_healthy(given)) == expected


def known(kind: str, status: str = "True", reason: str = "NodeHealthy") -> dict[str, str]:
    return {"type": kind, "status": status, "reason": reason, "message": "", "lastTransitionTime": THEN}


@pytest.mark.parametrize(
    ("last_probe", "since", "expected"),
    [
        (NOW - 100, NOW - 100, None),  # what was known still counts
        (NOW - 301, NOW - 301, "ConnectionDown"),
        (None, None, None),  # nobody has asked yet
        (None, NOW - 100, None),
        (None, NOW - 301, "ConnectionDown"),
    ],
)
def test_lost_connections_are_reported_after_a_while(
    last_probe: float | None, since: float | None, expected: str | None
) -> None:
    made = machine()
    made.status.conditions = [known("NodeReady"), known("NodeHealthy")]
    seen = Observed(cluster=cluster(), connection=Connection(False, "no answer", last_probe, since))
    found = health.node_conditions(made, seen, NOW)
    assert (None if found is None else found[1].reason) == expected


def test_before_the_first_connection_the_cluster_is_named() -> None:
    found = health.node_conditions(machine(), Observed(cluster=cluster(initialized=False)), NOW)
    assert found is not None
    assert found[0].message == "Cluster c: its control plane is not initialized yet"


def test_a_node_that_was_seen_counts_after_a_restart_before_the_control_plane_is_initialized() -> None:
    made = machine()
    made.status.conditions = [known("NodeReady"), known("NodeHealthy")]
    assert health.node_conditions(made, Observed(cluster=cluster(initialized=False)), NOW) is None


def test_a_control_plane_machine_that_was_started_and_is_silent_names_its_console() -> None:
    made = machine()
    made.metadata.labels = {CONTROL_PLANE_LABEL: ""}
    made.status.initialization.infrastructure_provisioned = True
    found = health.node_conditions(made, Observed(cluster=cluster(initialized=False)), NOW)
    assert found is not None
    assert found[0].message.endswith(
        "does not answer yet: if this lasts, look at its console with 'homeport console m -n ns'"
    )


def test_while_a_machine_goes_its_parts_may_be_gone_before_it() -> None:
    made = machine(deletion_timestamp=THEN)
    made.status.node_ref = MachineNodeReference(name="n")
    made.status.initialization.infrastructure_provisioned = True
    seen = Observed(
        cluster=cluster(),
        infrastructure=Related(made.spec.infrastructure_ref),
        connection=Connection(up=True),
        deletion=Wait("WaitingForBootstrapDeletion", "waiting for it"),
    )
    report(made, seen, NOW)
    found = condition.find(made.status.conditions, "Ready")
    assert found is not None
    assert found["message"] == "* Deleting: being deleted: WaitingForBootstrapDeletion"
    assert ready(made, NOW + 3600).message.startswith("* Deleting: being deleted for more than 15 minutes")


def test_readiness_gates_count_with_their_polarity() -> None:
    made = machine()
    made.spec.readiness_gates = [
        MachineReadinessGate(condition_type="Licensed"),
        MachineReadinessGate(condition_type="Burning", polarity="Negative"),
    ]
    good = ("BootstrapConfigReady", "InfrastructureReady", "NodeHealthy", "Licensed")
    made.status.conditions = [known(kind) for kind in good]
    made.status.conditions += [known(kind, "False") for kind in ("Deleting", "Updating", "Burning")]
    assert ready(made, NOW).status == "True"
    made.status.conditions[-1]["status"] = "True"
    assert ready(made, NOW).status == "False"


# -- up to date ------------------------------------------------------------------------------------------------------


def owned(**differences: Any) -> tuple[MachineSet, MachineDeployment]:
    machine_set = MachineSet(metadata=ObjectMeta(creation_timestamp=THEN))
    deployment = MachineDeployment(metadata=ObjectMeta(name="md"))
    for obj in (machine_set, deployment):
        obj.spec.template.spec.version = "v1.30.0"
        obj.spec.template.spec.infrastructure_ref = ContractRef(api_group="g", kind="VMTemplate", name="t")
    for name, value in differences.items():
        setattr(deployment.spec.template.spec, name, value)
    return machine_set, deployment


@pytest.mark.parametrize(
    ("differences", "message"),
    [
        ({}, ""),
        ({"version": "v1.31.0"}, "* Version v1.30.0, v1.31.0 required"),
        ({"infrastructure_ref": ContractRef(api_group="g", kind="VMTemplate", name="u")}, "* VM is not up-to-date"),
        ({"failure_domain": "b"}, "* Failure domain , b required"),
        ({"min_ready_seconds": 5}, ""),  # carried over to living Machines
    ],
)
def test_a_machine_is_compared_by_what_rolls_out(differences: dict[str, Any], message: str) -> None:
    found = up_to_date(machine(), *owned(**differences), NOW)
    assert found is not None
    assert (found.status, found.message) == ("False" if message else "True", message)


def test_rollout_after_outdates_what_was_made_before() -> None:
    machine_set, deployment = owned()
    deployment.spec.rollout.after = "2025-12-31T23:55:00Z"
    found = up_to_date(machine(), machine_set, deployment, NOW)
    assert found is not None
    assert found.status == "False"
    deployment.spec.rollout.after = "2026-06-01T00:00:00Z"
    found = up_to_date(machine(), machine_set, deployment, NOW)
    assert found is not None
    assert found.status == "True"


def test_nobody_says_up_to_date_of_machines_without_deployment() -> None:
    assert up_to_date(machine(), owned()[0], None, NOW) is None


def test_an_older_revision_is_outdated() -> None:
    machine_set, deployment = owned()
    machine_set.metadata.annotations = {"machinedeployment.clusters.x-k8s.io/revision": "9"}
    deployment.metadata.annotations = {"machinedeployment.clusters.x-k8s.io/revision": "10"}
    assert outdated(machine_set, deployment)
    assert not outdated(machine_set, None)


# -- deletion --------------------------------------------------------------------------------------------------------


def control(*, deleting: bool = False, external: bool = False) -> Related:
    meta = {"name": "cp", **({"deletionTimestamp": THEN} if deleting else {})}
    obj = Unstructured(metadata=meta, status={"externalManagedControlPlane": external})
    return Related(ContractRef(api_group="g", kind="CP", name="cp"), object=obj)


PLANE = machine(labels={"cluster.x-k8s.io/control-plane": ""})


@pytest.mark.parametrize(
    ("given", "plane", "others", "node_ref", "expected"),
    [
        (None, Related(), [PLANE], True, "its Cluster no longer exists"),
        ("deleting", Related(), [PLANE], True, "its Cluster is being deleted"),
        ("there", Related(), [PLANE], False, "it never had a Node"),
        ("there", control(deleting=True), [PLANE], True, "its control plane is being deleted"),
        ("there", control(), [], True, "no control plane machine would remain"),
        ("there", control(external=True), [], True, ""),
        ("there", control(), [PLANE], True, ""),
        ("there", Related(), [PLANE], True, ""),
    ],
)
def test_when_nothing_is_done_about_the_node(
    given: str | None, plane: Related, others: list[Machine], node_ref: bool, expected: str
) -> None:
    made = machine()
    made.status.node_ref = MachineNodeReference(name="n") if node_ref else None
    held = None if given is None else cluster()
    if held is not None and given == "deleting":
        held.metadata.deletion_timestamp = THEN
    assert deletion.why_node_stays(made, held, plane, others) == expected


@pytest.mark.parametrize(
    ("since", "timeout", "expected"),
    [(None, None, None), (None, 0, None), (None, 30, 30.0), (THEN, 700, 100.0), (THEN, 600, 0.0), (THEN, 5, 0.0)],
)
def test_timeouts(since: str | None, timeout: int | None, expected: float | None) -> None:
    assert deletion.left(since, timeout, NOW) == expected


def test_draining_ends_when_the_machine_itself_goes() -> None:
    made = machine()
    vm = Unstructured(metadata={"name": "m"})
    seen = Observed(infrastructure=Related(made.spec.infrastructure_ref, object=vm))
    assert deletion.drains(made, seen, NOW)
    assert deletion.awaits_volumes(made, seen, NOW)
    vm.metadata["deletionTimestamp"] = THEN
    assert not deletion.drains(made, seen, NOW)
    assert not deletion.awaits_volumes(made, seen, NOW)
    del vm.metadata["deletionTimestamp"]
    made.status.deletion.wait_for_pre_terminate_hook_start_time = THEN
    assert not deletion.drains(made, seen, NOW)
