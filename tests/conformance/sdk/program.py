"""A program of a Nutanix user: the vendor's own clients, and nothing of ours. Run with the interpreter they are in.

    python program.py HOST PORT CA_FILE

Each scenario prints a line of JSON: its name, and what went wrong or nothing.
"""

from __future__ import annotations

import base64
import json
import sys
import time
import traceback
import uuid
from collections.abc import Callable
from typing import Any

import ntnx_clustermgmt_py_client as clustermgmt
import ntnx_networking_py_client as networking
import ntnx_prism_py_client as prism
import ntnx_vmm_py_client as vmm
import ntnx_volumes_py_client as volumes

HOST, PORT, CA = sys.argv[1], int(sys.argv[2]), sys.argv[3]
NEWEST = hasattr(vmm.ApiClient, "negotiate_version")


def client(package: Any, user: str = "admin", password: str = "password", api_key: str = "") -> Any:
    configuration = package.Configuration()
    configuration.host = HOST
    configuration.port = PORT
    configuration.root_ca_certificate_file = CA
    configuration.max_retry_attempts = 1
    configuration.backoff_factor = 0
    if api_key:
        configuration.set_api_key(api_key)
    else:
        configuration.username, configuration.password = user, password
    return package.ApiClient(configuration=configuration)


VMM, PRISM, CLUSTERS, NETWORK, VOLUMES = (client(p) for p in (vmm, prism, clustermgmt, networking, volumes))
vms, images = vmm.VmApi(VMM), vmm.ImagesApi(VMM)
tasks, categories = prism.TasksApi(PRISM), prism.CategoriesApi(PRISM)
clusters = clustermgmt.ClustersApi(CLUSTERS)
containers = clustermgmt.StorageContainersApi(CLUSTERS)
subnets = networking.SubnetsApi(NETWORK)
groups = volumes.VolumeGroupsApi(VOLUMES)
SCENARIOS: list[Callable[[], None]] = []


def ahv(name: str) -> Any:
    """A model of AHV: where ESXi has one of that name too, the package prefixes both."""
    return getattr(vmm, f"AhvConfig{name}", None) or getattr(vmm, name)


def scenario(function: Callable[[], None]) -> Callable[[], None]:
    SCENARIOS.append(function)
    return function


FAILURES = tuple(package.rest.ApiException for package in (vmm, prism, clustermgmt, networking, volumes))


def refused(call: Callable[[], object], status: int, *texts: str) -> None:
    failure = None
    try:
        call()
    except FAILURES as error:
        failure = error
    assert failure is not None, f"was not refused with {status}"
    assert failure.status == status, f"{failure.status} instead of {status}: {failure.body}"
    body = json.loads(failure.body)
    assert body["data"]["$objectType"].endswith(".v4.error.ErrorResponse"), body
    flags = {flag["name"]: flag["value"] for flag in body["metadata"]["flags"]}
    assert flags["hasError"] is True, flags
    for text in texts:
        assert text in str(failure.body), f"{text} is not in {failure.body}"


def finished(response: Any, status: str = "SUCCEEDED") -> Any:
    """Waits for the task as the vendor's examples do."""
    reference = response.data
    assert reference.get_object_type() == "prism.v4.config.TaskReference", reference
    assert reference.ext_id.startswith("ZXJnb24=:"), reference
    for _ in range(200):
        task = tasks.get_task_by_id(reference.ext_id).data
        assert task.get_object_type() == "prism.v4.config.Task"
        if task.status not in ("QUEUED", "RUNNING"):
            assert task.status == status, f"{task.status}: {task.error_messages}"
            return task
        time.sleep(0.02)
    raise AssertionError("the task never ended")


def made(response: Any) -> str:
    task = finished(response)
    assert task.entities_affected[0].rel == "vmm:ahv:config:vm"
    return str(task.entities_affected[0].ext_id)


def cluster_named(name: str) -> Any:
    found = clusters.list_clusters(_filter=f"name eq '{name}'").data
    assert len(found) == 1, found
    assert found[0].get_object_type() == "clustermgmt.v4.config.Cluster"
    return found[0]


def subnet_named(name: str) -> Any:
    found = subnets.list_subnets(_filter=f"name eq '{name}'").data
    assert len(found) == 1
    return found[0]


def image_named(name: str) -> Any:
    found = images.list_images(_filter=f"name eq '{name}'").data
    assert len(found) == 1
    return found[0]


