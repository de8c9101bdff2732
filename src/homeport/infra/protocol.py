"""What a provider brings. Everything is level-triggered and idempotent, and nothing waits for a vendor's task:
a task that runs is a reason to `Wait`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, Literal, Protocol, TypeVar

from homeport.api.cluster.v1beta2 import Cluster
from homeport.api.meta import Object
from homeport.capi.cloud import Address, Sources
from homeport.capi.family import Family
from homeport.client.protocol import Key
from homeport.infra.error import ProviderError, Rejected
from homeport.infra.plan import NO_PLAN, ClusterPlan, MachinePlan
from homeport.infra.task import Poller, Task
from homeport.runtime.outcome import Wait

C = TypeVar("C", bound=Object)
M = TypeVar("M", bound=Object)
S = TypeVar("S", bound="Session")
C_contra = TypeVar("C_contra", bound=Object, contravariant=True)
M_contra = TypeVar("M_contra", bound=Object, contravariant=True)
P = TypeVar("P")  # what a provider prepares for a creation
S_co = TypeVar("S_co", bound="Session", covariant=True)
S_contra = TypeVar("S_contra", bound="Session", contravariant=True)

Power = Literal["on", "off", "changing", "unknown"]
Operation = Literal["create", "power-on", "delete"]
# "now": it was asked to change just now. "soon": it has not finished changing. "no": it runs as it should.
Expected = Literal["now", "soon", "no"]


@dataclass(frozen=True, slots=True)
class Instance:
    """A machine at the vendor, as it was observed just now."""

    id: str  # the vendor's
    provider_id: str  # as Nodes carry it
    name: str
    power: Power
    addresses: tuple[Address, ...] = ()
    failure_domain: str = ""
    uid: str = ""  # of the InfraMachine that it was created for, as its mark says
    complete: bool = True  # False: the vendor has not finished creating it
    deleting: bool = False  # the vendor is deleting it
    vendor: Any = None  # the vendor's own record, for the driver

    @property
    def serving(self) -> bool:
        return self.power == "on" and self.complete and bool(self.addresses)


@dataclass(frozen=True, slots=True)
class StaticAddress:
    """One that a machine shall have, as a pool gave it."""

    address: str
    prefix: int
    gateway: str = ""
    pool: str = ""  # which one, for messages


@dataclass(frozen=True, slots=True)
class FailureDomain:
    name: str
    control_plane: bool = True
    attributes: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Check:
    """One result of a preflight. `condition` groups checks: credentials, references, capacity, ..."""

    condition: str
    ok: bool
    reason: str = ""
    message: str = ""
    waiting: bool = False  # not wrong, only not there yet
    advisory: bool = False  # reported, but it may work all the same: nothing waits for it


@dataclass(frozen=True, slots=True)
class Owned:
    """A machine at the vendor that carries our mark."""

    id: str
    name: str
    uid: str  # of the InfraMachine that it was made for
    cluster_uid: str = ""  # of the InfraCluster
    addresses: tuple[str, ...] = ()
    power: Power = "unknown"


async def _keep_nothing(annotations: Mapping[str, str]) -> None:
    del annotations


def _wake_nobody() -> None: ...


Report = Callable[[str, bool, str, str], None]  # condition, whether it holds, reason, message


def _tell_nobody(condition: str, ok: bool, reason: str, message: str) -> None:
    del condition, ok, reason, message


def _no_interface(infra: Object) -> str:
    del infra
    return ""


@dataclass(frozen=True, slots=True)
class TaskReference:
    """A task of the vendor that an operation started."""

    operation: Operation
    id: str


class Session(Protocol):
    """A connection to a vendor's endpoint with some credentials; shared by all objects that use the same."""

    async def close(self) -> None: ...


@dataclass(slots=True)
class ClusterScope(Generic[C, S]):
    """What a ClusterDriver works on. `infra` is a private copy; what the driver writes to its status is published."""

    cluster: Cluster
    infra: C
    session: S
    plan: ClusterPlan = NO_PLAN
    sharing: bool = False  # another Cluster of the same name exists, in some other namespace
    provisioned: bool = False
    report: Report = _tell_nobody

    @property
    def name(self) -> str:
        return self.cluster.metadata.name


