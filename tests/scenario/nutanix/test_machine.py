"""What a NutanixMachine asks for is what Prism Central makes: references, disks, cards, categories, GPUs, projects."""

from __future__ import annotations

from functools import partial

import pytest

from conformance.provider.nutanix import ELEMENT, IMAGE, open_nutanix
from conformance.provider.provider_plane import NAME, condition, key, provider_plane
from homeport.api.cluster.v1beta2 import Machine
from homeport.api.nutanix.v1beta1 import NutanixCluster
from homeport.client.protocol import MergePatch
from homeport.runtime.testing import virtual
from homeport.sim.prism.entity import VolumeDisk, VolumeGroup
from scenario.nutanix.bench import Nutanix, nutanix

V4 = partial(open_nutanix, version="v4")


@pytest.mark.parametrize("version", ["v4", "v3"])
def test_everything_may_be_named_by_uuid(version: str) -> None:
    @virtual
    async def run() -> None:
        async with nutanix(version) as n:
            await n.machine(
                image={"type": "uuid", "uuid": n.id_of("images", IMAGE)},
                cluster={"type": "uuid", "uuid": n.id_of("clusters", ELEMENT)},
                subnet=[{"type": "uuid", "uuid": n.id_of("subnets", "vm-network")}],
                project={"type": "uuid", "uuid": n.id_of("projects", "kubernetes-project")},
            )
            await n.g.ready("a")
            assert n.vm().project == n.id_of("projects", "kubernetes-project")
            assert n.vm().cluster == n.id_of("clusters", ELEMENT)

    run()


@virtual
async def test_an_image_is_looked_up_by_pattern_and_the_newest_is_taken() -> None:
    async with nutanix() as n:
        lookup = {"baseOS": "ubuntu-22.04", "format": "{{.BaseOS}}-kube-v{{.K8sVersion}}"}
        await n.machine(image=None, imageLookup=lookup)
        await n.g.ready("a")
        assert n.vm().disks[0].image == n.id_of("images", "ubuntu-22.04-kube-v1.30.0")
        await n.machine("b", image=None, imageLookup={"baseOS": "plan9"})
        await n.g.machine_says("b", "imageLookup", "capx-plan9-1.30.0")


@virtual
async def test_categories_of_the_user_are_put_on_and_several_values_of_one_key_too() -> None:
    async with nutanix() as n:
        wanted = [("AppType", "Kubernetes"), ("Environment", "Dev"), ("Environment", "Testing")]
        await n.machine(additionalCategories=[{"key": k, "value": v} for k, v in wanted])
        await n.g.ready("a")
        assert n.categories() == {
            "AppType:Kubernetes",
            "Environment:Dev",
            "Environment:Testing",
            "KubernetesClusterName:one",
        }


@virtual
async def test_a_category_that_does_not_exist_is_named_and_taken_up_once_it_does() -> None:
    async with nutanix() as n:
        await n.machine(categories=[{"key": "Team", "value": "blue"}])
        await n.g.machine_says("a", "no category Team:blue", "additionalCategories[0]")
        from homeport.sim.prism.entity import Category

        core = n.prism.core
        core.put(core.world.categories, Category(ext_id=core.new_id(), key="Team", value="blue"))
        await n.g.ready("a", timeout=400)
        assert "Team:blue" in n.categories()


def _replace_category(n: Nutanix, *, created: bool) -> None:
    """As another plane does that deletes a cluster of the same name, and then creates one."""
    core = n.prism.core
    (old,) = [each for each in core.world.categories if each.value == NAME]
    core.drop(core.world.categories, old.ext_id)
    if created:
        core.put(core.world.categories, old, ext_id=core.new_id())


@pytest.mark.parametrize("created", [False, True])
def test_a_machine_is_created_though_its_cluster_s_category_was_deleted_elsewhere(created: bool) -> None:
    @virtual
    async def run() -> None:
        async with nutanix() as n:
            _replace_category(n, created=created)
            await n.machine()
            await n.g.ready("a", timeout=60)
            assert n.categories() == {"KubernetesClusterName:one"}
            assert n.vendor.created == ["a"]

    run()