def new_nic(subnet: str) -> Any:
    info = ahv("NicNetworkInfo")(subnet=ahv("SubnetReference")(ext_id=subnet_named(subnet).ext_id))
    return ahv("Nic")(network_info=info)


def new_vm(name: str, **more: Any) -> Any:
    source = ahv("DataSource")(
        reference=ahv("ImageReference")(image_ext_id=image_named("ubuntu-22.04-kube-v1.28.0").ext_id)
    )
    return ahv("Vm")(
        name=name,
        num_sockets=2,
        num_cores_per_socket=1,
        memory_size_bytes=4 * 1024**3,
        cluster=ahv("ClusterReference")(ext_id=cluster_named("nutanix-cluster-1").ext_id),
        disks=[ahv("Disk")(backing_info=ahv("VmDisk")(disk_size_bytes=40 * 1024**3, data_source=source))],
        nics=[new_nic("vm-network")],
        **more,
    )


@scenario
def lists_with_filters_and_pages() -> None:
    everything = clusters.list_clusters()
    assert everything.metadata.total_available_results == 6
    assert {c.name for c in everything.data} >= {"cluster-01", "nutanix-cluster-1", "PE-Cluster-01"}
    seen = []
    for page in range(3):
        got = clusters.list_clusters(_page=page, _limit=2)
        assert got.metadata.total_available_results == 6
        assert {link.rel for link in got.metadata.links} >= {"self", "first", "last"}
        seen += [c.ext_id for c in got.data]
    assert len(set(seen)) == 6
    named = images.list_images(_filter="startswith(name, 'ubuntu') and type eq Vmm.Content.ImageType'DISK_IMAGE'")
    assert len(named.data) == named.metadata.total_available_results == 5, named.data
    ordered = images.list_images(_orderby="name desc", _limit=3).data
    assert [i.name for i in ordered] == sorted((i.name for i in ordered), reverse=True)
    thin = images.list_images(_select="name,type", _limit=1).data[0]
    assert thin.name
    assert thin.size_bytes is None
    mine = containers.list_storage_containers(
        _filter=f"name eq 'SelfServiceContainer' and clusterExtId eq '{cluster_named('cluster-01').ext_id}'"
    )
    assert len(mine.data) == 1
    refused(lambda: images.list_images(_filter="name eq"), 400, "SchemaValidationError", "$filter")
    refused(lambda: images.list_images(_limit=101), 400, "$limit")


@scenario
def the_central_and_its_hosts() -> None:
    central = [c for c in clusters.list_clusters().data if "PRISM_CENTRAL" in c.config.cluster_function]
    assert len(central) == 1
    element = cluster_named("cluster-01")
    assert element.config.cluster_function == ["AOS"]
    hosts = clusters.list_hosts_by_cluster_id(element.ext_id).data
    assert len(hosts) == element.nodes.number_of_nodes == 3
    host = clusters.get_host_by_id(element.ext_id, hosts[0].ext_id).data
    assert host.hypervisor.type == "AHV"
    assert host.cluster.name == "cluster-01"
    gpus = clusters.list_physical_gpu_profiles(
        cluster_named("nutanix-cluster-1").ext_id, _filter="physicalGpuConfig/deviceId eq 8757"
    ).data
    assert gpus[0].physical_gpu_config.device_name == "NVIDIA A10 compute"
    manager = prism.DomainManagerApi(PRISM).list_domain_managers().data[0]
    assert manager.config.build_info.version.startswith("pc.")