@dataclass(slots=True)
class MachineScope(Generic[C, M, S]):
    """What a MachineDriver works on. Only `infra` and `session` are required: a machine may belong to no cluster.

    `infra` need not exist in the API. Its `metadata.uid` is the machine's identity at the vendor, and its status keeps
    what the driver learns from one call to the next.
    """

    infra: M
    session: S
    name: str = ""  # of the machine at the vendor; '': as the object is called
    infra_cluster: C | None = None
    cluster: str = ""  # name of the cluster that it belongs to
    endpoint: str = ""  # host of the cluster's control plane: an address that is not the machine's own
    family: Family = 0  # the addresses of this family come first
    version: str = ""  # of Kubernetes
    control_plane: bool = False
    has_run: bool = False  # it was up before: if it is off or gone now, somebody did that
    user_data: bytes = b""
    format: str = ""  # of the user data: cloud-config, ignition, ...
    addresses: tuple[StaticAddress, ...] = ()  # for its network cards, in order; cards without get theirs elsewhere
    failure_domain: str = ""
    never_asked: bool = False  # no request to create it was ever sent: there is no machine to find
    record: Callable[[Mapping[str, str]], Awaitable[None]] = _keep_nothing  # annotations PROVIDER.homeport.dev/..., now
    wake: Callable[[], None] = _wake_nobody  # to be called when something happened at the vendor
    report: Report = _tell_nobody

    def __post_init__(self) -> None:
        self.name = self.name or self.infra.metadata.name

    @property
    def uid(self) -> str:
        return self.infra.metadata.uid

    @property
    def deleting(self) -> bool:
        return bool(self.infra.metadata.deletion_timestamp)


class Preflight(Protocol[S_contra]):
    """What can be found wrong with machines before one of them exists, from their plans alone.

    That the credentials are good is proven by the session. Never raises for what it checks.
    """

    async def check_references(
        self, session: S_contra, plans: Sequence[MachinePlan], namespace: str
    ) -> Sequence[Check]:
        """Whether everything that the templates name exists. `namespace`: of objects that they refer to."""

    async def check_capacity(self, session: S_contra, plans: Sequence[MachinePlan]) -> Sequence[Check]:
        """Whether there is room for all of them. Plans whose references don't resolve need no room."""


class ClusterDriver(Protocol[C, S]):
    """What a provider does for a cluster besides its machines. Inherit from it; methods with a body are optional."""

    async def preflight(self, scope: ClusterScope[C, S]) -> Sequence[Check]:
        """What can be wrong with the cluster itself: its endpoint, networks and failure domains.

        Also asked of clusters that are provisioned, for problems that appear later: they are only reported.
        """
        return ()

    async def converge(self, scope: ClusterScope[C, S]) -> Wait | None:
        """Brings about what machines need: categories, networks, balancers. None: provisioned."""

    async def endpoint(self, scope: ClusterScope[C, S]) -> tuple[str, int] | None:
        """The address of the control plane, where the provider decides it; None: the user's stays."""
        infra: Any = scope.infra
        held = infra.spec.control_plane_endpoint
        return None if held.port or not held.host else (held.host, 6443)

    async def failure_domains(self, scope: ClusterScope[C, S]) -> Sequence[FailureDomain]:
        return ()

    async def release(self, scope: ClusterScope[C, S]) -> Wait | None:
        """None: everything of this cluster was seen to be gone."""

    async def list_owned(self, scope: ClusterScope[C, S]) -> Sequence[Owned]:
        """Machines of this cluster, for the sweep of orphans."""

    async def remove(self, scope: ClusterScope[C, S], owned: Owned) -> None:
        """Begins to remove an orphan that still carries its marks. One that is gone already is no error."""


class Instances(Protocol[C, M, S, P]):
    """A vendor's requests about machines: what a provider writes. `infra/driver.py` decides which one is sent when.

    Each method sends its request and returns without waiting for what the request starts. A request that starts a
    task returns the id of the task; '' means that there is none, and that `get` and `find` show how it goes on.
    Providers inherit from this class; methods with a body are for vendors that need them.
    """

    vendor: str  # for messages, for example "Prism Central"
    host: str = "its host"  # what machines run on, for messages
    watches: bool = False  # True: `scope.wake` is called soon after a machine has changed

    async def get(self, scope: MachineScope[C, M, S], id: str, *, fresh: bool = False) -> Instance | None:
        """The machine with this id; None if the vendor does not have it. `fresh`: not from a cache."""

    async def find(self, scope: MachineScope[C, M, S]) -> Sequence[Instance]:
        """All machines that carry the mark of `scope.uid`, the oldest first. Includes those that are being created."""

    async def prepare(self, scope: MachineScope[C, M, S]) -> P:
        """What `create` will send, with all names of the spec resolved. Raises ProviderError that names the field."""

    async def create(self, scope: MachineScope[C, M, S], prepared: P, request_id: str) -> str:
        """Creates the machine with the marks `scope.uid` and, if it has a cluster, the UID of `scope.infra_cluster`.

        `request_id` is the same when the request is repeated because its reply was lost, and another one when the
        vendor has refused it.
        """

    async def power_on(self, scope: MachineScope[C, M, S], instance: Instance) -> str: ...

    async def delete(self, scope: MachineScope[C, M, S], instance: Instance) -> str | Wait:
        """Raises Missing if it is gone. A Wait: something else must be removed first, and is being removed."""

    def known_id(self, scope: MachineScope[C, M, S]) -> str:
        """The vendor's id of the machine as the object states it; '' if it does not."""
        infra: Any = scope.infra
        return str(infra.spec.provider_id or "").rpartition("/")[2]

    def keep_id(self, scope: MachineScope[C, M, S], id: str) -> None:
        """Notes the id in the object's status, for kinds that have a field for it."""
        return

    # -- for vendors with tasks --------------------------------------------------------------------------------

    def tasks(self, scope: MachineScope[C, M, S]) -> Poller:
        raise NotImplementedError(f"{self.vendor} has no tasks")

    def kept_task(self, scope: MachineScope[C, M, S]) -> TaskReference | None:
        """The task that the object's status names."""
        return None

    def keep_task(self, scope: MachineScope[C, M, S], task: TaskReference | None) -> None:
        """Notes the task in the object's status, so that another process can follow it."""
        return

    def failure(self, scope: MachineScope[C, M, S], operation: Operation, task: Task, what: str) -> ProviderError:
        """The error of a task that failed. `what`: the first part of the message."""
        return Rejected(f"{what}: {task.error or 'the task failed without a message'}")

    # -- for providers that watch machines in the background ---------------------------------------------------

    def expect(self, scope: MachineScope[C, M, S], change: Expected) -> None:
        """How soon the machine will change: the background watch looks more often or less often."""
        return

    def stop_watching(self, uid: str) -> None:
        """The object is paused or gone."""
        return