@virtual
async def test_a_deleted_cluster_leaves_no_category_though_another_plane_replaced_it() -> None:
    async with nutanix() as n:
        _replace_category(n, created=True)
        await n.g.delete_cluster()
        await n.g.plane.gone(NutanixCluster, key(NAME), 60)
        assert NAME not in {each.value for each in n.prism.world.categories}


@virtual
async def test_a_project_is_assigned_and_an_unknown_one_is_reported_on_its_own_condition() -> None:
    async with nutanix() as n:
        await n.machine("a", project="kubernetes-project")
        (machine,) = await n.g.ready("a")
        assert condition(machine, "ProjectAssigned")["status"] == "True"
        assert n.vm().project == n.id_of("projects", "kubernetes-project")
        await n.machine("b", project="kubernetes-projekt")
        text = await n.g.machine_says("b", "ProjectAssignationFailed", type_="ProjectAssigned")
        assert "did you mean 'kubernetes-project'" in text


@virtual
async def test_data_disks_are_made_where_they_are_asked_for() -> None:
    async with nutanix() as n:
        container = {"type": "name", "name": "default-container-11"}
        other = {"type": "uuid", "uuid": n.id_of("containers", "default-container-11")}
        await n.machine(
            dataDisks=[
                {"diskSize": "10Gi", "storageConfig": {"diskMode": "Standard", "storageContainer": other}},
                {"diskSize": "20Gi", "deviceProperties": {"deviceType": "Disk", "adapterType": "SCSI"}},
                {
                    "diskSize": 5 << 30,
                    "deviceProperties": {"deviceType": "Disk", "adapterType": "SCSI", "deviceIndex": 10},
                    "storageConfig": {"diskMode": "Standard", "storageContainer": container},
                },
            ]
        )
        await n.g.ready("a")
        disks = [each for each in n.vm().disks if not each.cdrom]
        assert [each.size_bytes >> 30 for each in disks] == [40, 10, 20, 5]
        assert len({(each.bus, each.index) for each in disks}) == 4
        assert disks[3].index == 10
        assert disks[3].container == disks[1].container == other["uuid"]


@virtual
async def test_a_storage_container_of_another_cluster_is_refused_with_the_names_of_those_there_are() -> None:
    async with nutanix() as n:
        config = {"diskMode": "Standard", "storageContainer": {"type": "name", "name": "default-container-21"}}
        await n.machine(dataDisks=[{"diskSize": "10Gi", "storageConfig": config}])
        await n.g.machine_says("a", "storage container", "nutanix-cluster-1", "default-container-11")


@virtual
async def test_each_subnet_is_a_card_in_the_order_of_the_manifest() -> None:
    async with nutanix() as n:
        await n.machine(subnet=None, subnets=["vm-network-1", "vm-network"])
        (machine,) = await n.g.ready("a")
        names = {each.ext_id: each.name for each in n.prism.world.subnets}
        assert [names[nic.subnet] for nic in n.vm().nics] == ["vm-network-1", "vm-network"]
        assert len([each for each in machine.status.addresses if each.type == "InternalIP"]) == 2


@virtual
async def test_gpus_are_taken_once_each_and_a_missing_one_is_reported() -> None:
    async with nutanix() as n:
        card = {"type": "name", "name": "Tesla T4 compute"}
        await n.machine("a", gpus=[card])
        await n.machine("b", gpus=[{"type": "deviceID", "deviceID": 7864}])
        await n.machine("virtual", gpus=[{"type": "name", "name": "NVIDIA A16-4Q"}])
        await n.g.ready("a", "b", "virtual")
        taken = [gpu.device for name in ("a", "b") for gpu in n.vm(name).gpus]
        assert len(taken) == 2
        assert [gpu.mode for gpu in n.vm("virtual").gpus] == ["VIRTUAL"]
        await n.machine("c", gpus=[card])
        await n.g.machine_says("c", "no available GPUs found", "Tesla T4 compute")
        await n.g.delete("a")
        await n.g.ready("c")


