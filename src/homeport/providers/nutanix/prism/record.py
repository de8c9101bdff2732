"""What Prism Central holds, in our words. Both versions of its API are read into these."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from homeport.infra.protocol import Power
from homeport.infra.vendor.task import Task
from homeport.infra.vendor.trouble import Quota


@dataclass(frozen=True, slots=True)
class Entity:
    """What all entities of Prism Central have."""

    id: str
    name: str


@dataclass(frozen=True, slots=True)
class Element(Entity):
    """A Prism Element cluster: where machines run. `is_central` marks Prism Central's own entry among them."""

    is_central: bool = False
    category_ids: tuple[str, ...] = ()
    release: str = ""  # of AOS, or of Prism Central itself
    connected: bool = True  # with Prism Central, as far as it reports that


@dataclass(frozen=True, slots=True)
class Subnet(Entity):
    kind: str  # VLAN or OVERLAY
    cluster_ids: tuple[str, ...] = ()
    cidr: str = ""
    pools: tuple[tuple[str, str], ...] = ()  # first and last address that Prism gives out
    free_addresses: int | None = None


@dataclass(frozen=True, slots=True)
class Image(Entity):
    kind: Literal["disk", "iso"]
    created: str = ""
    size_bytes: int = 0
    cluster_ids: tuple[str, ...] = ()
    marks: tuple[str, ...] = ()  # what our description says
    source: str = ""  # the URL that it was downloaded from
    sha256: str = ""
    failed: str = ""  # why it never became usable

    def mark(self, key: str) -> str:
        return mark_in(self.marks, key)


@dataclass(frozen=True, slots=True)
class NewImage:
    """An image to be made. Without `source` its content is uploaded afterwards."""

    name: str
    cluster_id: str
    marks: Sequence[str]
    source: str = ""
    sha256: str = ""
    iso: bool = False
    description: str = ""


@dataclass(frozen=True, slots=True)
class Category:
    id: str  # v3 has none: `key/value`
    key: str
    value: str
    etag: str = ""
    is_new: bool = False  # Prism Central said that it did not exist before: nothing can be in it


@dataclass(frozen=True, slots=True)
class Project(Entity):
    quotas: tuple[Quota, ...] = ()


@dataclass(frozen=True, slots=True)
class Host(Entity):
    memory_bytes: int
    threads: int = 0  # of its processors: as many vCPUs as a VM can have; 0 if it is not known


@dataclass(frozen=True, slots=True)
class Container(Entity):
    cluster_id: str


@dataclass(frozen=True, slots=True)
class GpuProfile:
    name: str
    device_id: int
    vendor: str
    mode: str
    virtual: bool
    free: bool


@dataclass(frozen=True, slots=True)
class Vm:
    id: str
    name: str
    cluster_id: str
    power: Power
    memory_bytes: int = 0
    addresses: tuple[str, ...] = ()
    category_ids: tuple[str, ...] = ()
    marks: tuple[str, ...] = ()  # custom attributes; before v4.2 what our description says
    volume_group_ids: tuple[str, ...] = ()
    host_id: str = ""
    project_id: str = ""
    created: str = ""
    etag: str = ""
    raw: Any = None

    def mark(self, key: str) -> str:
        return mark_in(self.marks, key)


def mark_in(marks: Sequence[str], key: str) -> str:
    """The value of a mark `key:value`; '' if there is none."""
    return next((each.partition(":")[2] for each in marks if each.partition(":")[0] == key), "")


def described(description: str, marks: Sequence[str]) -> str:
    """With the marks as lines of its own, where there is no other place for them."""
    return "\n".join([description, *marks]).strip()


def redescribed(description: object, add: Sequence[str], remove: Sequence[str]) -> str:
    """A description with other marks among its lines. What else it says stays."""
    kept = [line for line in str(description or "").splitlines() if line.strip() not in {*add, *remove}]
    return "\n".join([*kept, *add])


def marks_in(description: object) -> tuple[str, ...]:
    return tuple(line.strip() for line in str(description or "").splitlines() if ":" in line)


@dataclass(frozen=True, slots=True)
class Disk:
    """One to be made with a machine. `bus_index` None: the next free one."""

    size_bytes: int
    image_id: str = ""
    bus: str = "SCSI"
    bus_index: int | None = None
    container_id: str = ""
    flash: bool = False
    cdrom: bool = False


