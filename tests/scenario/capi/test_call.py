"""What a cluster that comes up, and one that grows, is asked for."""

from __future__ import annotations

from collections import Counter

from capikit.harness import Harness, harness
from homeport.api.controlplane.v1beta2 import KubeadmControlPlane
from homeport.api.meta import Resource
from homeport.client.protocol import Query
from homeport.runtime.testing import virtual

_BINDING = Resource("rbac.authorization.k8s.io", "v1", "ClusterRoleBinding", "clusterrolebindings", namespaced=False)


def requests(h: Harness) -> Counter[str]:
    (workload,) = h.fleet.clusters()
    assert workload.server.http is not None
    return Counter(workload.server.http.metrics.requests())


async def rights(h: Harness) -> set[str]:
    (workload,) = h.fleet.clusters()
    found = await workload.client().list(_BINDING, Query())
    return {each.name for each in found.items}


@virtual
async def test_a_single_control_plane_is_asked_once_for_its_configuration_and_not_for_rights() -> None:
    async with harness() as h:
        await h.create("one", 1, 0, "v1.30.0")
        await h.steady("one", 1, 0, "v1.30.0")
        asked = requests(h)
        assert asked["GET configmaps"] == 1
        assert asked["GET clusterrolebindings"] == 0


@virtual
async def test_rights_that_newer_versions_need_are_there_before_another_control_plane_joins() -> None:
    async with harness() as h:
        await h.create("one", 1, 0, "v1.30.0")
        await h.steady("one", 1, 0, "v1.30.0")
        assert "kubeadm:apiserver-kubelet-client" not in await rights(h)
        await h.patch(KubeadmControlPlane, "one-cp", {"spec": {"replicas": 3}})
        await h.steady("one", 3, 0, "v1.30.0")
        assert await rights(h) >= {"kubeadm:cluster-admins", "kubeadm:apiserver-kubelet-client"}


@virtual
async def test_a_new_cluster_is_looked_at_a_few_times_and_not_for_what_its_controllers_wrote_themselves() -> None:
    async with harness() as h:
        await h.create("one", 1, 0, "v1.30.0")
        await h.steady("one", 1, 0, "v1.30.0")
        looks = {each.name: sum(each.metrics.counts.values()) for each in h.plane.manager.controllers}
        assert looks["cluster"] <= 13
        assert looks["machine"] <= 10
