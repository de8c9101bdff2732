"""Claims and volumes of simulated clusters: binding, protection, and Pods that wait for them."""

from __future__ import annotations

from typing import Any

import pytest

from homeport.client.errors import NotFound
from homeport.client.protocol import Key
from homeport.runtime.testing import virtual
from homeport.sim.machine.workload.cluster import WorkloadCluster
from homeport.sim.machine.workload.kind import CLAIM, DAEMON_SET, NAMESPACE, POD, STORAGE_CLASS, VOLUME, Json
from homeport.sim.machine.workload.standin.csi.driver import CSI_DRIVER
from unit.sim.machine.sim_kit import simulation
from unit.sim.machine.standin_kit import EVERYWHERE, events, settle, workload

LONGHORN = "driver.longhorn.io"


def volume(name: str, size: str = "1Gi", **more: Any) -> tuple[Json, Any]:
    meta = {"name": name, "labels": more.pop("labels", {})}
    spec = {"capacity": {"storage": size}, "accessModes": ["ReadWriteOnce"], "hostPath": {"path": "/x"}, **more}
    return {"metadata": meta, "spec": spec}, VOLUME


def claim(name: str = "data", size: str = "1Gi", **more: Any) -> tuple[Json, Any]:
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": size}}, **more}
    return {"metadata": {"name": name, "namespace": "default"}, "spec": spec}, CLAIM


def pod(name: str = "user") -> tuple[Json, Any]:
    volumes = [{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}]
    containers = [{"name": "c", "image": "i"}]
    spec = {"containers": containers, "volumes": volumes, "tolerations": EVERYWHERE}
    return {"metadata": {"name": name, "namespace": "default"}, "spec": spec}, POD


async def phase(cluster: WorkloadCluster, kind: Any, name: str) -> str:
    key = Key("default" if kind.namespaced else "", name)
    return str((await cluster.client().get(kind, key))["status"]["phase"])


async def message(cluster: WorkloadCluster, name: str = "user") -> str:
    found = await cluster.client().get(POD, Key("default", name))
    return str(next(each["message"] for each in found["status"]["conditions"] if each["type"] == "PodScheduled"))


@virtual
async def test_a_claim_is_bound_to_the_smallest_volume_that_fits() -> None:
    async with simulation() as sim:
        cluster = await sim.cluster_up()
        await cluster.put([volume("large", "9Gi"), volume("fitting", "2Gi"), volume("small", "1Gi")])
        await cluster.put([volume("other", "2Gi", storageClassName="other"), claim(size="2Gi")])
        await settle(cluster)
        found = await cluster.client().get(CLAIM, Key("default", "data"))
        assert (found["spec"]["volumeName"], found["status"]["phase"]) == ("fitting", "Bound")
        assert found["status"]["capacity"] == {"storage": "2Gi"}
        assert [await phase(cluster, VOLUME, name) for name in ("fitting", "large", "other")] == [
            "Bound",
            "Available",
            "Available",
        ]
        await cluster.client().delete(CLAIM, Key("default", "data"))
        await settle(cluster)
        assert await phase(cluster, VOLUME, "fitting") == "Released"
        await cluster.put([claim("again", "2Gi")])
        await settle(cluster)
        found = await cluster.client().get(CLAIM, Key("default", "again"))
        assert found["spec"]["volumeName"] == "large"  # a released volume is not given to another claim


@virtual
async def test_a_pod_waits_for_its_claim_and_the_claim_for_its_pod() -> None:
    async with simulation() as sim:
        cluster = await sim.cluster_up()
        await cluster.put([pod()])
        await settle(cluster)
        assert await message(cluster) == '0/1 nodes are available: persistentvolumeclaim "data" not found.'
        await cluster.put([claim()])
        await settle(cluster)
        assert await message(cluster) == "0/1 nodes are available: pod has unbound immediate PersistentVolumeClaims."
        await cluster.put([volume("one")])
        await settle(cluster)
        assert await phase(cluster, POD, "user") == "Running"
        await cluster.client().delete(CLAIM, Key("default", "data"))
        await settle(cluster)
        assert await phase(cluster, CLAIM, "data") == "Bound"
        await cluster.client().delete(POD, Key("default", "user"))
        await settle(cluster, 40)
        with pytest.raises(NotFound):
            await cluster.client().get(CLAIM, Key("default", "data"))


@virtual
async def test_longhorn_makes_volumes_on_nodes_with_a_manager() -> None:
    async with simulation() as sim:
        cluster = await sim.cluster_up()
        space = "longhorn-system"
        manager = workload("longhorn-manager", space, "docker.io/longhornio/longhorn-manager:v1.9.1")
        made = {"metadata": {"name": "longhorn"}, "provisioner": LONGHORN, "allowVolumeExpansion": True}
        await cluster.put([({"metadata": {"name": space}}, NAMESPACE), (made, STORAGE_CLASS)])
        await cluster.put([({"metadata": {"name": LONGHORN}, "spec": {}}, CSI_DRIVER)])
        await cluster.put([claim(storageClassName="longhorn"), pod()])
        await settle(cluster)
        assert await phase(cluster, CLAIM, "data") == "Pending"
        await cluster.put([(manager, DAEMON_SET)])
        await settle(cluster, 20)
        assert await phase(cluster, POD, "user") == "Running"
        assert ("ProvisioningSucceeded") in dict(await events(cluster, "data"))
        await cluster.client().delete(POD, Key("default", "user"))
        await cluster.client().delete(CLAIM, Key("default", "data"))
        await settle(cluster, 60)
        assert (await cluster.client().list(VOLUME)).items == []
