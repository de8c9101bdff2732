"""The records of a Prism Central's world. Plain and frozen; their names are those of world files (camel case)."""

from __future__ import annotations

import re
from ipaddress import IPv6Network, ip_address, ip_network
from typing import Any, Literal

import msgspec

from homeport.sim.engine.progress import Countdown

GIB = 1024**3
MIB = 1024**2

PowerState = Literal["ON", "OFF", "PAUSED"]
Bus = Literal["SCSI", "IDE", "PCI", "SATA", "SPAPR"]


class Plain(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True, rename="camel"):
    pass


class Entity(Plain, frozen=True, kw_only=True):
    """What has an id, a version that moves with every change, and times."""

    ext_id: str = ""  # in a file: made from kind and name where left out
    version: int = 1
    created: float = 0.0
    updated: float = 0.0


class Host(Plain, frozen=True, kw_only=True):
    name: str
    ext_id: str = ""
    sockets: int = 2
    cores: int = 32
    threads: int = 64
    memory_bytes: int = 512 * GIB
    address: str = ""
    cpu_model: str = "Intel(R) Xeon(R) Gold 6326 CPU @ 2.90GHz"
    maintenance: bool = False


class Cluster(Entity, frozen=True, kw_only=True):
    """A Prism Element, or (`central`) the Prism Central itself."""

    name: str
    central: bool = False
    hosts: tuple[Host, ...] = ()
    address: str = ""
    data_services_address: str = ""
    version_aos: str = "7.3"
    timezone: str = "UTC"
    categories: tuple[str, ...] = ()
    vcpus_per_core: float = 8.0  # how far processors are shared out


class Container(Entity, frozen=True, kw_only=True):
    name: str
    cluster: str
    capacity_bytes: int = 20 * 1024 * GIB
    replication_factor: int = 2


class Subnet(Entity, frozen=True, kw_only=True):
    name: str
    description: str = ""
    type: Literal["VLAN", "OVERLAY"] = "VLAN"
    vlan: int = 0
    clusters: tuple[str, ...] = ()
    cidr: str = ""  # without: no address management, machines get theirs from somebody else's DHCP
    gateway: str = ""
    pools: tuple[str, ...] = ()  # "10.0.0.50-10.0.0.99"
    dhcp_server: str = ""
    name_servers: tuple[str, ...] = ()
    domain: str = ""
    ipv6: str = ""  # fd00:14::/64: what the network's router announces; machines make their addresses of it themselves
    outside: str = ""  # range of that other DHCP, for subnets without address management
    reserved: tuple[Reservation, ...] = ()
    vpc: str = ""
    external: bool = False
    lacks: tuple[Literal["internet", "dns", "registry"], ...] = ()  # what machines on it do not reach

    def __post_init__(self) -> None:
        if self.cidr:
            ip_network(self.cidr)
        if self.ipv6:
            IPv6Network(self.ipv6)
        for text in (*self.pools, *([self.outside] if self.outside else [])):
            parse_range(text)

    @property
    def managed(self) -> bool:
        return bool(self.cidr)


class Reservation(Plain, frozen=True):
    address: str
    context: str = ""


class Image(Entity, frozen=True, kw_only=True):
    name: str
    description: str = ""
    type: Literal["DISK_IMAGE", "ISO_IMAGE"] = "DISK_IMAGE"
    size_bytes: int = 10 * GIB
    source: str = ""
    os: str = ""  # family of the system on it: talos, ubuntu, rocky, ...
    network: Literal["bridge", "none"] = "bridge"  # none: kubeadm Nodes stay NotReady until a CNI plugin is installed
    programs: tuple[str, ...] = ()  # that it has besides the usual ones: oras, ...
    without: tuple[str, ...] = ()  # usual ones that it does not have: curl, ...
    clusters: tuple[str, ...] = ()  # none: everywhere
    categories: tuple[str, ...] = ()
    checksum: str = ""  # sha256:...
    project: str = ""
    owner: str = ""


class Category(Entity, frozen=True, kw_only=True):
    key: str
    value: str = ""  # without: a key that has no value yet (v3 makes such)
    description: str = ""
    type: Literal["USER", "SYSTEM", "INTERNAL"] = "USER"
    owner: str = ""


class Project(Entity, frozen=True, kw_only=True):
    name: str
    description: str = ""
    default: bool = False
    clusters: tuple[str, ...] = ()
    subnets: tuple[str, ...] = ()
    vcpu_limit: int = 0  # 0: none
    memory_limit_bytes: int = 0
    storage_limit_bytes: int = 0


class GpuDevice(Entity, frozen=True, kw_only=True):
    """GPUs of one model in a host: whole (`PASSTHROUGH_*`) or parts of one (`VIRTUAL`)."""

    name: str
    cluster: str
    host: str = ""
    device_id: int
    vendor: Literal["kNvidia", "kIntel", "kAmd"] = "kNvidia"
    mode: Literal["PASSTHROUGH_COMPUTE", "PASSTHROUGH_GRAPHICS", "VIRTUAL"] = "PASSTHROUGH_COMPUTE"
    count: int = 1
    fraction: int = 0
    frame_buffer_bytes: int = 24 * GIB


class User(Entity, frozen=True, kw_only=True):
    name: str
    passwords: tuple[str, ...] = ()
    api_keys: tuple[str, ...] = ()
    display_name: str = ""
    email: str = ""
    viewer: bool = False  # may only read
    permissions: tuple[str, ...] = ()  # "create vms", "view *": all that he may; none: everything
    service: bool = False