@dataclass(frozen=True, slots=True)
class Gpu:
    name: str
    device_id: int
    vendor: str
    mode: str


@dataclass(frozen=True, slots=True)
class VmDisk:
    """A disk that a machine has."""

    size_bytes: int
    bus: str = "SCSI"
    index: int = 0
    image_id: str = ""  # that it was made from, if Prism Central still shows it
    cdrom: bool = False
    volume_group: bool = False


@dataclass(frozen=True, slots=True)
class VmShape:
    """What a machine is made of, for one that is to be like it."""

    sockets: int
    cores_per_socket: int
    memory_bytes: int
    disks: tuple[VmDisk, ...] = ()
    subnet_ids: tuple[str, ...] = ()
    boot: Literal["legacy", "uefi"] = "legacy"
    bios_uuid: str = ""
    gpus: tuple[str, ...] = ()  # names


@dataclass(frozen=True, slots=True)
class NewNic:
    """One to be made with a machine. `address` '': as the subnet gives it."""

    subnet_id: str
    address: str = ""


@dataclass(frozen=True, slots=True)
class NewVm:
    """A machine to be made. `marks` say whose it is; they are there from its first moment."""

    name: str
    cluster_id: str
    sockets: int
    cores_per_socket: int
    memory_bytes: int
    disks: Sequence[Disk]
    nics: Sequence[NewNic]
    categories: Sequence[Category]
    user_data: bytes = b""
    meta_data: bytes = b""
    project_id: str = ""
    boot: Literal["", "legacy", "uefi"] = ""
    gpus: Sequence[Gpu] = ()
    marks: Sequence[str] = ()
    description: str = ""


class Prism(Protocol):
    """The verbs. All raise ProviderError; `task` ids go to `task` until it is over.

    Lists are whole (all pages). Writes that take `request_id` are idempotent by it where the API can do that (v4).
    """

    address: str
    version: str  # "v4.2", "v3"

    async def elements(self) -> list[Element]: ...
    async def hosts(self, cluster_id: str) -> list[Host]: ...
    async def subnets(self) -> list[Subnet]: ...
    async def images(self) -> list[Image]: ...
    async def projects(self) -> list[Project]: ...
    async def containers(self) -> list[Container]: ...
    async def gpus(self, cluster_id: str) -> list[GpuProfile]: ...
    async def find_category(self, key: str, value: str) -> Category | None: ...
    async def create_category(self, key: str, value: str, description: str) -> Category: ...
    async def delete_category(self, category: Category) -> None:
        """Raises Taken while something still carries it, and Outdated if it was changed meanwhile."""

    async def categories(self, key: str) -> list[Category]:
        """All values of a key."""

    async def host_name(self, cluster_id: str, host_id: str) -> str:
        """'' if there is no such host."""

    async def vm(self, vm_id: str) -> Vm | None: ...
    async def vms(self, wanted: Mapping[str, str]) -> list[Vm]:
        """Of these ids, with the names they had ('': not known): many in one call. Those that don't exist are left out.

        One that a list does not show may still be there, under another name: ask for it by itself to be sure.
        """

    async def find_vms(self, *, names: Sequence[str] = ()) -> list[Vm]: ...
    async def create_vm(self, vm: NewVm, request_id: str) -> str: ...
    async def power_on(self, vm: Vm) -> str: ...
    async def detach(self, vm: Vm, volume_group_id: str) -> str: ...
    async def delete_vm(self, vm: Vm) -> str: ...
    def shape(self, vm: Vm) -> VmShape:
        """Of a machine that was read by these verbs."""

    async def edit_marks(self, vm: Vm, *, add: Sequence[str] = (), remove: Sequence[str] = ()) -> str: ...
    async def add_category(self, vm: Vm, category: Category) -> str: ...
    async def remove_category(self, vm: Vm, category: Category) -> str: ...
    async def create_image(self, image: NewImage, request_id: str) -> str: ...
    async def upload_image(self, image_id: str, content: AsyncIterator[bytes], sha256: str) -> None:
        """Returns when all of it was sent."""

    async def delete_image(self, image: Image) -> str: ...
    async def recent_tasks(self) -> list[Task]:
        """The newest hundred of all users, in any state."""

    async def tasks(self, ids: Sequence[str]) -> list[Task]:
        """Many in one call where the API can. One that is not known any more is left out."""

    async def close(self) -> None: ...
