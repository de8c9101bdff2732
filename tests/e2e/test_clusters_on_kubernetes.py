"""Our controllers on a real kube-apiserver, with upstream's definitions of Cluster API in place of ours."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

from capikit import generic, manifest, upstream
from capikit.outside import OutsideYard, outside
from homeport.api.bootstrap.v1beta2 import KubeadmConfig
from homeport.api.cluster.v1beta2 import Cluster, Machine, MachineDeployment, MachineSet
from homeport.api.controlplane.v1beta2 import KubeadmControlPlane
from homeport.api.meta import Resource
from homeport.client.errors import Invalid
from homeport.client.protocol import Key, MergePatch, Query
from homeport.sim.machine.workload.kind import NODE
from realkube import RealKube

pytestmark = [pytest.mark.timeout(300)]

SECRET = Resource("", "v1", "Secret", "secrets")
OLD_CLUSTER = Resource("cluster.x-k8s.io", "v1beta1", "Cluster", "clusters")
OLD_DEPLOYMENT = Resource("cluster.x-k8s.io", "v1beta1", "MachineDeployment", "machinedeployments")
OLD_CONTROL_PLANE = Resource("controlplane.cluster.x-k8s.io", "v1beta1", "KubeadmControlPlane", "kubeadmcontrolplanes")
_GONE_WITH_A_CLUSTER: tuple[Any, ...] = (
    Cluster, Machine, MachineDeployment, MachineSet, KubeadmControlPlane, KubeadmConfig, generic.CLUSTER, generic.MACHINE,
)  # fmt: skip


@pytest.fixture(scope="module")
def kube(binaries: dict[str, Path] | str) -> Iterator[RealKube]:
    if isinstance(binaries, str):
        pytest.skip(binaries)
    if reason := upstream.lacking("manifests"):
        pytest.skip(reason)
    with RealKube(binaries) as made:
        yield made


@pytest.fixture
async def yard(kube: RealKube) -> AsyncIterator[OutsideYard]:
    async with outside(kube, upstream.definitions("core", "bootstrap", "controlplane", newest=True)) as made:
        yield made


@pytest.fixture
async def older_yard(kube: RealKube) -> AsyncIterator[OutsideYard]:
    """With the definitions of the release before, which know fewer fields."""
    async with outside(kube, upstream.definitions("core", "bootstrap", "controlplane")) as made:
        yield made


async def deleted(yard: OutsideYard, name: str) -> None:
    await yard.delete(Cluster, name)
    await yard.gone(Cluster, name, timeout=120)
    for kind in _GONE_WITH_A_CLUSTER:
        left = [f"{each.metadata}" for each in (await yard.client.list(kind, Query())).items]
        assert not left, f"{kind}: {left}"
    assert not yard.infra.machines
    assert not yard.infra.balancers


async def kubelet_versions(yard: OutsideYard) -> list[str]:
    (workload,) = yard.fleet.clusters()
    return sorted(n["status"]["nodeInfo"]["kubeletVersion"] for n in (await workload.client().list(NODE)).items)


async def test_a_cluster_of_one_machine_comes_up_and_goes(yard: OutsideYard) -> None:
    await yard.create("one", 1, 0)
    await yard.available("one", timeout=120)
    await yard.steady("one", 1, 0, "v1.30.0", timeout=120)
    (machine,) = await yard.machines("one")
    assert machine.status.phase == "Running"
    await deleted(yard, "one")


async def test_a_cluster_of_three_and_three_scales_and_goes(yard: OutsideYard) -> None:
    await yard.create("three", 3, 3)
    await yard.available("three", timeout=120)
    await yard.steady("three", 3, 3, "v1.30.0", timeout=120)
    assert {m.status.phase for m in await yard.machines("three")} == {"Running"}
    assert len(yard.infra.created) == 6
    await yard.patch(KubeadmControlPlane, "three-cp", {"spec": {"replicas": 1}})
    await yard.patch(MachineDeployment, "three-md-0", {"spec": {"replicas": 4}})
    await yard.steady("three", 1, 4, "v1.30.0", timeout=120)
    (workload,) = yard.fleet.clusters()
    assert len(workload.etcd.members) == 1
    assert len(yard.infra.created) == 7
    await deleted(yard, "three")


async def test_a_cluster_is_upgraded_by_one_minor_with_its_workers_following(yard: OutsideYard) -> None:
    await yard.create("up", 3, 2, "v1.29.0")
    await yard.steady("up", 3, 2, "v1.29.0", timeout=120)
    await yard.patch(KubeadmControlPlane, "up-cp", {"spec": {"version": "v1.30.0"}})
    await yard.steady("up", 3, 2, "v1.30.0", timeout=120)
    await yard.patch(MachineDeployment, "up-md-0", {"spec": {"template": {"spec": {"version": "v1.30.0"}}}})
    await yard.steady("up", 3, 2, "v1.30.0", timeout=120)
    assert await kubelet_versions(yard) == ["v1.30.0"] * 5
    assert len(yard.infra.created) == 10
    await deleted(yard, "up")


async def test_a_cluster_comes_up_and_goes_with_the_definitions_of_the_release_before(older_yard: OutsideYard) -> None:
    await older_yard.create("before", 1, 1)
    await older_yard.available("before", timeout=120)
    await older_yard.steady("before", 1, 1, "v1.30.0", timeout=120)
    await deleted(older_yard, "before")


async def test_controllers_begun_anew_find_the_cluster_as_it_is(yard: OutsideYard) -> None:
    await yard.create("again", 1, 1)
    await yard.steady("again", 1, 1, "v1.30.0", timeout=120)
    await yard.restart()
    await yard.patch(MachineDeployment, "again-md-0", {"spec": {"replicas": 2}})
    await yard.steady("again", 1, 2, "v1.30.0", timeout=120)
    assert len(yard.infra.created) == 3
    await deleted(yard, "again")


async def test_the_older_version_of_the_api_is_converted_by_our_webhook(yard: OutsideYard) -> None:
    """Written in v1beta1, run in v1beta2, read and changed in v1beta1."""
    reference = {"apiVersion": f"{generic.GROUP}/v1", "kind": "GenericMachineTemplate", "name": "old-cp"}
    provider_id = {"provider-id": "generic://{{ ds.meta_data.instance_id }}"}
    registration = {"nodeRegistration": {"kubeletExtraArgs": provider_id}}
    cluster = {
        "apiVersion": OLD_CLUSTER.api_version,
        "kind": "Cluster",
        "metadata": {"name": "old", "namespace": "default"},
        "spec": {
            "clusterNetwork": {"pods": {"cidrBlocks": ["192.168.0.0/16"]}},
            "controlPlaneRef": {
                "apiVersion": OLD_CONTROL_PLANE.api_version, "kind": "KubeadmControlPlane", "name": "old-cp",
            },
            "infrastructureRef": {"apiVersion": f"{generic.GROUP}/v1", "kind": "GenericCluster", "name": "old"},
        },
    }  # fmt: skip
    control_plane = {
        "apiVersion": OLD_CONTROL_PLANE.api_version,
        "kind": "KubeadmControlPlane",
        "metadata": {"name": "old-cp", "namespace": "default"},
        "spec": {
            "replicas": 1,
            "version": "v1.30.0",
            "machineTemplate": {"infrastructureRef": reference, "nodeDrainTimeout": "1m0s"},
            "kubeadmConfigSpec": {"initConfiguration": registration, "joinConfiguration": registration},
        },
    }
    infra = {
        "apiVersion": f"{generic.GROUP}/v1",
        "kind": "GenericCluster",
        "metadata": {"name": "old", "namespace": "default"},
        "spec": {},
    }
    await yard.plane.have(cluster, infra, control_plane, manifest.template("old-cp"))
    await yard.available("old", timeout=120)
    await yard.steady("old", 1, 0, "v1.30.0", timeout=120)
    kept = await yard.client.get(KubeadmControlPlane, Key("default", "old-cp"))
    assert kept.spec.machine_template.spec.deletion.node_drain_timeout_seconds == 60
    shown = await yard.client.get(OLD_CLUSTER, Key("default", "old"))
    assert shown["status"]["phase"] == "Provisioned"
    assert shown["status"]["infrastructureReady"] is True
    await yard.client.patch(OLD_CONTROL_PLANE, Key("default", "old-cp"), MergePatch({"spec": {"replicas": 3}}))
    await yard.steady("old", 3, 0, "v1.30.0", timeout=120)
    old = await yard.client.get(OLD_CONTROL_PLANE, Key("default", "old-cp"))
    assert old["status"]["replicas"] == 3
    assert old["status"]["initialized"] is True
    await deleted(yard, "old")


async def test_a_cluster_that_cannot_work_is_refused_by_our_webhook(yard: OutsideYard) -> None:
    (bad,) = [each for each in manifest.whole("bad", 1, 0) if each["kind"] == "KubeadmControlPlane"]
    bad["spec"]["replicas"] = 2
    with pytest.raises(Invalid, match="replicas"):
        await yard.plane.have(bad)
