"""Claims in workload clusters get volume groups in Prism Central, made by the stand-in of Nutanix' CSI driver."""

from __future__ import annotations

import asyncio

from homeport.api.cluster.v1beta2 import Cluster
from homeport.client.protocol import Key, MergePatch
from homeport.runtime.testing import virtual
from homeport.sim.engine.fault import Status
from homeport.sim.machine.workload.kind import CLAIM, DEPLOYMENT, POD, SECRET, VOLUME
from scenario.nutanix import manifest
from scenario.nutanix.csi import CLASS, DRIVER, SPACE, Csi
from scenario.nutanix.site import Site, nutanix_site

NAME = "one"


async def started(site: Site, workers: int = 1) -> Csi:
    await site.have(*manifest.cluster_objects(NAME, 1, workers))
    await site.running(NAME, 1, workers)
    return Csi(site)


@virtual
async def test_a_claim_has_a_volume_group_which_follows_its_pod_and_goes_with_the_claim() -> None:
    async with nutanix_site() as site:
        csi = await started(site)
        await csi.install()
        await csi.claim(size="2Gi")
        assert await csi.phase() == "Bound"
        (group,) = csi.groups()
        volume = await csi.volume()
        assert group.name == volume.name
        assert [disk.size_bytes for disk in group.disks] == [2 << 30]
        assert volume["spec"]["csi"]["volumeHandle"] == f"NutanixVolumes-{group.ext_id}"
        assert volume["spec"]["csi"]["fsType"] == "xfs"
        assert (await csi.events())["ProvisioningSucceeded"] == f"Successfully provisioned volume {group.name}"
        assert csi.attached() == []

        await csi.use()
        pod = await csi.pod()
        assert pod["status"]["phase"] == "Running"
        assert csi.attached() == [pod["spec"]["nodeName"]]

        await csi.patch_claim({"spec": {"resources": {"requests": {"storage": "5Gi"}}}})
        assert [disk.size_bytes for disk in csi.groups()[0].disks] == [5 << 30]
        claim = await csi.client.get(CLAIM, Key("default", "data"))
        assert claim["status"]["capacity"]["storage"] == "5Gi"

        await csi.delete(CLAIM, "data")
        assert await csi.exists(CLAIM, "data")  # a Pod still uses it
        await csi.delete(POD, "database")
        assert not await csi.exists(CLAIM, "data")
        assert not await csi.exists(VOLUME, group.name)
        assert csi.groups() == []


@virtual
async def test_a_volume_that_is_retained_stays_when_its_claim_is_gone() -> None:
    async with nutanix_site() as site:
        csi = await started(site)
        await csi.install(reclaimPolicy="Retain")
        await csi.claim()
        await csi.delete(CLAIM, "data")
        assert (await csi.volume())["status"]["phase"] == "Released"
        assert len(csi.groups()) == 1


@virtual
async def test_a_volume_for_the_first_consumer_is_made_when_its_pod_has_a_node() -> None:
    async with nutanix_site() as site:
        csi = await started(site, 2)
        await csi.install(volumeBindingMode="WaitForFirstConsumer")
        await csi.claim()
        assert (await csi.phase(), csi.groups()) == ("Pending", [])
        node = sorted(name for name in csi.cluster.kubelets if "-md-" in name)[1]
        await csi.use(node=node)
        assert (await csi.phase(), csi.attached()) == ("Bound", [node])


@virtual
async def test_wrong_credentials_are_reported_on_the_claim_until_they_are_right() -> None:
    async with nutanix_site() as site:
        csi = await started(site)
        await csi.install(key="prism-central:9440:admin:wrong")
        await csi.claim()
        await csi.use()
        assert (await csi.phase(), csi.groups()) == ("Pending", [])
        said = (await csi.events())["ProvisioningFailed"]
        assert said.startswith(
            f'failed to provision volume with StorageClass "{CLASS}": rpc error: code = Unauthenticated'
        )
        assert "wrong" not in said
        pod = await csi.pod()
        assert pod["status"]["conditions"][0]["message"].endswith("pod has unbound immediate PersistentVolumeClaims.")
        right = MergePatch({"stringData": {"key": "prism-central:9440:admin:password"}})
        await csi.client.patch(SECRET, Key(SPACE, "ntnx-pc-secret"), right)
        await asyncio.sleep(90)
        assert await csi.phase() == "Bound"
        assert (await csi.pod())["status"]["phase"] == "Running"


@virtual
async def test_what_a_class_asks_for_must_exist() -> None:
    async with nutanix_site() as site:
        csi = await started(site)
        await csi.install(parameters={"storageContainer": "elsewhere"})
        await csi.claim()
        assert "storage container elsewhere not found" in (await csi.events())["ProvisioningFailed"]
        await csi.delete(SECRET, "ntnx-pc-secret", SPACE)
        await csi.claim("other")
        said = (await csi.events("other"))["ProvisioningFailed"]
        assert 'secrets "ntnx-pc-secret" not found' in said
        assert csi.groups() == []


@virtual
async def test_a_volume_is_made_once_though_prism_fails_in_the_middle() -> None:
    async with nutanix_site() as site:
        csi = await started(site)
        await csi.install()
        site.fault(Status(500), times=3, route="/api/prism/*/tasks/*")
        await csi.claim()
        await asyncio.sleep(120)
        assert (await csi.phase(), len(csi.groups())) == ("Bound", 1)
        site.fault(Status(503), times=3, name="attach", route="*attach-vm")
        await csi.use()
        await asyncio.sleep(120)
        assert csi.attached() == [(await csi.pod())["spec"]["nodeName"]]


@virtual
async def test_without_its_controller_nothing_is_provisioned_attached_or_deleted() -> None:
    async with nutanix_site() as site:
        csi = await started(site)
        await csi.install()
        await csi.claim()
        stopped = MergePatch({"spec": {"replicas": 0}})
        await csi.client.patch(DEPLOYMENT, Key(SPACE, "nutanix-csi-controller"), stopped)
        await asyncio.sleep(10)
        await csi.claim("late")
        assert await csi.phase("late") == "Pending"
        await csi.use()
        assert (await csi.pod())["status"]["phase"] == "Pending"
        assert csi.attached() == []
        await csi.client.patch(DEPLOYMENT, Key(SPACE, "nutanix-csi-controller"), MergePatch({"spec": {"replicas": 1}}))
        await asyncio.sleep(20)
        assert await csi.phase("late") == "Bound"
        assert (await csi.pod())["status"]["phase"] == "Running"


@virtual
async def test_a_cluster_with_bound_claims_goes_and_its_volume_groups_stay() -> None:
    async with nutanix_site() as site:
        csi = await started(site)
        await csi.install()
        await csi.claim()
        await csi.use()
        assert csi.attached()
        await site.delete(Cluster, NAME)
        await site.gone(Cluster, NAME)
        (group,) = csi.groups()
        assert group.attached == ()
        assert DRIVER == "csi.nutanix.com"
