"""k0smotron's kinds are converted between v1beta1 and v1beta2 without loss."""

from __future__ import annotations

from typing import Any

import pytest

from homeport.capi.conversion.registration import converters_of
from homeport.hosted.k0smotron import conversion
from homeport.hosted.k0smotron.conversion import KINDS
from homeport.hosted.k0smotron.name import CLUSTER_NAMESPACE_ANNOTATION, DROPPED_SERVICE_PREFIX

CONVERTERS = converters_of(KINDS)


def up(kind: str, group: str = "k0smotron.io", **parts: Any) -> dict[str, Any]:
    obj = {"apiVersion": f"{group}/v1beta1", "kind": kind, "metadata": {"name": "a", "namespace": "ns"}, **parts}
    return CONVERTERS[group, kind](obj, "v1beta2")


def down(kind: str, group: str = "k0smotron.io", **parts: Any) -> dict[str, Any]:
    obj = {"apiVersion": f"{group}/v1beta2", "kind": kind, "metadata": {"name": "a", "namespace": "ns"}, **parts}
    return CONVERTERS[group, kind](obj, "v1beta1")


def test_fields_that_were_renamed_are_found_under_their_new_names() -> None:
    ref = {"name": "host", "namespace": "ns", "key": "value"}
    new = up(
        "Cluster",
        spec={
            "controllerPlaneFlags": ["--debug"],
            "kubeconfigRef": ref,
            "etcd": {"image": "etcd:v3"},
            "kineDataSourceSecretName": "db",
        },
        status={"ready": True, "reconciliationStatus": "Reconciliation successful", "replicas": 1},
    )
    assert new["spec"]["controlPlaneFlags"] == ["--debug"]
    assert new["spec"]["remoteHostCluster"] == {"kubeconfigRef": ref}
    assert new["spec"]["storage"] == {
        "type": "kine",
        "kine": {"dataSourceSecretName": "db"},
        "etcd": {"image": "etcd:v3"},
    }
    said = {"ready": True, "reconciliationStatus": "Reconciliation successful"}
    assert new["status"] == {"deprecated": {"v1beta1": said}, "replicas": 1}


def test_storage_is_etcd_where_v1beta1_names_no_database() -> None:
    assert up("Cluster", spec={"replicas": 1})["spec"]["storage"] == {"type": "etcd"}


@pytest.mark.parametrize(
    ("group", "kind"), [("k0smotron.io", "Cluster"), ("controlplane.cluster.x-k8s.io", "K0smotronControlPlane")]
)
def test_settings_of_the_service_that_v1beta2_lacks_are_kept_where_the_controller_reads_them(
    group: str, kind: str
) -> None:
    service = {
        "type": "LoadBalancer",
        "labels": {"team": "a"},
        "annotations": {"lb": "internal"},
        "externalTrafficPolicy": "Local",
        "loadBalancerClass": "metal",
    }
    new = up(kind, group, spec={"service": service})
    assert new["spec"]["service"] == {"type": "LoadBalancer"}
    kept = {
        name.removeprefix(DROPPED_SERVICE_PREFIX): conversion.dropped_service_field(
            new["metadata"]["annotations"], field
        )
        for name in new["metadata"]["annotations"]
        if (field := name.removeprefix(DROPPED_SERVICE_PREFIX)) in conversion.SERVICE_FIELDS
    }
    assert kept == {name: value for name, value in service.items() if name != "type"}
    back = CONVERTERS[group, kind](new, "v1beta1")
    assert back["spec"]["service"] == service
    assert "annotations" not in back["metadata"]


def test_a_template_gives_the_settings_of_the_service_to_its_control_planes() -> None:
    new = up(
        "K0smotronControlPlaneTemplate",
        "controlplane.cluster.x-k8s.io",
        spec={"template": {"spec": {"service": {"type": "LoadBalancer", "loadBalancerClass": "metal"}}}},
    )
    annotations = new["spec"]["template"]["metadata"]["annotations"]
    assert annotations == {DROPPED_SERVICE_PREFIX + "loadBalancerClass": '"metal"'}


def test_storage_and_patches_that_v1beta1_lacks_survive_a_write_in_it() -> None:
    patch = {"target": {"kind": "StatefulSet", "component": "etcd"}, "patch": {"type": "merge", "content": "{}"}}
    old = down("Cluster", spec={"storage": {"type": "nats"}, "patches": [patch]})
    assert "storage" not in old["spec"]
    old["spec"]["replicas"] = 3
    again = CONVERTERS["k0smotron.io", "Cluster"](old, "v1beta2")
    assert again["spec"] == {"storage": {"type": "nats"}, "patches": [patch], "replicas": 3}


def test_a_request_for_a_cluster_of_another_namespace_remembers_it() -> None:
    new = up("JoinTokenRequest", spec={"clusterRef": {"name": "kmc", "namespace": "other"}})
    assert new["spec"] == {"clusterName": "kmc"}
    assert new["metadata"]["annotations"] == {CLUSTER_NAMESPACE_ANNOTATION: "other"}
    same = up("JoinTokenRequest", spec={"clusterRef": {"name": "kmc", "namespace": "ns"}})
    assert "annotations" not in same["metadata"]
    old = down("JoinTokenRequest", spec={"clusterName": "kmc"})
    assert old["spec"]["clusterRef"] == {"name": "kmc", "namespace": "ns"}


def test_the_status_of_a_control_plane_is_reported_in_the_words_of_v1beta1() -> None:
    at = "2026-01-01T00:00:00Z"
    condition = {"type": "Available", "status": "True", "reason": "Available", "message": "", "lastTransitionTime": at}
    old = down(
        "K0smotronControlPlane",
        "controlplane.cluster.x-k8s.io",
        status={
            "initialization": {"controlPlaneInitialized": True},
            "externalManagedControlPlane": True,
            "replicas": 3,
            "readyReplicas": 2,
            "availableReplicas": 2,
            "upToDateReplicas": 1,
            "conditions": [condition],
        },
    )
    assert old["status"] == {
        "initialized": True,
        "initialization": {"controlPlaneInitialized": True},
        "ready": True,
        "externalManagedControlPlane": True,
        "replicas": 3,
        "readyReplicas": 2,
        "unavailableReplicas": 1,
        "updatedReplicas": 1,
        "conditions": [{**condition, "type": "ControlPlaneReady"}],
    }
