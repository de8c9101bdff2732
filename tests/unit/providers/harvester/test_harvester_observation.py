"""VirtualMachines and their instances, in the terms of a provider."""

from __future__ import annotations

from typing import Any

import pytest

from homeport.api.meta import Unstructured
from homeport.client.errors import Internal
from homeport.infra.error import Exhausted, Rejected, Unreachable
from homeport.providers.harvester.infracluster.error import provider_error
from homeport.providers.harvester.machine.observation import (
    Machine,
    addresses_of,
    machine_of,
    power_of,
    vm_id,
    why_not_running,
)

Json = dict[str, Any]


def vm(strategy: str = "Always", status: Json | None = None, annotations: Json | None = None) -> Unstructured:
    meta = {"name": "m1", "namespace": "vms", "uid": "vm-1", "annotations": annotations or {}}
    return Unstructured({"metadata": meta, "spec": {"runStrategy": strategy}, "status": status or {}})


def vmi(phase: str, owner: str = "vm-1", networks: list[str] | None = None, **status: Any) -> Unstructured:
    return Unstructured(
        {
            "metadata": {"name": "m1", "namespace": "vms", "ownerReferences": [{"uid": owner}]},
            "spec": {"networks": [{"name": each} for each in networks or ["nic-0"]]},
            "status": {"phase": phase, **status},
        }
    )


@pytest.mark.parametrize(
    ("strategy", "phase", "expected"),
    [
        ("Always", "Running", "on"),
        ("Always", "", "changing"),
        ("Always", "Scheduling", "changing"),
        ("Always", "Failed", "changing"),
        ("Always", "Unknown", "unknown"),
        ("Halted", "", "off"),
        ("RerunOnFailure", "Succeeded", "off"),
        ("RerunOnFailure", "Failed", "changing"),
        ("Once", "Failed", "off"),
    ],
)
def test_power_follows_the_instance_and_the_run_strategy(strategy: str, phase: str, expected: str) -> None:
    assert power_of(Machine(vm(strategy), vmi(phase) if phase else None)) == expected


def test_an_instance_of_an_older_vm_of_the_same_name_does_not_count() -> None:
    assert machine_of(vm(), vmi("Running", owner="an older one")).vmi is None
    assert machine_of(vm(), vmi("Running")).vmi is not None


def test_addresses_are_those_of_the_vms_networks_in_their_order() -> None:
    interfaces = [
        {"interfaceName": "cni0", "ipAddress": "192.168.0.1"},
        {"name": "second", "ipAddress": "10.50.0.5", "ipAddresses": ["10.50.0.5"]},
        {"name": "first", "ipAddress": "10.40.0.200", "ipAddresses": ["10.40.0.200", "10.40.4.7", "fe80::1"]},
    ]
    found = Machine(vm(), vmi("Running", networks=["first", "second"], interfaces=interfaces))
    assert addresses_of(found, virtual="10.40.0.200", first=4) == ["10.40.4.7", "10.50.0.5"]


def test_an_agent_that_is_silent_reports_no_address() -> None:
    found = Machine(vm(), vmi("Running", interfaces=[{"name": "nic-0", "mac": "02:00:00:00:00:01"}]))
    assert addresses_of(found, virtual="", first=4) == []


@pytest.mark.parametrize(
    ("provider_id", "expected"),
    [
        ("harvester://6a1f2c3d-0000-4000-8000-000000000001", "6a1f2c3d-0000-4000-8000-000000000001"),
        ("kubevirt://m1", ""),
        ("", ""),
    ],
)
def test_provider_ids_name_a_vm_by_its_uid(provider_id: str, expected: str) -> None:
    assert vm_id(provider_id) == expected


def test_a_vm_that_fits_nowhere_is_reported_in_the_schedulers_words() -> None:
    conditions = [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/3 nodes"}]
    with pytest.raises(Exhausted, match="0/3 nodes"):
        why_not_running(Machine(vm(status={"printableStatus": "ErrorUnschedulable", "conditions": conditions})), ())


def test_a_vm_that_a_quota_stopped_is_reported() -> None:
    found = vm("Halted", annotations={"harvesterhci.io/insufficient-resource-quota": "limits.memory"})
    with pytest.raises(Exhausted, match=r"limits\.memory"):
        why_not_running(Machine(found), ())


@pytest.mark.parametrize(
    ("phase", "reason", "expected"),
    [
        ("Pending", "", "DVPending"),
        ("Failed", "", "DVFailed"),
        ("ImportInProgress", "ImagePullFailed", "DVImagePullFailed"),
        ("ImportInProgress", "", "DVNotReady"),
        ("Succeeded", "", "CreatingVM"),
    ],
)
def test_a_volume_that_is_not_ready_is_what_a_vm_waits_for(phase: str, reason: str, expected: str) -> None:
    conditions = [{"type": "Running", "status": "False", "reason": reason, "message": "x"}] if reason else []
    volume = Unstructured({"metadata": {"name": "m1-disk"}, "status": {"phase": phase, "conditions": conditions}})
    assert why_not_running(Machine(vm(status={"printableStatus": "Provisioning"})), [volume]).reason == expected


def test_a_claim_that_does_not_exist_is_not_reported_as_a_lack_of_room() -> None:
    """KubeVirt gives such a VM the reason Unschedulable as well."""
    text = "failed to render launch manifest: didn't find PVC shared"
    conditions = [
        {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": text},
        {"type": "Synchronized", "status": "False", "reason": "FailedPvcNotFound", "message": text},
    ]
    found = vm(status={"printableStatus": "ErrorPvcNotFound", "conditions": conditions})
    wait = why_not_running(Machine(found), ())
    assert wait.reason == "VMNotReady"
    assert wait.message == f"VM vms/m1: a PersistentVolumeClaim of it does not exist: {text}"


def test_what_a_webhook_denies_is_rejected_whatever_its_code() -> None:
    text = 'admission webhook "validator.harvesterhci.io" denied the request: failed to get storage class fast'
    assert isinstance(provider_error(Internal(text), "https://harvester", "a Secret"), Rejected)
    assert isinstance(provider_error(Internal("etcd is away"), "https://harvester", "a Secret"), Unreachable)
