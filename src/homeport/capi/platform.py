"""How a provider serves platforms: APIs for users, such as Butler's, whose objects become Cluster API objects.

A platform knows no provider: it finds the PlatformSupport of a type among the components. Everything in the record is
pure, except `open`, which gives access to the vendor.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Protocol

from homeport.api.meta import Resource
from homeport.client.dial import DialOptions
from homeport.runtime.manager import Manager
from homeport.runtime.outcome import Wait

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Fault:
    """Something wrong with a provider's part of an object. `field` is below that part: 'cluster.uuid'."""

    field: str
    message: str


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a site was read from, in the words of the platform: messages name these."""

    part: str  # path of the provider's part, for example 'spec.nutanix'
    secret: str = ""  # for example 'Secret butler-system/nutanix-credentials'
    insecure: str = ""  # the field that turns off the verification of certificates


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """Where machines go and with which credentials, in one spelling. Providers extend it with what they need."""

    type: str
    server: str  # for messages, without credentials
    origin: Origin
    image: str = ""  # of machines that name none, as the user wrote it


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterRequest:
    """The infrastructure of one cluster. Without an endpoint the control plane's provider supplies it."""

    name: str
    namespace: str
    endpoint: tuple[str, int] | None = None
    labels: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ExtraDisk:
    size: str  # a quantity, for example 20Gi
    storage_class: str = ""  # a storage container on Nutanix


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """What a machine has. `image`: an id or name as the probe reports it; '': the site's own."""

    cpu: int
    memory: str  # a quantity, for example 8Gi
    disk: str
    image: str = ""
    extra_disks: tuple[ExtraDisk, ...] = ()
    keys: tuple[str, ...] = ()  # names of SSH keys that the vendor keeps; empty where it keeps none
    labels: Mapping[str, str] = field(default_factory=dict)


# -- what a probe finds ----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Problem:
    reason: str
    message: str
    advisory: bool = False  # reported only: machines may work nevertheless


@dataclass(frozen=True, slots=True)
class Resolved:
    """Something that a site names, and what the vendor knows it by."""

    field: str  # below the provider's part, for example 'cluster'
    name: str
    id: str  # '': several have that name
    candidates: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ImageFact:
    """`system`: talos, rocky, ubuntu, ...; '' if it can't be told from the name."""

    id: str  # as machines name it in `Shape.image`
    name: str  # as users see it
    system: str = ""
    usable: bool = True  # a disk image whose import has finished
    size_bytes: int = 0


@dataclass(frozen=True, slots=True)
class Room:
    """What is left on the hosts. `cpu` None: the vendor does not limit CPUs."""

    memory_bytes: int
    total_memory_bytes: int
    hosts: int
    cpu: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeReport:
    """What a vendor answered. That there is a report shows that the credentials work."""

    version: str = ""
    problems: tuple[Problem, ...] = ()  # of references
    resolved: tuple[Resolved, ...] = ()
    images: tuple[ImageFact, ...] = ()
    room: Room | None = None  # None: the account may not see it
    unknown_room: str = ""  # why


# -- what there is to choose from ------------------------------------------------------------------------------------

EntityKind = Literal["cluster", "image", "network", "storage", "host", "failure-domain"]


@dataclass(frozen=True, slots=True)
class Entity:
    """Something at a vendor that manifests can name."""

    kind: EntityKind
    id: str
    name: str  # as manifests name it
    place: str = ""  # the cluster of the vendor that has it; '': all of them
    usable: bool = True
    details: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """Where the credentials for a discovery come from: a site, an InfraCluster, or settings and a Secret's data."""

    site: Any = None
    infra: Any = None
    settings: Mapping[str, Any] = field(default_factory=dict)
    secret: Mapping[str, str] = field(default_factory=dict)


# -- machines without a cluster --------------------------------------------------------------------------------------


async def _record_nothing(annotations: Mapping[str, str]) -> None:
    del annotations


def _no_wake() -> None: ...