@scenario
def a_vm_is_made_with_cloud_init_and_powered() -> None:
    script = base64.b64encode(b"#cloud-config\nhostname: sdk\n").decode()
    custom = ahv("GuestCustomizationParams")(
        config=ahv("CloudInit")(
            datasource_type=ahv("CloudInitDataSourceType").CONFIG_DRIVE_V2,
            metadata=base64.b64encode(b'{"hostname": "sdk"}').decode(),
            cloud_init_script=ahv("Userdata")(value=script),
        )
    )
    ext_id = made(vms.create_vm(new_vm("sdk-cloud-init", guest_customization=custom, boot_config=ahv("UefiBoot")())))
    response = vms.get_vm_by_id(ext_id)
    vm = response.data
    assert vm.get_object_type() == "vmm.v4.ahv.config.Vm"
    assert vm.power_state == "OFF"
    assert vm.bios_uuid == ext_id
    assert vm.guest_customization is None
    assert vm.cd_roms[0].iso_type == "GUEST_CUSTOMIZATION"
    assert vm.cd_roms[0].disk_address.index == 3
    assert type(vm.boot_config).__name__ == "UefiBoot"
    backing = vm.disks[0].backing_info
    assert type(backing).__name__.endswith("VmDisk")
    assert backing.disk_ext_id
    assert type(backing.data_source.reference).__name__ == "ImageReference"
    finished(vms.power_on_vm(ext_id, if_match=VMM.get_etag(response)))
    response = vms.get_vm_by_id(ext_id)
    vm = response.data
    assert vm.power_state == "ON"
    assert vm.host.ext_id
    nic = vm.nics[0]
    address = nic.network_info.ipv4_config.ip_address.value
    assert nic.nic_network_info.ipv4_config.ip_address.value == address
    assert type(nic.nic_network_info).__name__ == "VirtualEthernetNicNetworkInfo"
    assert nic.nic_network_info.ipv4_info.learned_ip_addresses[0].value == address
    finished(vms.power_off_vm(ext_id, if_match=VMM.get_etag(response)))
    response = vms.get_vm_by_id(ext_id)
    finished(vms.delete_vm_by_id(ext_id, if_match=VMM.get_etag(response)))
    refused(lambda: vms.get_vm_by_id(ext_id), 404, "VMM-30100", "VM_NOT_FOUND")


@scenario
def an_update_needs_the_newest_etag() -> None:
    ext_id = made(vms.create_vm(new_vm("sdk-update")))
    first = vms.get_vm_by_id(ext_id)
    vm = first.data
    vm.description = "changed"
    vm.memory_size_bytes = 6 * 1024**3
    finished(vms.update_vm_by_id(ext_id, vm))
    second = vms.get_vm_by_id(ext_id)
    assert second.data.description == "changed"
    assert second.data.memory_size_bytes == 6 * 1024**3
    assert len(second.data.disks) == len(first.data.disks)
    assert len(second.data.nics) == 1
    refused(lambda: vms.update_vm_by_id(ext_id, vm), 412, "VMM-30303", "VM_ETAG_MISMATCH")
    refused(lambda: vms.power_on_vm(ext_id), 412, "PLAT-10004")
    refused(lambda: vms.power_on_vm(ext_id, if_match="*"), 412, "PLAT-10005")
    finished(vms.delete_vm_by_id(ext_id, if_match=VMM.get_etag(second)))


@scenario
def categories_are_made_used_and_kept_while_used() -> None:
    kind = prism.Category
    made_now = categories.create_category(kind(key="sdk", value=f"v-{uuid.uuid4()}", description="d")).data
    assert made_now.get_object_type() == "prism.v4.config.Category"
    found = categories.list_categories(_filter=f"key eq 'sdk' and value eq '{made_now.value}'").data
    assert [c.ext_id for c in found] == [made_now.ext_id]
    assert categories.list_categories(_filter="key eq 'nothing has this'").data in (None, [])
    refused(lambda: categories.create_category(kind(key="sdk", value=made_now.value)), 409)
    ext_id = made(vms.create_vm(new_vm("sdk-categories")))
    etag = VMM.get_etag(vms.get_vm_by_id(ext_id))
    body = ahv("AssociateVmCategoriesParams")(categories=[ahv("CategoryReference")(ext_id=made_now.ext_id)])
    finished(vms.associate_categories(ext_id, body, if_match=etag))
    response = vms.get_vm_by_id(ext_id)
    assert [c.ext_id for c in response.data.categories] == [made_now.ext_id]
    held = categories.get_category_by_id(made_now.ext_id)
    refused(lambda: categories.delete_category_by_id(made_now.ext_id, if_match=PRISM.get_etag(held)), 409)
    finished(vms.delete_vm_by_id(ext_id, if_match=VMM.get_etag(response)))
    fresh = categories.get_category_by_id(made_now.ext_id)
    changed = fresh.data
    changed.description = "other"
    assert categories.update_category_by_id(made_now.ext_id, changed) is not None
    fresh = categories.get_category_by_id(made_now.ext_id)
    assert fresh.data.description == "other"
    assert categories.delete_category_by_id(made_now.ext_id, if_match=PRISM.get_etag(fresh)) is None
    refused(lambda: categories.get_category_by_id(made_now.ext_id), 404)