class Disk(Plain, frozen=True, kw_only=True):
    ext_id: str
    bus: Bus = "SCSI"
    index: int = 0
    size_bytes: int = 0
    container: str = ""
    image: str = ""
    source_disk: str = ""
    disk_ext_id: str = ""
    volume_group: str = ""
    flash: bool = False
    cdrom: bool = False
    iso: Literal["OTHER", "GUEST_TOOLS", "GUEST_CUSTOMIZATION"] = "OTHER"
    attributes: tuple[str, ...] = ()


class Nic(Plain, frozen=True, kw_only=True):
    ext_id: str
    subnet: str
    mac: str
    connected: bool = True
    assign: bool = True  # an address from the subnet's own management, where it has one
    address: str = ""  # that address
    requested: str = ""  # the one that was asked for
    learned: tuple[str, ...] = ()
    learned6: tuple[str, ...] = ()
    model: str = "VIRTIO"
    vlan_mode: str = "ACCESS"
    trunked: tuple[int, ...] = ()
    queues: int = 1
    type: str = "NORMAL_NIC"


class Gpu(Plain, frozen=True, kw_only=True):
    ext_id: str
    device_id: int
    mode: str
    vendor: str = "NVIDIA"
    name: str = ""
    device: str = ""


class Vm(Entity, frozen=True, kw_only=True):
    name: str
    cluster: str
    description: str = ""
    sockets: int = 1
    cores: int = 1
    threads: int = 1
    memory_bytes: int = GIB
    power: PowerState = "OFF"
    host: str = ""
    disks: tuple[Disk, ...] = ()
    nics: tuple[Nic, ...] = ()
    gpus: tuple[Gpu, ...] = ()
    categories: tuple[str, ...] = ()
    project: str = ""
    owner: str = ""
    boot: Literal["LEGACY", "UEFI", "SECURE_BOOT"] = "LEGACY"
    boot_order: tuple[str, ...] = ("CDROM", "DISK", "NETWORK")
    machine_type: str = "PC"
    timezone: str = "UTC"
    bios_uuid: str = ""
    generation_uuid: str = ""
    user_data: str = ""  # base64, as it came
    meta_data: str = ""
    datasource: str = "CONFIG_DRIVE_V2"
    attributes: tuple[str, ...] = ()
    flags: dict[str, bool] = {}  # isAgentVm and its like, under their v4 names
    spec_version: int = 0  # counts what was asked for; `version` counts every change
    powered_at: float = 0.0
    booted: bool = False
    late: float | None = 0.0  # addresses come so long after the power-on; None: never
    last_task: str = ""
    vtpm: bool = False

    @property
    def vcpus(self) -> int:
        return self.sockets * self.cores * self.threads


class VolumeDisk(Plain, frozen=True, kw_only=True):
    ext_id: str
    index: int = 0
    size_bytes: int = 0
    container: str = ""
    description: str = ""


class VolumeGroup(Entity, frozen=True, kw_only=True):
    name: str
    cluster: str
    description: str = ""
    disks: tuple[VolumeDisk, ...] = ()
    attached: tuple[str, ...] = ()  # ids of VMs
    sharing: str = "NOT_SHARED"
    target_name: str = ""
    usage: str = "USER"
    owner: str = ""
    hidden: bool = False


class Affected(Plain, frozen=True):
    kind: str
    ext_id: str
    name: str = ""


class Failure(Plain, frozen=True):
    code: str
    message: str
    group: str = ""


class Task(Entity, frozen=True, kw_only=True):
    """Something that goes on. `action` and `arguments` say what happens when it is done: it survives a save."""

    operation: str
    action: str = ""
    arguments: dict[str, Any] = {}
    status: Literal["QUEUED", "RUNNING", "SUCCEEDED", "FAILED", "CANCELED"] = "QUEUED"
    countdown: Countdown = Countdown()
    affected: tuple[Affected, ...] = ()
    cluster: str = ""
    owner: str = ""
    parent: str = ""
    children: tuple[str, ...] = ()
    started: float = 0.0
    completed: float = 0.0
    failure: Failure | None = None  # after FAILED; before, what it will fail with
    details: dict[str, str] = {}  # completionDetails
    progress: int = 0

    @property
    def over(self) -> bool:
        return self.status in ("SUCCEEDED", "FAILED", "CANCELED")


class Timer(Entity, frozen=True, kw_only=True):
    """What happens to a machine later: its boot, its crash, its addresses."""

    at: float
    what: Literal["boot", "address-change", "address-loss", "crash"]
    vm: str
    powered_at: float  # void once the machine was powered off


_RANGE = re.compile(r"\s*(\S+?)\s*-\s*(\S+?)\s*")


def parse_range(text: str) -> tuple[int, int]:
    """First and last address of `10.0.0.50-10.0.0.99` or `10.0.0.0/24`, as numbers."""
    if "/" in text:
        network = ip_network(text)
        return int(network.network_address) + 1, int(network.broadcast_address) - 1
    found = _RANGE.fullmatch(text)
    first, last = (found.group(1), found.group(2)) if found else (text.strip(), text.strip())
    low, high = int(ip_address(first)), int(ip_address(last))
    if high < low:
        raise ValueError(f"the range {text!r} ends before it begins")
    return low, high
