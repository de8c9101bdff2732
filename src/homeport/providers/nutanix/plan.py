"""From a NutanixMachine to the machine that Prism Central should create: everything resolved, nothing sent."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from homeport.api.nutanix.v1beta1 import DataDisk, Identifier, NutanixCluster, NutanixFailureDomain, NutanixMachine
from homeport.infra.error import Exhausted, Misconfigured, Missing
from homeport.infra.machine.userdata import render_user_data
from homeport.infra.protocol import MachineScope
from homeport.machinery.quantity import parse_quantity
from homeport.providers.nutanix.address import plan_nics
from homeport.providers.nutanix.connection import PrismSession
from homeport.providers.nutanix.metro import refusal
from homeport.providers.nutanix.prism.record import Category, Disk, Element, Gpu, Image, NewVm, Project

Scope = MachineScope[NutanixCluster, NutanixMachine, PrismSession]
FindDomain = Callable[[str, str], NutanixFailureDomain | None]

CLUSTER_CATEGORY = "KubernetesClusterName"
PROJECT = "ProjectAssigned"
# On a VM: the UIDs of the NutanixMachine and of the NutanixCluster that it was made for.
MARK = "homeport-machine"
CLUSTER_MARK = "homeport-cluster"
_GIB = 2**30
MIN_MEMORY = 2 * _GIB
MIN_SYSTEM_DISK = 20 * _GIB
MIN_DATA_DISK = _GIB
# Placed by Prism itself: the system disk at SCSI 0, the config drive at IDE 3.
_TAKEN = {("SCSI", 0), ("IDE", 3)}


@dataclass(frozen=True, slots=True)
class Placement:
    """Where a machine goes: its own spec, unless a failure domain says otherwise."""

    cluster: Identifier | None
    subnets: Sequence[Identifier]
    field: str  # whose spec it is, for messages


def place(scope: Scope, find_domain: FindDomain) -> Placement:
    spec, domain = scope.infra.spec, scope.failure_domain
    if not domain:
        return Placement(spec.cluster, spec.subnet, "spec")
    cluster = scope.infra_cluster
    for inline in cluster.spec.failure_domains if cluster is not None else ():
        if cluster is not None and inline.name == domain:
            where = f"NutanixCluster {cluster.metadata.name} spec.failureDomains[{domain}]"
            return Placement(inline.cluster, inline.subnets, where)
    refused = refusal(domain)
    if refused:
        raise Misconfigured(f"Machine {scope.name}: {refused}")
    found = find_domain(scope.infra.metadata.namespace, domain)
    if found is None:
        raise Missing(
            f"failure domain {domain!r} of Machine {scope.name} does not exist: create "
            f"NutanixFailureDomain {domain}, or use one of the cluster's"
        )
    return Placement(found.spec.prism_element_cluster, found.spec.subnets, f"NutanixFailureDomain {domain} spec")


async def plan_vm(scope: Scope, find_domain: FindDomain, category: Category | None) -> NewVm:
    """`category`: of the cluster that it belongs to. Raises ProviderError naming the field."""
    spec, lookup = scope.infra.spec, scope.session.lookup
    placement = place(scope, find_domain)
    element = await _element(scope, placement)
    subnets = [await lookup.subnet(each, element, f"{placement.field}.subnet") for each in placement.subnets]
    if not subnets:
        raise Misconfigured(f"{placement.field}.subnet: name at least one subnet")
    image = await resolve_image(scope)
    categories = [category] if category is not None else []
    for number, each in enumerate(spec.additional_categories):
        categories.append(await lookup.category(each, f"spec.additionalCategories[{number}]"))
    project = await _project(scope)
    return NewVm(
        name=scope.name,
        description=f"{_role(scope)}, managed by Homeport",
        cluster_id=element.id,
        sockets=spec.vcpu_sockets,
        cores_per_socket=spec.vcpus_per_socket,
        memory_bytes=size_of(spec.memory_size, "spec.memorySize", MIN_MEMORY),
        disks=await _disks(scope, element, image),
        nics=plan_nics(subnets, scope.addresses),
        categories=list({each.id: each for each in categories}.values()),
        user_data=render_user_data(scope.user_data, scope.name),
        meta_data=render_meta_data(scope),
        project_id=project.id if project else "",
        boot="uefi" if spec.boot_type == "uefi" else "legacy" if spec.boot_type == "legacy" else "",
        gpus=await _gpus(scope, element),
        marks=_marks(scope),
    )


def _role(scope: Scope) -> str:
    return f"Node of Kubernetes cluster {scope.cluster}" if scope.cluster else f"Machine {scope.name}"


def _marks(scope: Scope) -> list[str]:
    cluster = scope.infra_cluster
    return [f"{MARK}:{scope.uid}", *([f"{CLUSTER_MARK}:{cluster.metadata.uid}"] if cluster is not None else [])]


async def _project(scope: Scope) -> Project | None:
    wanted = scope.infra.spec.project
    if wanted is None:
        return None
    try:
        found = await scope.session.lookup.project(wanted, "spec.project")
    except Missing as error:
        scope.report(PROJECT, False, "ProjectAssignationFailed", error.message)
        raise
    scope.report(PROJECT, True, "Succeeded", "")
    return found


async def _element(scope: Scope, placement: Placement) -> Element:
    if placement.cluster is None:
        raise Misconfigured(f"{placement.field}.cluster: name the cluster (Prism Element) that the machine runs on")
    return await scope.session.lookup.element(placement.cluster, f"{placement.field}.cluster")


async def resolve_image(scope: Scope) -> Image:
    spec, lookup = scope.infra.spec, scope.session.lookup
    if spec.image is not None:
        image = await lookup.image(spec.image, "spec.image")
    elif spec.image_lookup is not None:
        image = await lookup.newest_image(spec.image_lookup, scope.version)
    else:
        raise Misconfigured("spec.image: set an image, or set spec.imageLookup")
    if image.kind == "iso":
        raise Misconfigured(
            f"spec.image: {image.name!r} is an ISO installer image: a disk image (type DISK) is required"
        )
    return image


async def _disks(scope: Scope, element: Element, image: Image) -> list[Disk]:
    spec = scope.infra.spec
    size = size_of(spec.system_disk_size, "spec.systemDiskSize", MIN_SYSTEM_DISK)
    disks = [Disk(size, image_id=image.id)]
    addresses = disk_addresses(spec.data_disks)
    for number, (disk, (bus, index)) in enumerate(zip(spec.data_disks, addresses, strict=True)):
        disks.append(await _data_disk(scope, element, disk, f"spec.dataDisks[{number}]", bus, index))
    ref = spec.bootstrap_ref
    if ref is not None and ref.kind == "Image":
        iso = await scope.session.lookup.image(Identifier(type="name", name=ref.name), "spec.bootstrapRef")
        disks.append(Disk(0, image_id=iso.id, bus="IDE", bus_index=0, cdrom=True))
    return disks


async def _data_disk(scope: Scope, element: Element, disk: DataDisk, field: str, bus: str, index: int) -> Disk:
    lookup, config = scope.session.lookup, disk.storage_config
    container = config.storage_container if config else None
    found = await lookup.container(container, element, f"{field}.storageConfig.storageContainer") if container else None
    source = await lookup.image(disk.data_source, f"{field}.dataSource") if disk.data_source else None
    properties = disk.device_properties
    return Disk(
        size_of(disk.disk_size, f"{field}.diskSize", MIN_DATA_DISK),
        image_id=source.id if source else "",
        bus=bus,
        bus_index=index,
        container_id=found.id if found else "",
        flash=bool(config and config.disk_mode == "Flash"),
        cdrom=bool(properties and properties.device_type == "CDRom"),
    )


def disk_addresses(disks: Sequence[DataDisk]) -> list[tuple[str, int]]:
    """Explicit indexes as they are, the others the next free ones of their bus. Raises Misconfigured for a clash."""
    taken = set(_TAKEN)
    wanted: list[tuple[str, int]] = []
    for number, disk in enumerate(disks):
        properties = disk.device_properties
        default = "IDE" if properties and properties.device_type == "CDRom" else "SCSI"
        bus = (properties.adapter_type if properties else "") or default
        index = properties.device_index if properties else 0
        if index and (bus, index) in taken:
            raise Misconfigured(
                f"spec.dataDisks[{number}].deviceProperties.deviceIndex: {bus} index '{index}' is already in use"
            )
        if index:
            taken.add((bus, index))
        wanted.append((bus, index))
    counters: dict[str, int] = defaultdict(int)
    placed = []
    for bus, index in wanted:
        while not index and (bus, counters[bus]) in taken:
            counters[bus] += 1
        if not index:
            index = counters[bus]
            taken.add((bus, index))
        placed.append((bus, index))
    return placed


async def _gpus(scope: Scope, element: Element) -> list[Gpu]:
    """Free devices, each taken once."""
    wanted = scope.infra.spec.gpus
    if not wanted:
        return []
    free = [each for each in await scope.session.prism.gpus(element.id) if each.free]
    chosen: list[Gpu] = []
    for number, each in enumerate(wanted):
        by_id = each.type == "deviceID"
        fits = [p for p in free if (p.device_id == each.device_id if by_id else p.name == each.name)]
        if not fits:
            named = f"device {each.device_id}" if by_id else repr(each.name)
            raise Exhausted(f"spec.gpus[{number}]: no available GPUs found for {named} on cluster {element.name!r}")
        if not fits[0].virtual:
            free.remove(fits[0])
        chosen.append(Gpu(fits[0].name, fits[0].device_id, fits[0].vendor, fits[0].mode))
    return chosen


def size_of(text: str | int, field: str, least: int) -> int:
    try:
        size = int(parse_quantity(text).amount)
    except ValueError:
        raise Misconfigured(f"{field}: {text!r} is not a valid quantity: expected for example 8Gi") from None
    if size < least:
        raise Misconfigured(f"{field}: {text} is below the minimum of {least // _GIB}Gi")
    return size


def render_meta_data(scope: Scope) -> bytes:
    name = scope.name
    return json.dumps({"hostname": name, "local-hostname": name, "uuid": scope.uid, "instance-id": scope.uid}).encode()