@scenario
def tasks_are_found_by_entity_and_have_subtasks() -> None:
    response = vms.create_vm(new_vm("sdk-tasks"))
    task = finished(response)
    assert task.operation == "kVmCreate"
    assert task.progress_percentage == 100
    assert task.completed_time
    ext_id = task.entities_affected[0].ext_id
    child = tasks.get_task_by_id(task.sub_tasks[0].ext_id).data
    assert child.parent_task.ext_id == task.ext_id
    assert child.status == "SUCCEEDED"
    found = tasks.list_tasks(
        _filter=f"entitiesAffected/any(a:a/extId eq '{ext_id}') and (status eq Prism.Config.TaskStatus'SUCCEEDED' "
        "or status eq Prism.Config.TaskStatus'RUNNING')"
    ).data
    assert {t.ext_id for t in found} == {task.ext_id, child.ext_id}
    bare = tasks.get_task_by_id(task.ext_id.split(":")[1]).data
    assert bare.ext_id == task.ext_id
    finished(vms.delete_vm_by_id(ext_id, if_match=VMM.get_etag(vms.get_vm_by_id(ext_id))))


@scenario
def wrong_requests_are_refused_as_the_vendor_does() -> None:
    body = new_vm("sdk-wrong")
    body.num_sockets = None
    cluster = body.cluster.ext_id
    body.cluster.ext_id = str(uuid.uuid4())
    refused(lambda: vms.create_vm(body), 400, "VMM-30106")
    body.cluster.ext_id = cluster
    body.nics[0].network_info.subnet.ext_id = str(uuid.uuid4())
    refused(lambda: vms.create_vm(body), 400, "VMM-30604")
    body.nics[0].network_info.subnet.ext_id = subnet_named("workload-subnet").ext_id
    refused(lambda: vms.create_vm(body), 400, "VMM-30605")
    body.nics = []
    body.disks[0].backing_info.data_source.reference.image_ext_id = str(uuid.uuid4())
    refused(lambda: vms.create_vm(body), 400, "VMM-31201")
    refused(lambda: images.get_image_by_id(str(uuid.uuid4())), 404, "VMM-20005")
    nobody = vmm.VmApi(client(vmm, password="wrong"))
    refused(lambda: nobody.list_vms(), 401)
    viewer = vmm.VmApi(client(vmm, user="viewer"))
    assert viewer.list_vms() is not None
    refused(lambda: viewer.create_vm(new_vm("sdk-viewer")), 403, "PLAT-10007")


@scenario
def sessions_and_keys_authenticate() -> None:
    before = vms.list_vms().metadata.total_available_results
    keyed = vmm.VmApi(client(vmm, api_key="homeport-api-key"))
    assert keyed.list_vms().metadata.total_available_results == before
    assert keyed.list_vms().metadata.total_available_results == before


@scenario
def devices_come_and_go() -> None:
    ext_id = made(vms.create_vm(new_vm("sdk-devices")))

    def etag() -> str:
        return str(VMM.get_etag(vms.get_vm_by_id(ext_id)))

    disk = ahv("Disk")(backing_info=ahv("VmDisk")(disk_size_bytes=10 * 1024**3))
    finished(vms.create_disk(ext_id, disk, if_match=etag()))
    disks = vms.list_disks_by_vm_id(ext_id).data
    assert [d.disk_address.index for d in disks] == [0, 1]
    finished(vms.delete_disk_by_id(ext_id, disks[1].ext_id, if_match=etag()))
    finished(vms.create_nic(ext_id, new_nic("vm-network-1"), if_match=etag()))
    nics = vms.list_nics_by_vm_id(ext_id).data
    assert len(nics) == 2
    assert nics[1].backing_info.mac_address.startswith("50:6b:8d:")
    finished(vms.delete_nic_by_id(ext_id, nics[1].ext_id, if_match=etag()))
    assert len(vms.list_nics_by_vm_id(ext_id).data) == 1
    finished(vms.delete_vm_by_id(ext_id, if_match=etag()))