@dataclass(slots=True, kw_only=True)
class MachineOrder:
    """One machine that belongs to an object of the platform.

    `uid` marks the machine at the vendor: others are never touched. `kept` is what the driver noted in the last call;
    the caller keeps it in the object's status.
    """

    uid: str
    namespace: str
    object_name: str
    name: str  # of the machine at the vendor
    shape: Shape
    user_data: bytes = b""  # b'': the machine boots without any
    control_plane: bool = False
    provider_id: str = ""
    has_run: bool = False  # it ran before: if it is off or gone now, somebody else did that
    deleting: bool = False
    annotations: Mapping[str, str] = field(default_factory=dict)
    kept: Mapping[str, Any] = field(default_factory=dict)
    record: Callable[[Mapping[str, str]], Awaitable[None]] = _record_nothing  # writes annotations immediately
    wake: Callable[[], None] = _no_wake


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineFact:
    """A machine as the vendor has it now."""

    id: str
    provider_id: str
    name: str
    power: Literal["on", "off", "changing", "unknown"]
    addresses: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineOutcome:
    """`wait` None: the machine runs and has addresses; of a deletion: it is gone."""

    wait: Wait | None
    machine: MachineFact | None = None
    kept: Mapping[str, Any] = field(default_factory=dict)


class Machines(Protocol):
    """Each call takes one step and never blocks on the vendor. Raises ProviderError; `kept` of the order is updated."""

    async def converge(self, site: Any, order: MachineOrder) -> MachineOutcome: ...

    async def release(self, site: Any, order: MachineOrder) -> MachineOutcome: ...

    async def observe(self, site: Any, order: MachineOrder) -> MachineFact | None: ...

    def stop_watching(self, uid: str) -> None: ...


# -- images ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Content:
    """A file of this machine that is uploaded."""

    path: Path
    size: int


@dataclass(slots=True, kw_only=True)
class ImageOrder:
    """One image that belongs to an object of the platform.

    `uid` marks the image at the vendor as made for that object: others are never deleted. `content` names what is in
    the image: one with the same content is used again, whoever made it. `kept` is what the driver noted in the last
    call; the caller keeps it in the object's status.
    """

    uid: str
    name: str  # of the image at the vendor, as users see it
    content: str  # fits into a label
    url: str = ""  # from where the vendor downloads it; '': `file` is uploaded
    file: Content | None = None
    sha256: str = ""
    sha512: str = ""
    iso: bool = False
    system: str = ""  # talos, rocky, ...; '' if it is not known
    kept: Mapping[str, Any] = field(default_factory=dict)
    wake: Callable[[], None] = _no_wake


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageOutcome:
    """`wait` None: machines can use the image; of a deletion: nothing that was made for the order is left."""

    wait: Wait | None
    id: str = ""  # as machines name it in `Shape.image`; '': there is none yet
    made: bool = True  # False: it was there already
    progress: int | None = None  # percent
    task: str = ""  # the vendor's, while it works
    verified: str = ""  # how the checksum was verified; '': it was not
    unverified: str = ""  # why not


class Images(Protocol):
    """Each call takes one step and never blocks on the vendor. Raises ProviderError; `kept` of the order is updated."""

    async def converge(self, site: Any, order: ImageOrder) -> ImageOutcome: ...

    async def release(self, site: Any, order: ImageOrder) -> ImageOutcome:
        """Deletes what was made for the order."""

    def forget(self, uid: str) -> None:
        """The object of this UID is gone or paused: what was begun for it here ends."""


class PlatformAccess(Protocol):
    """A vendor on one manager. Sessions are shared by all who use the same credentials."""

    @property
    def machines(self) -> Machines: ...

    @property
    def images(self) -> Images | None:
        """None: the provider does not take images."""

    async def probe(self, site: Any) -> ProbeReport:
        """Raises ProviderError if the vendor can't be asked: no connection, wrong credentials."""

    async def discover(self, source: Source) -> Sequence[Entity]:
        """Everything that manifests can name. Reads only. Raises ProviderError."""

    async def close(self) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class PlatformSupport:
    """What a provider's component brings for platforms."""

    type: str  # as users write it: nutanix, harvester
    title: str  # for messages, for example 'Nutanix AHV'
    interface: str  # first network interface of machines, which holds virtual addresses
    secret_key: str = ""  # of a Secret whose reference names no key; '': all of its keys are read
    cluster_kind: Resource
    template_kind: Resource
    # Without the Secret: for admission. Spellings that contradict each other and references without a name.
    faults: Callable[[Mapping[str, Any]], Sequence[Fault]]
    # (part, decoded data of the Secret, origin). Raises Misconfigured that names the field. Keys of the part win.
    site: Callable[[Mapping[str, Any], Mapping[str, str], Origin], Any]
    # In the order of their creation; the InfraCluster is the last one.
    cluster_objects: Callable[[Any, ClusterRequest], list[Json]]
    # apiVersion, kind and spec: the caller names it.
    machine_template: Callable[[Any, Shape], Json]
    open: Callable[[Manager, DialOptions], PlatformAccess]
