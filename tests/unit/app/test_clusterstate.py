"""A Cluster in one line."""

from __future__ import annotations

from typing import Any

import msgspec

from homeport.api.butler.v1alpha1 import TenantCluster
from homeport.api.cluster.v1beta2 import Cluster
from homeport.app.report.clusterstate import describe_cluster, describe_platform
from homeport.app.report.description import Machines, Unmanaged
from homeport.runtime.clock import parse_time

SINCE = "2026-01-01T00:00:00Z"
NOW = parse_time(SINCE) + 90


def condition(kind: str, status: str, message: str = "") -> dict[str, Any]:
    return {"type": kind, "status": status, "reason": "X", "message": message, "lastTransitionTime": SINCE}


def cluster(*conditions: dict[str, Any], **metadata: Any) -> Cluster:
    status = {
        "conditions": list(conditions),
        "controlPlane": {
            "desiredReplicas": 3,
            "readyReplicas": 2,
            "versions": [{"version": "v1.30.0", "replicas": 1}, {"version": "v1.29.0", "replicas": 2}],
        },
        "workers": {"desiredReplicas": 2, "readyReplicas": 2, "versions": [{"version": "v1.29.0", "replicas": 2}]},
    }
    body = {"metadata": {"name": "pier", "namespace": "default", **metadata}, "status": status}
    return msgspec.convert(body, Cluster)


def test_health_machines_and_versions() -> None:
    found = describe_cluster(cluster(condition("Available", "True")), NOW)
    assert (found.health, found.cause, found.version) == ("Available", "", "v1.29.0 > v1.30.0")
    assert (found.control_plane, found.workers) == (Machines(2, 3), Machines(2, 2))
    assert found.seconds == 90
    assert not found.fine  # a control plane machine is missing


def test_the_cause_is_the_first_line_of_what_the_cluster_says() -> None:
    message = "NutanixCluster pier: no such Secret.\n* InfrastructureReady: no such Secret"
    found = describe_cluster(cluster(condition("Available", "False", message)), NOW)
    assert (found.health, found.cause) == ("NotAvailable", "NutanixCluster pier: no such Secret")


def test_a_cluster_that_runs_and_can_not_be_managed_says_so_and_since_when() -> None:
    text = "NutanixCluster pier: Prism Central does not answer"
    lost = condition("InfrastructureReachable", "False", text)
    found = describe_cluster(cluster(condition("Available", "True"), lost), NOW)
    assert found.unmanaged == Unmanaged(f"it runs, but can't be managed now: {text}", SINCE)
    assert (found.health, found.cause) == ("Available", "")
    assert describe_cluster(cluster(condition("Available", "False", text), lost), NOW).unmanaged is None


def test_what_is_under_way_is_named_with_its_kind() -> None:
    found = describe_cluster(
        cluster(
            condition("Available", "True"),
            condition("ScalingUp", "True", "* KubeadmControlPlane pier: from 2 to 3 replicas\n* and 1 more"),
            condition("Remediating", "True", "* Machine a:\n  * NodeReady: gone\n  * more"),
            condition("RollingOut", "False", "* Machine c: no"),
        ),
        NOW,
    )
    assert found.under_way[:2] == ["Machine a: NodeReady: gone", "KubeadmControlPlane pier: from 2 to 3 replicas"]


def test_a_cluster_that_is_deleted_tells_what_it_waits_for() -> None:
    deleting = cluster(
        condition("Available", "False", "x"),
        condition("Deleting", "True", "2 Machines remain"),
        condition("ScalingDown", "True", "* MachineDeployment md: from 2 to 0 replicas"),
        deletionTimestamp=SINCE,
    )
    found = describe_cluster(deleting, NOW)
    assert (found.health, found.under_way) == ("Deleting", ["Cluster pier: 2 Machines remain"])


def test_a_cluster_without_status() -> None:
    new = msgspec.convert({"metadata": {"name": "pier", "namespace": "default"}}, Cluster)
    found = describe_cluster(new, NOW)
    assert (found.health, found.cause, found.version) == ("Unknown", "it has not been reconciled yet", "")


def test_a_tenant_cluster_stands_for_its_cluster_and_reports_its_own_cause() -> None:
    conditions = [condition("Ready", "False", "ProviderConfig nutanix-prod: image 'x' not found")]
    body = {"metadata": {"name": "shop", "namespace": "apps"}, "status": {"conditions": conditions}}
    tenant = msgspec.convert(body, TenantCluster)
    found = describe_platform(tenant, describe_cluster(cluster(condition("Available", "True")), NOW), NOW)
    assert (found.kind, found.namespace, found.name, found.cluster) == ("TenantCluster", "apps", "shop", "default/pier")
    assert (found.health, found.cause) == ("NotReady", "ProviderConfig nutanix-prod: image 'x' not found")
    assert (found.control_plane.ready, found.home) == (2, "default")
    alone = describe_platform(tenant, None, NOW)
    assert (alone.cluster, alone.home, alone.version) == ("", "apps", "")