@scenario
def subnets_give_and_reserve_addresses() -> None:
    subnet = subnets.get_subnet_by_id(subnet_named("workload-subnet").ext_id).data
    config = subnet.ip_config[0].ipv4
    assert config.ip_subnet.prefix_length == 24
    assert config.pool_list[0].start_ip.value == "10.127.14.60"
    free = subnet.ip_usage.num_free_i_ps if hasattr(subnet.ip_usage, "num_free_i_ps") else subnet.ip_usage.num_free_ips
    reservation = networking.SubnetIPReservationApi(NETWORK)
    spec = networking.IpReserveSpec(count=2, reserve_type=networking.ReserveType.IP_ADDRESS_COUNT, client_context="sdk")
    task = finished(reservation.reserve_ips_by_subnet_id(subnet.ext_id, spec))
    addresses = json.loads(task.completion_details[0].value)["reserved_ips"]
    assert len(addresses) == 2
    after = subnets.get_subnet_by_id(subnet.ext_id).data
    assert {a.ipv4.value for a in after.reserved_ip_addresses} == set(addresses)
    now = after.ip_usage.num_free_i_ps if hasattr(after.ip_usage, "num_free_i_ps") else after.ip_usage.num_free_ips
    assert now == free - 2
    back = networking.IpUnreserveSpec(client_context="sdk", unreserve_type=networking.UnreserveType.CONTEXT)
    finished(reservation.unreserve_ips_by_subnet_id(subnet.ext_id, back))
    assert not subnets.get_subnet_by_id(subnet.ext_id).data.reserved_ip_addresses


@scenario
def volume_groups_are_attached_and_detached() -> None:
    cluster = cluster_named("nutanix-cluster-1").ext_id
    group = volumes.VolumeGroup(
        name="sdk-vg", cluster_reference=cluster, disks=[volumes.VolumeDisk(disk_size_bytes=1024**3)]
    )
    task = finished(groups.create_volume_group(group))
    group_id = task.entities_affected[0].ext_id
    assert task.entities_affected[0].rel == "volumes:config:volume-group"
    ext_id = made(vms.create_vm(new_vm("sdk-volumes")))
    finished(groups.attach_vm(group_id, volumes.VmAttachment(ext_id=ext_id)))
    vm = vms.get_vm_by_id(ext_id).data
    backing = vm.disks[-1].backing_info
    assert type(backing).__name__ == "ADSFVolumeGroupReference"
    assert backing.volume_group_ext_id == group_id
    held = groups.list_vm_attachments_by_volume_group_id(group_id).data
    assert [a.ext_id for a in held] == [ext_id]
    finished(
        groups.delete_volume_group_by_id(group_id, if_match=VOLUMES.get_etag(groups.get_volume_group_by_id(group_id))),
        "FAILED",
    )
    finished(groups.detach_vm(group_id, volumes.VmAttachment(ext_id=ext_id)))
    assert len(vms.get_vm_by_id(ext_id).data.disks) == 1
    finished(
        groups.delete_volume_group_by_id(group_id, if_match=VOLUMES.get_etag(groups.get_volume_group_by_id(group_id)))
    )
    finished(vms.delete_vm_by_id(ext_id, if_match=VMM.get_etag(vms.get_vm_by_id(ext_id))))


@scenario
def images_are_made_and_removed() -> None:
    source = vmm.UrlSource(url="https://example.com/disk.qcow2")
    task = finished(images.create_image(vmm.Image(name="sdk-image", type=vmm.ImageType.DISK_IMAGE, source=source)))
    ext_id = task.entities_affected[0].ext_id
    image = images.get_image_by_id(ext_id).data
    assert image.name == "sdk-image"
    assert image.source.url == "https://example.com/disk.qcow2"
    image.description = "changed"
    finished(images.update_image_by_id(ext_id, image))
    assert images.get_image_by_id(ext_id).data.description == "changed"
    finished(images.delete_image_by_id(ext_id))
    refused(lambda: images.get_image_by_id(ext_id), 404)


@scenario
def more_than_a_page_of_vms() -> None:
    wanted = {f"sdk-many-{number:02}" for number in range(55)}
    template = new_vm("x")
    template.nics = []
    for name in sorted(wanted):
        template.name = name
        finished(vms.create_vm(template))
    first = vms.list_vms(_filter="startswith(name, 'sdk-many-')")
    assert first.metadata.total_available_results == 55
    assert len(first.data) == 50
    second = vms.list_vms(_page=1, _filter="startswith(name, 'sdk-many-')")
    assert {vm.name for vm in first.data + second.data} == wanted


