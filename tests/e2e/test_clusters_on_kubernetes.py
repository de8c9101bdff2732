"""Our controllers on a real kube-apiserver, with upstream's definitions of Cluster API in place of ours."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

from capikit import generic, manifest, upstream
from capikit.outside import OutsideHarness, outside
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
async def harness(kube: RealKube) -> AsyncIterator[OutsideHarness]:
    async with outside(kube, upstream.definitions("core", "bootstrap", "controlplane", newest=True)) as made:
        yield made


@pytest.fixture
async def older_yard(kube: RealKube) -> AsyncIterator[OutsideHarness]:
    """With the definitions of the release before, which know fewer fields."""
    async with outside(kube, upstream.definitions("core", "bootstrap", "controlplane")) as made:
        yield made


async def deleted(harness: OutsideHarness, name: str) -> None:
    await harness.delete(Cluster, name)
    await harness.gone(Cluster, name, timeout=120)
    for kind in _GONE_WITH_A_CLUSTER:
        left = [f"{each.metadata}" for each in (await harness.client.list(kind, Query())).items]
        assert not left, f"{kind}: {left}"
    assert not harness.infra.machines
    assert not harness.infra.balancers


async def kubelet_versions(harness: OutsideHarness) -> list[str]:
    (workload,) = harness.fleet.clusters()
    return sorted(n["status"]["nodeInfo"]["kubeletVersion"] for n in (await workload.client().list(NODE)).items)


async def test_a_cluster_of_one_machine_comes_up_and_goes(harness: OutsideHarness) -> None:
    await harness.create("one", 1, 0)
    await harness.available("one", timeout=120)
    await harness.steady("one", 1, 0, "v1.30.0", timeout=120)
    (machine,) = await harness.machines("one")
    assert machine.status.phase == "Running"
    await deleted(harness, "one")


async def test_a_cluster_of_three_and_three_scales_and_goes(harness: OutsideHarness) -> None:
    await harness.create("three", 3, 3)
    await harness.available("three", timeout=120)
    await harness.steady("three", 3, 3, "v1.30.0", timeout=120)
    assert {m.status.phase for m in await harness.machines("three")} == {"Running"}
    assert len(harness.infra.created) == 6
    await harness.patch(KubeadmControlPlane, "three-cp", {"spec": {"replicas": 1}})
    await harness.patch(MachineDeployment, "three-md-0", {"spec": {"replicas": 4}})
    await harness.steady("three", 1, 4, "v1.30.0", timeout=120)
    (workload,) = harness.fleet.clusters()
    assert len(workload.etcd.members) == 1
    assert len(harness.infra.created) == 7
    await deleted(harness, "three")


async def test_a_cluster_is_upgraded_by_one_minor_with_its_workers_following(harness: OutsideHarness) -> None:
    await harness.create("up", 3, 2, "v1.29.0")
    await harness.steady("up", 3, 2, "v1.29.0", timeout=120)
    await harness.patch(KubeadmControlPlane, "up-cp", {"spec": {"version": "v1.30.0"}})
    await harness.steady("up", 3, 2, "v1.30.0", timeout=120)
    await harness.patch(MachineDeployment, "up-md-0", {"spec": {"template": {"spec": {"version": "v1.30.0"}}}})
    await harness.steady("up", 3, 2, "v1.30.0", timeout=120)
    assert await kubelet_versions(harness) == ["v1.30.0"] * 5
    assert len(harness.infra.created) == 10
    await deleted(harness, "up")


async def test_a_cluster_comes_up_and_goes_with_the_definitions_of_the_release_before(
    older_yard: OutsideHarness,
) -> None:
    await older_yard.create("before", 1, 1)
    await older_yard.available("before", timeout=120)
    await older_yard.steady("before", 1, 1, "v1.30.0", timeout=120)
    await deleted(older_yard, "before")


async def test_controllers_begun_again_find_the_cluster_as_it_is(harness: OutsideHarness) -> None:
    await harness.create("again", 1, 1)
    await harness.steady("again", 1, 1, "v1.30.0", timeout=120)
    await harness.restart()
    await harness.patch(MachineDeployment, "again-md-0", {"spec": {"replicas": 2}})
    await harness.steady("again", 1, 2, "v1.30.0", timeout=120)
    assert len(harness.infra.created) == 3
    await deleted(harness, "again")


async def test_the_older_version_of_the_api_is_converted_by_our_webhook(harness: OutsideHarness) -> None:
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
    await harness.plane.have(cluster, infra, control_plane, manifest.template("old-cp"))
    await harness.available("old", timeout=120)
    await harness.steady("old", 1, 0, "v1.30.0", timeout=120)
    kept = await harness.client.get(KubeadmControlPlane, Key("default", "old-cp"))
    assert kept.spec.machine_template.spec.deletion.node_drain_timeout_seconds == 60
    shown = await harness.client.get(OLD_CLUSTER, Key("default", "old"))
    assert shown["status"]["phase"] == "Provisioned"
    assert shown["status"]["infrastructureReady"] is True
    await harness.client.patch(OLD_CONTROL_PLANE, Key("default", "old-cp"), MergePatch({"spec": {"replicas": 3}}))
    await harness.steady("old", 3, 0, "v1.30.0", timeout=120)
    old = await harness.client.get(OLD_CONTROL_PLANE, Key("default", "old-cp"))
    assert old["status"]["replicas"] == 3
    assert old["status"]["initialized"] is True
    await deleted(harness, "old")


async def test_a_cluster_that_cannot_work_is_refused_by_our_webhook(harness: OutsideHarness) -> None:
    (bad,) = [each for each in manifest.cluster_objects("bad", 1, 0) if each["kind"] == "KubeadmControlPlane"]
    bad["spec"]["replicas"] = 2
    with pytest.raises(Invalid, match="replicas"):
        await harness.plane.have(bad)
