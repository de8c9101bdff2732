"""A cluster that runs and can't be managed now is reported once, with the time, and not by each of its machines."""

from __future__ import annotations

import msgspec

from homeport.api.meta import Unstructured
from homeport.app.report.description import ClusterState, Finding, Unfinished, Unmanaged
from homeport.app.report.progress import progress
from homeport.app.report.unmanaged import mark, unmanaged

SINCE = "2026-01-01T00:00:00Z"
DENIED = "Prism Central pc:9440 rejects the credentials of Secret default/pier-prism"
LOST = Unmanaged(f"it runs, but can't be managed now: NutanixCluster pier: {DENIED}", SINCE)
PIER = ClusterState("default", "pier", "Available", unmanaged=LOST)


def lost(kind: str, name: str, cluster: str = "default/pier") -> Unfinished:
    said = Unmanaged(f"it runs, but can't be managed now: {kind} {name}: {DENIED}", SINCE)
    return Unfinished(kind, f"default/{name}", "AccessDenied", DENIED, wrong=True, unmanaged=said, cluster=cluster)


def infra(ready: str, reachable: str) -> Unstructured:
    conditions = [
        {"type": "Ready", "status": ready, "reason": "X"},
        {"type": "InfrastructureReachable", "status": reachable, "message": DENIED, "lastTransitionTime": SINCE},
    ]
    return Unstructured(
        {
            "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1",
            "kind": "NutanixMachine",
            "metadata": {"name": "a", "namespace": "default"},
            "status": {"conditions": conditions},
        }
    )


def test_the_machines_are_folded_below_the_line_of_their_cluster() -> None:
    items = [lost("NutanixCluster", "pier"), lost("NutanixMachine", "a"), lost("NutanixMachine", "b")]
    same = ["NutanixCluster pier", "NutanixMachine a", "NutanixMachine b"]
    assert progress(items, [PIER]) == ([Finding("Cluster", "default/pier", LOST.message, since=SINCE, same=same)], [])


def test_a_cluster_whose_machines_alone_report_it_says_so_too() -> None:
    pier, quay = mark(
        [msgspec.structs.replace(PIER, unmanaged=None), ClusterState("default", "quay", "Available")],
        [lost("NutanixMachine", "a")],
    )
    assert pier.unmanaged == Unmanaged(f"it runs, but can't be managed now: NutanixMachine a: {DENIED}", SINCE)
    assert (pier.fine, quay.unmanaged, quay.fine) == (False, None, True)


def test_the_line_is_about_the_object_of_the_platform_where_there_is_one() -> None:
    tenant = ClusterState("shop", "t", "Ready", kind="TenantCluster", cluster="default/pier", unmanaged=LOST)
    [found] = progress([lost("NutanixMachine", "a")], [tenant])[0]
    assert (found.kind, found.object, found.same) == ("TenantCluster", "shop/t", ["NutanixMachine a"])


def test_a_cluster_that_is_not_healthy_has_a_cause_and_objects_of_no_cluster_stay() -> None:
    sick = ClusterState("default", "pier", "NotAvailable", cause="nothing answers", unmanaged=None, seconds=900)
    items = [lost("NutanixMachine", "pier-1"), lost("NutanixMachine", "other-1", "default/")]
    assert [each.object for each in progress(items, [sick])[0]] == ["default/other-1", "default/pier-1", "default/pier"]


def test_a_machine_that_does_not_run_yet_reports_what_holds_it_up() -> None:
    assert unmanaged(infra("True", "False")) == Unmanaged(
        f"it runs, but can't be managed now: NutanixMachine a: {DENIED}", SINCE
    )
    assert unmanaged(infra("False", "False")) is None
    assert unmanaged(infra("True", "True")) is None