@virtual
async def test_volume_groups_are_detached_together_before_the_machine_goes() -> None:
    async with nutanix() as n:
        await n.machine()
        await n.g.ready("a")
        core, vm = n.prism.core, n.vm()
        groups = [
            VolumeGroup(
                ext_id=core.new_id(),
                name=f"pvc-{number}",
                cluster=vm.cluster,
                disks=(VolumeDisk(ext_id=core.new_id(), size_bytes=1 << 30),),
                attached=(vm.ext_id,),
            )
            for number in range(5)
        ]
        for group in groups:
            core.put(core.world.volume_groups, group)
        from homeport.sim.prism.entity import Disk

        more = tuple(
            Disk(ext_id=core.new_id(), bus="SCSI", index=20 + number, volume_group=group.ext_id)
            for number, group in enumerate(groups)
        )
        core.put(core.world.vms, vm, disks=vm.disks + more)
        begun = n.g.plane.clock.monotonic()
        await n.g.delete("a")
        await n.g.deleted("a")
        assert n.g.plane.clock.monotonic() - begun < 30
        kept = [each for each in n.prism.world.volume_groups if each.name.startswith("pvc-")]
        assert len(kept) == 5
        assert all(not each.attached for each in kept)


@virtual
async def test_user_data_begins_with_its_marker_though_it_came_as_a_template() -> None:
    import base64

    async with nutanix() as n:
        text = "## template: jinja\n#cloud-config\nhostname: '{{ ds.meta_data.hostname }}'\n"
        await n.g.machine("a", user_data=text)
        await n.g.ready("a")
        data = base64.b64decode(n.vm().user_data)
        assert data.startswith(b"#cloud-config")
        assert b"hostname: 'a'" in data


@virtual
async def test_a_machine_goes_where_its_failure_domain_says() -> None:
    async with nutanix() as n:
        domain = {"prismElementCluster": "nutanix-cluster-2", "subnets": ["vm-network-2"]}
        body = {
            "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1",
            "kind": "NutanixFailureDomain",
            "metadata": {"name": "fd-2", "namespace": "default"},
            "spec": domain,
        }
        await n.g.plane.have(body)
        await n.g.stop()
        await n.machine()
        await n.g.client.patch(Machine, key("a"), MergePatch({"spec": {"failureDomain": "fd-2"}}))
        await n.g.start()
        (machine,) = await n.g.ready("a")
        assert n.vm().cluster == n.id_of("clusters", "nutanix-cluster-2")
        assert machine.status.failure_domain == "fd-2"


@virtual
async def test_two_machines_race_for_the_last_gpu_and_one_of_them_gets_it() -> None:
    async with nutanix() as n:
        card = {"type": "name", "name": "NVIDIA A10 compute"}
        await n.machine("a", gpus=[card])
        await n.machine("b", gpus=[card])
        await n.g.pass_time(30)
        ready = [name for name in ("a", "b") if (await n.g.infra_machine(name)).status.ready]
        assert len(ready) == 1
        (waiting,) = {"a", "b"} - set(ready)
        await n.g.machine_says(waiting, "GPU")
        await n.g.delete(ready[0])
        await n.g.ready(waiting, timeout=900)


@virtual
async def test_a_machine_that_was_never_made_can_be_deleted_though_its_cluster_has_no_infrastructure() -> None:
    async with provider_plane(V4) as g:
        await g.cluster(provisioned=False, secret=False)
        await g.machine("m")
        await g.machine_says("m", "ClusterInfrastructureNotReady")
        await g.stop()
        await g.client.patch(NutanixCluster, key(NAME), MergePatch({"metadata": {"finalizers": None}}))
        await g.client.delete(NutanixCluster, key(NAME))
        await g.start()
        await g.delete("m")
        await g.deleted("m")


@virtual
async def test_a_machine_that_may_still_run_stays_and_says_what_is_missing() -> None:
    async with provider_plane(V4) as g:
        await g.cluster()
        await g.machine("m")
        await g.ready("m")
        await g.stop()
        await g.client.patch(NutanixCluster, key(NAME), MergePatch({"metadata": {"finalizers": None}}))
        await g.client.delete(NutanixCluster, key(NAME))
        await g.start()
        await g.delete("m")
        said = await g.machine_says("m", "WaitingForInfrastructureCluster")
        assert "the NutanixCluster of this machine no longer exists: create it again" in said
        assert [each.name for each in g.vendor.machines()] == ["m"]
