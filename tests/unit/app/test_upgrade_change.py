"""The changes that upgrade a cluster, and what they do."""

from __future__ import annotations

from collections import Counter

import pytest

from homeport.api.meta import Unstructured
from homeport.app.upkeep.upgrade import NoUpgrade, upgrade
from unit.app.test_rehearsal_plan import planned, running


def cluster() -> Unstructured:
    return next(each for each in running().objects if each.get("kind") == "Cluster")


def test_a_cluster_gets_templates_with_the_image_of_the_version_and_all_machines_are_replaced() -> None:
    changes = upgrade(cluster(), running().objects, "v1.30.0")
    created = [each.after for each in changes if each.patch is None]
    assert {each["spec"]["template"]["spec"]["image"]["name"] for each in created} == {"ubuntu-22.04-kube-v1.30.0"}
    assert [each.after["kind"] for each in changes if each.patch is not None] == [
        "KubeadmControlPlane",
        "MachineDeployment",
    ]
    plan = planned([each.after for each in changes])
    assert Counter((row.action, row.after) for row in plan.machines) == {("replace", "v1.30.0"): 5}
    assert plan.unfinished == []


@pytest.mark.parametrize(
    ("to", "said"),
    [
        ("v1.29.0", "has version v1.29.0 already"),
        ("v1.28.0", "can't be downgraded"),
        ("v1.31.0", "upgrade to v1.30 first"),
        ("newest", "is not a valid Kubernetes version"),
    ],
)
def test_versions_that_do_not_follow_are_refused(to: str, said: str) -> None:
    with pytest.raises(NoUpgrade, match=said):
        upgrade(cluster(), running().objects, to)


def test_platforms_and_topologies_change_one_field() -> None:
    tenant = Unstructured(
        {
            "apiVersion": "butler.butlerlabs.dev/v1alpha1",
            "kind": "TenantCluster",
            "metadata": {"name": "shop", "namespace": "default"},
            "spec": {"kubernetesVersion": "v1.33.1", "workers": {"replicas": 2}},
        }
    )
    [change] = upgrade(tenant, [], "v1.34.2")
    assert change.patch == {"spec": {"kubernetesVersion": "v1.34.2"}}
    assert change.after["spec"]["workers"] == {"replicas": 2}
    del tenant["spec"]["kubernetesVersion"]  # the version is a default of the platform
    tenant["status"] = {"observedState": {"kubernetesVersion": "v1.34.2"}}
    with pytest.raises(NoUpgrade, match=r"v1\.33\.0 is older than v1\.34\.2"):
        upgrade(tenant, [], "v1.33.0")
    deployment = Unstructured(
        {
            "apiVersion": "k0rdent.mirantis.com/v1beta1",
            "kind": "ClusterDeployment",
            "metadata": {"name": "demo", "namespace": "kcm-system"},
            "spec": {"template": "nutanix-k0s-hcp", "config": {"k0s": {"version": "v1.29.2+k0s.0"}}},
        }
    )
    [change] = upgrade(deployment, [], "v1.30.1+k0s.0")
    assert change.patch == {"spec": {"config": {"k0s": {"version": "v1.30.1+k0s.0"}}}}
    deployment["spec"]["template"] = "nutanix-kubeadm-hcp"
    with pytest.raises(NoUpgrade, match=r"change spec\.template"):
        upgrade(deployment, [], "v1.30.1")
    classy = Unstructured(
        {
            "apiVersion": "cluster.x-k8s.io/v1beta2",
            "kind": "Cluster",
            "metadata": {"name": "a", "namespace": "default"},
            "spec": {"topology": {"version": "v1.29.0"}},
        }
    )
    [change] = upgrade(classy, [], "v1.30.0")
    assert change.patch == {"spec": {"topology": {"version": "v1.30.0"}}}
