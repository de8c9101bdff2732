"""What a timeline makes of objects: their conditions, and who changed them."""

from __future__ import annotations

from typing import Any

import msgspec

from homeport.api.meta import Unstructured
from homeport.dashboard.topic.timeline import changes, conditions
from homeport.dashboard.topic.users import Write, attributed


def machine_deployment(**metadata: Any) -> Unstructured:
    return Unstructured(
        {
            "apiVersion": "cluster.x-k8s.io/v1beta2",
            "kind": "MachineDeployment",
            "metadata": {"name": "workers", "namespace": "default", "uid": "u", **metadata},
            "status": {
                "conditions": [
                    {
                        "type": "Available",
                        "status": "False",
                        "reason": "NotAvailable",
                        "message": "1 of 2 replicas\nis available",
                        "lastTransitionTime": "2026-01-01T00:00:00Z",
                    }
                ]
            },
        }
    )


def test_a_condition_is_an_entry_of_its_last_change() -> None:
    [found] = conditions(machine_deployment())
    assert (found["reason"], found["message"]) == ("Available is False", "1 of 2 replicas is available")
    assert (found["type"], found["time"], found["name"]) == ("Warning", "2026-01-01T00:00:00Z", "workers")


def test_a_change_names_who_made_it_and_the_fields_but_not_controllers() -> None:
    fields: dict[str, Any] = {
        "f:metadata": {"f:labels": {"f:a": {}}},
        "f:spec": {"f:replicas": {}, "f:template": {"f:spec": {}}},
    }
    written = {"operation": "Update", "time": "2026-01-01T00:00:00Z"}
    managed = [
        {"manager": "kubectl-edit", **written, "fieldsV1": fields},
        {"manager": "capi-machinedeployment", **written, "fieldsV1": {"f:metadata": {"f:finalizers": {}}}},
        {"manager": "capi-machinedeployment", **written, "subresource": "status", "fieldsV1": {"f:status": {}}},
        {"manager": "argocd", **written, "operation": "Apply", "fieldsV1": {f"f:x{n}": {} for n in range(9)}},
    ]
    edited, applied = changes([machine_deployment(managedFields=managed)])
    assert (edited["by"], edited["reason"]) == ("kubectl-edit", "Changed")
    assert edited["message"] == "fields: metadata.labels, spec.replicas, spec.template"
    assert applied["reason"] == "Applied"
    assert applied["message"].endswith(" and 3 more")


WRITE = Write(
    1_767_225_600.4, "jane", "patch", "kubectl-edit", "cluster.x-k8s.io", "machinedeployments", "", "default", "workers",
    kind="MachineDeployment", api_version="cluster.x-k8s.io/v1beta2",
)  # fmt: skip


def test_a_change_names_the_user_where_the_server_knows_the_write() -> None:
    fields: dict[str, Any] = {"f:spec": {"f:replicas": {}}}
    managed = [
        {"manager": "kubectl-edit", "operation": "Update", "time": "2026-01-01T00:00:00Z", "fieldsV1": fields},
        {"manager": "argocd", "operation": "Apply", "time": "2026-01-01T00:00:00Z", "fieldsV1": fields},
    ]
    deleted = msgspec.structs.replace(WRITE, verb="delete", name="workers-2", time=WRITE.time + 60)
    elsewhere = msgspec.structs.replace(WRITE, name="other")
    edited, applied, gone = attributed(
        changes([machine_deployment(managedFields=managed)]), [WRITE, deleted, elsewhere], "workers"
    )
    assert (edited["by"], edited["message"]) == ("jane, with kubectl-edit", "fields: spec.replicas")
    assert applied["by"] == "argocd"
    assert (gone["reason"], gone["by"], gone["name"]) == ("Deleted", "jane, with kubectl-edit", "workers-2")