class MachineDriver(Protocol[C, M, S]):
    """The steps of one machine's life. `infra/driver.py` has the implementation for all vendors with `Instances`."""

    async def observe(self, scope: MachineScope[C, M, S]) -> Instance | None:
        """The machine made for this object, found by identity; never one that is not ours. None: there is none."""

    async def converge(self, scope: MachineScope[C, M, S], instance: Instance | None) -> Wait | None:
        """One step further. Creation is idempotent by the object's identity. None: nothing is left to do."""

    async def release(self, scope: MachineScope[C, M, S], instance: Instance | None) -> Wait | None:
        """One step towards absence. None is only an answer when `instance` is None and nothing else is left."""

    async def quiesce(self, scope: MachineScope[C, M, S]) -> Wait | None:
        """Follows what is under way to its end and begins nothing. None: nothing is, and `observe` knows."""

    def stop_watching(self, uid: str) -> None:
        """The object of this UID is paused: a driver that watches its machine in the background stops doing so."""


class Connector(Protocol[C_contra, M_contra, S_co]):
    """How to reach the vendor. All raise ProviderError: missing Secret, wrong password, no route."""

    def sources(self, infra: C_contra) -> Sources: ...

    async def connect(self, infra: C_contra) -> S_co: ...

    async def connect_machine(self, infra: M_contra, cluster: C_contra | None) -> S_co:
        """With the machine's own credentials where it names some, otherwise with those of its cluster."""

    async def open(self, settings: Mapping[str, Any], secret: Mapping[str, str]) -> S_co:
        """From plain settings and the decoded data of a Secret: no object is read."""

    async def close(self) -> None:
        """All sessions end."""


@dataclass(frozen=True, slots=True)
class Conditions:
    """What a provider calls the conditions that every provider has."""

    connection: str = "ConnectionEstablished"
    orphans: str = "NoOrphanedMachines"
    instance: str = "InstanceProvisioned"
    addresses: str = "AddressesAssigned"


@dataclass(frozen=True, slots=True)
class Trigger:
    """Objects whose change is worth a new look at InfraClusters: what a preflight reads."""

    kind: Any
    keys: Callable[[Any], Iterable[Key]]


@dataclass(frozen=True, slots=True)
class Provider(Generic[C, M, S]):
    """All of a provider. `finalizer_*` are as upstream spells them, so that objects may change hands."""

    name: str
    cluster_kind: type[C]
    machine_kind: type[M]
    cluster_driver: ClusterDriver[C, S]
    machine_driver: MachineDriver[C, M, S]
    connector: Connector[C, M, S]
    preflight: Preflight[S]
    cluster_finalizer: str
    machine_finalizer: str
    source_finalizer: str = ""  # keeps credentials while a cluster needs them; '': they may go at any time
    former_finalizers: frozenset[str] = frozenset()  # what upstream called any of these before: taken off where found
    conditions: Conditions = Conditions()
    machine_sources: Callable[[M], Sources] | None = None  # where machines may name credentials of their own
    triggers: Sequence[Trigger] = ()
    template_kind: type[Object] | None = None  # from which preflight learns what machines there will be
    capacity: Callable[[Any], Mapping[str, Any]] | None = None  # of a machine made from a template, for autoscalers
    observe_seconds: float = 60.0  # how often a running machine is looked at; longer where the driver wakes who changed
    sweep_seconds: float = 600.0
    # Where control planes of a cluster hold their virtual address; '': something in front of them has it.
    vip_interface: Callable[[C], str] = _no_interface