def members(model: object, declared: str) -> set[str]:
    """The values of an enum that a field is declared with; nothing for other types."""
    package = sys.modules[type(model).__module__.partition(".")[0]]
    name = declared.removeprefix("list[").removesuffix("]")
    known = getattr(package.ApiClient, "DUPLICATE_SCHEMA_MAPPING", {}).get(name, name.rpartition(".")[2])
    kind = getattr(package.models, known, None)
    if kind is None or getattr(kind, "attribute_map", None):
        return set()
    return {value for value in vars(kind).values() if isinstance(value, str) and value.isupper()}


def strange(value: Any, path: str) -> list[str]:
    """Fields and values of enums that the client does not know, and objects without a type."""
    if isinstance(value, list):
        return [each for number, item in enumerate(value) for each in strange(item, f"{path}[{number}]")]
    if isinstance(value, dict):
        return [f"{path} has no type"] if "$objectType" in value else []
    if not getattr(value, "attribute_map", None):
        return []
    found = [f"{path}.{name}" for name in value.get_unknown_fields() if not name.endswith("ItemDiscriminator")]
    for attribute, declared in value.swagger_types.items():
        if attribute.startswith("_"):
            continue
        inner = getattr(value, attribute, None)
        found += strange(inner, f"{path}.{attribute}")
        known = members(value, declared)
        for each in inner if isinstance(inner, list) else [inner]:
            if known and isinstance(each, str):
                CHECKED.add(declared)
                if each not in known:
                    found.append(f"{path}.{attribute} = {each}")
    return found


CHECKED: set[str] = set()


@scenario
def answers_hold_nothing_that_the_client_does_not_know() -> None:
    ext_id = made(vms.create_vm(new_vm("sdk-strange", boot_config=ahv("LegacyBoot")())))
    finished(vms.power_on_vm(ext_id, if_match=VMM.get_etag(vms.get_vm_by_id(ext_id))))
    element = cluster_named("nutanix-cluster-1").ext_id
    group = volumes.VolumeGroup(name="sdk-strange", cluster_reference=element)
    finished(groups.create_volume_group(group))
    answers = [
        vms.get_vm_by_id(ext_id),
        vms.list_vms(),
        vms.list_disks_by_vm_id(ext_id),
        vms.list_nics_by_vm_id(ext_id),
        images.list_images(),
        clusters.list_clusters(),
        clusters.list_hosts(),
        clusters.list_hosts_by_cluster_id(element),
        clusters.list_physical_gpu_profiles(element),
        clusters.list_virtual_gpu_profiles(element),
        containers.list_storage_containers(),
        subnets.list_subnets(),
        tasks.list_tasks(),
        categories.list_categories(),
        prism.DomainManagerApi(PRISM).list_domain_managers(),
        groups.list_volume_groups(),
    ]
    found = [each for answer in answers for each in strange(answer, type(answer).__name__)]
    assert not found, sorted(set(found))[:40]
    assert len(CHECKED) > 12, CHECKED
    finished(vms.delete_vm_by_id(ext_id, if_match=VMM.get_etag(vms.get_vm_by_id(ext_id))))


if NEWEST:

    @scenario
    def newer_clients_agree_on_a_version() -> None:
        fresh = client(vmm)
        vmm.VmApi(fresh).list_vms(_limit=1)
        assert fresh.get_negotiated_version() == "v4.3", fresh.get_negotiated_version()

    @scenario
    def custom_attributes_are_kept() -> None:
        ext_id = made(vms.create_vm(new_vm("sdk-attributes")))
        body = vmm.UpdateCustomAttributesParams(custom_attributes=["providerid:nutanix://x"])
        finished(vms.add_vm_custom_attributes(ext_id, body, if_match=VMM.get_etag(vms.get_vm_by_id(ext_id))))
        response = vms.get_vm_by_id(ext_id)
        assert response.data.custom_attributes == ["providerid:nutanix://x"]
        finished(vms.remove_vm_custom_attributes(ext_id, body, if_match=VMM.get_etag(response)))
        response = vms.get_vm_by_id(ext_id)
        assert not response.data.custom_attributes
        finished(vms.delete_vm_by_id(ext_id, if_match=VMM.get_etag(response)))

else:
    import ntnx_iam_py_client as iam

    @scenario
    def users_are_listed() -> None:
        users = iam.UsersApi(client(iam)).list_users(_filter="username eq 'admin'").data
        assert [user.username for user in users] == ["admin"]


for each in SCENARIOS:
    problem = ""
    try:
        each()
    except BaseException:
        problem = traceback.format_exc()
    print(json.dumps({"scenario": each.__name__, "problem": problem}), flush=True)
