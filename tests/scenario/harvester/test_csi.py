"""Claims in workload clusters are claims in Harvester, plugged into the VM of the Pod's node."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from homeport.client.errors import NotFound
from homeport.client.protocol import Key, MergePatch, Query
from homeport.providers.harvester.infracluster.resource import CLAIM as THEIR_CLAIM
from homeport.providers.harvester.infracluster.resource import VM, VMI
from homeport.runtime.event import EVENT
from homeport.runtime.testing import virtual
from homeport.sim.machine.workload.cluster import WorkloadCluster
from homeport.sim.machine.workload.kind import CLAIM, DEPLOYMENT, POD, SECRET, STORAGE_CLASS
from homeport.sim.machine.workload.standin.csi.driver import CSI_DRIVER
from scenario.harvester import manifest
from scenario.harvester.site import TOKEN, Site, harvester_site

NAME = "one"
DRIVER = "driver.harvesterhci.io"
KUBE_SYSTEM = "kube-system"


async def started(site: Site, token: str = TOKEN, **more: Any) -> WorkloadCluster:
    await site.have(*manifest.cluster_objects(NAME, 1, 1))
    await site.running(NAME, 1, 1)
    (cluster,) = site.fleet.clusters()
    config = json.dumps(manifest.kubeconfig(site.harvester.server.pki.ca_pem, token))
    named = {"name": "harvester-csi-config", "namespace": KUBE_SYSTEM}
    labels = {"app": "harvester-csi-driver-controllers"}
    volumes = [{"name": "cloud-config", "secret": {"secretName": named["name"]}}]
    containers = [
        {"name": "csi-provisioner", "image": "docker.io/rancher/mirrored-longhornio-csi-provisioner:v5"},
        {"name": "harvester-csi-driver", "image": "docker.io/rancher/harvester-csi-driver:v0.2.3"},
    ]
    pod = {"containers": containers, "volumes": volumes, "tolerations": [{"operator": "Exists"}]}
    spec = {"selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels}, "spec": pod}}
    made = {"metadata": {"name": "harvester"}, "provisioner": DRIVER, "allowVolumeExpansion": True, **more}
    await cluster.put(
        [
            ({"metadata": named, "stringData": {"cloud-provider-config": config}}, SECRET),
            ({"metadata": {"name": DRIVER}, "spec": {}}, CSI_DRIVER),
            (made, STORAGE_CLASS),
            ({"metadata": {"name": labels["app"], "namespace": KUBE_SYSTEM}, "spec": spec}, DEPLOYMENT),
        ]
    )
    await asyncio.sleep(10)
    return cluster


async def claim(cluster: WorkloadCluster) -> None:
    request = {"resources": {"requests": {"storage": "1Gi"}}}
    spec = {"accessModes": ["ReadWriteOnce"], "storageClassName": "harvester", **request}
    await cluster.client().create({"metadata": {"name": "data", "namespace": "default"}, "spec": spec}, kind=CLAIM)
    await asyncio.sleep(10)


async def plugged(site: Site, kind: Any, volume: str) -> list[str]:
    """VMs, or instances, that have the volume."""
    found = []
    for each in (await site.infra.list(kind)).items:
        spec = each["spec"].get("template", {}).get("spec") or each["spec"]
        if any(one["name"] == volume for one in spec["volumes"]):
            found.append(each.name)
    return found


@virtual
async def test_a_claim_is_a_claim_in_harvester_which_is_plugged_into_the_vm_and_goes_with_it() -> None:
    async with harvester_site() as site:
        cluster = await started(site)
        client = cluster.client()
        before = {each.name for each in (await site.infra.list(THEIR_CLAIM)).items}
        await claim(cluster)
        found = await client.get(CLAIM, Key("default", "data"))
        assert found["status"]["phase"] == "Bound"
        volume = found["spec"]["volumeName"]
        assert {each.name for each in (await site.infra.list(THEIR_CLAIM)).items} - before == {volume}
        volumes = [{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}]
        body = {"containers": [{"name": "c", "image": "i"}], "volumes": volumes}
        await client.create({"metadata": {"name": "user", "namespace": "default"}, "spec": body}, kind=POD)
        await asyncio.sleep(10)
        pod = await client.get(POD, Key("default", "user"))
        assert pod["status"]["phase"] == "Running"
        node = pod["spec"]["nodeName"]
        assert await plugged(site, VM, volume) == await plugged(site, VMI, volume) == [node]
        larger = MergePatch({"spec": {"resources": {"requests": {"storage": "3Gi"}}}})
        await client.patch(CLAIM, Key("default", "data"), larger)
        await asyncio.sleep(10)
        theirs = await site.infra.get(THEIR_CLAIM, Key(manifest.NAMESPACE, volume))
        assert theirs["spec"]["resources"]["requests"]["storage"] == str(3 << 30)
        await client.delete(POD, Key("default", "user"))
        await client.delete(CLAIM, Key("default", "data"))
        await asyncio.sleep(60)
        assert await plugged(site, VM, volume) == await plugged(site, VMI, volume) == []
        assert {each.name for each in (await site.infra.list(THEIR_CLAIM)).items} == before


@virtual
async def test_what_harvester_refuses_is_reported_on_the_claim() -> None:
    async with harvester_site() as site:
        cluster = await started(site, parameters={"hostStorageClass": "absent"})
        await claim(cluster)
        found = await cluster.client().get(CLAIM, Key("default", "data"))
        assert found["status"]["phase"] == "Pending"
        said = {
            each["reason"]: each["message"]
            for each in (await cluster.client().list(EVENT, Query(namespace="default"))).items
        }
        assert 'storageclasses.storage.k8s.io "absent" not found' in said["ProvisioningFailed"]


@virtual
async def test_a_volume_that_is_retained_stays_in_harvester() -> None:
    async with harvester_site() as site:
        cluster = await started(site, reclaimPolicy="Retain")
        await claim(cluster)
        found = await cluster.client().get(CLAIM, Key("default", "data"))
        volume = found["spec"]["volumeName"]
        await cluster.client().delete(CLAIM, Key("default", "data"))
        await asyncio.sleep(30)
        try:
            await site.infra.get(THEIR_CLAIM, Key(manifest.NAMESPACE, volume))
        except NotFound as error:
            raise AssertionError("the volume is gone") from error
