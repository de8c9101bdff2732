"""What a provider implements. Every method is level-triggered and idempotent, and none waits for a vendor's task to
finish: a running task is a reason to return a `Wait`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf
from typing import Any, Generic, Literal, Protocol, TypeVar

from homeport.api.cluster.v1beta2 import Cluster
from homeport.api.meta import Object
from homeport.capi.cloud import Address, Sources
from homeport.capi.family import Family
from homeport.client.protocol import Key
from homeport.infra.error import ProviderError, Rejected
from homeport.infra.machine.location import Location
from homeport.infra.preflight.plan import NO_PLAN, ClusterPlan, MachinePlan
from homeport.infra.vendor.task import Poller, Task
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

    id: str  # as the vendor assigned it
    provider_id: str  # as in spec.providerID of its Node
    name: str
    power: Power
    addresses: tuple[Address, ...] = ()
    failure_domain: str = ""
    uid: str = ""  # of the InfraMachine that it was created for, read from its mark
    complete: bool = True  # False: the vendor has not finished creating it
    deleting: bool = False  # the vendor is deleting it
    vendor: Any = None  # the vendor's own record, for the driver

    @property
    def serving(self) -> bool:
        return self.power == "on" and self.complete and bool(self.addresses)


@dataclass(frozen=True, slots=True)
class StaticAddress:
    """An address that a pool assigned to a machine."""

    address: str
    prefix: int
    gateway: str = ""
    pool: str = ""  # kind and name of the pool, for messages


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
    waiting: bool = False  # not an error: something does not exist yet
    advisory: bool = False  # reported only: the cluster may work nevertheless


@dataclass(frozen=True, slots=True)
class Owned:
    """A machine at the vendor that carries our mark."""

    id: str
    name: str
    uid: str  # of the InfraMachine that it was created for
    cluster_uid: str = ""  # of the InfraCluster
    addresses: tuple[str, ...] = ()
    power: Power = "unknown"
    remains: bool = False  # what a machine left behind: the id is not that of the machine


async def _record_nothing(annotations: Mapping[str, str]) -> None:
    del annotations


def _no_wake() -> None: ...


Report = Callable[[str, bool, str, str], None]  # condition type, whether it is True, reason, message


def _no_report(condition: str, ok: bool, reason: str, message: str) -> None:
    del condition, ok, reason, message


def _no_interface(infra: Object) -> str:
    del infra
    return ""


def _unknown_location(session: Session) -> Location:
    del session
    return Location()


@dataclass(frozen=True, slots=True)
class TaskReference:
    """A task of the vendor that an operation started."""

    operation: Operation
    id: str


class Session(Protocol):
    """A connection to a vendor's endpoint; shared by all objects that use the same endpoint and credentials."""

    async def close(self) -> None: ...


@dataclass(slots=True)
class ClusterScope(Generic[C, S]):
    """The input of a ClusterDriver. `infra` is a private copy; changes of its status are written to the API."""

    cluster: Cluster
    infra: C
    session: S
    plan: ClusterPlan = NO_PLAN
    provisioned: bool = False
    report: Report = _no_report

    @property
    def name(self) -> str:
        return self.cluster.metadata.name


@dataclass(slots=True)
class MachineScope(Generic[C, M, S]):
    """The input of a MachineDriver. Only `infra` and `session` are required: a machine can exist without a cluster.

    `infra` need not exist in the API. Its `metadata.uid` is the machine's identity at the vendor, and its status holds
    what the driver needs in later calls.
    """

    infra: M
    session: S
    name: str = ""  # of the machine at the vendor (default: the name of the object)
    infra_cluster: C | None = None
    cluster: str = ""  # name of the cluster that it belongs to
    endpoint: str = ""  # host of the control plane endpoint: not an address of the machine itself
    family: Family = 0  # addresses of this family are listed first
    version: str = ""  # of Kubernetes
    control_plane: bool = False
    has_run: bool = False  # it ran before: if it is off or gone now, somebody else did that
    user_data: bytes = b""
    bare: bool = False  # it is meant to boot without user data
    format: str = ""  # of the user data: cloud-config, ignition, ...
    addresses: tuple[StaticAddress, ...] = ()  # for its network cards, in order; further cards use DHCP or IPAM
    failure_domain: str = ""
    never_asked: bool = False  # no request to create it was ever sent: there is no machine to find
    # Writes annotations of the object immediately. Their names start with PROVIDER.homeport.dev/.
    record: Callable[[Mapping[str, str]], Awaitable[None]] = _record_nothing
    wake: Callable[[], None] = _no_wake  # triggers a reconcile: call it when the machine has changed at the vendor
    report: Report = _no_report

    def __post_init__(self) -> None:
        self.name = self.name or self.infra.metadata.name

    @property
    def uid(self) -> str:
        return self.infra.metadata.uid

    @property
    def deleting(self) -> bool:
        return bool(self.infra.metadata.deletion_timestamp)


class Preflight(Protocol[S_contra]):
    """Finds mistakes in the plans of machines before the first machine exists.

    The session proves that the credentials are valid. A failed check is a result, not an exception.
    """

    async def check_references(
        self, session: S_contra, plans: Sequence[MachinePlan], namespace: str
    ) -> Sequence[Check]:
        """Checks that everything the templates name exists. `namespace`: of the objects that they refer to."""

    async def check_capacity(self, session: S_contra, plans: Sequence[MachinePlan]) -> Sequence[Check]:
        """Checks that there is room for all machines. Ignores plans whose references don't resolve."""


class ClusterDriver(Protocol[C, S]):
    """What a provider does for a cluster besides its machines. Inherit from it; methods with a body are optional."""

    async def preflight(self, scope: ClusterScope[C, S]) -> Sequence[Check]:
        """Checks the cluster itself: its endpoint, networks and failure domains.

        Also called of clusters that are provisioned, for problems that appear later: they are only reported.
        """
        return ()

    async def converge(self, scope: ClusterScope[C, S]) -> Wait | None:
        """Creates what machines need: categories, networks, load balancers. None: the cluster is provisioned."""

    async def endpoint(self, scope: ClusterScope[C, S]) -> tuple[str, int] | None:
        """The address of the control plane, if the provider chooses it; None: the address in the spec stays."""
        infra: Any = scope.infra
        held = infra.spec.control_plane_endpoint
        return None if held.port or not held.host else (held.host, 6443)

    async def failure_domains(self, scope: ClusterScope[C, S]) -> Sequence[FailureDomain]:
        return ()

    async def release(self, scope: ClusterScope[C, S]) -> Wait | None:
        """Deletes what `converge` created. None: the vendor confirms that all of it is gone."""

    async def list_owned(self, scope: ClusterScope[C, S]) -> Sequence[Owned]:
        """All machines with the mark of this cluster. Homeport looks for orphans among them."""

    async def list_recent(self, scope: ClusterScope[C, S]) -> Sequence[Owned]:
        """As `list_owned`, but may be seconds old: for vendors where one list of all machines serves many clusters."""
        return await self.list_owned(scope)

    async def list_earlier(self, scope: ClusterScope[C, S]) -> Sequence[Owned]:
        """As `list_owned`, before the first control plane is created: machines that are older than the objects of the
        cluster. A provider that knows for certain that there are none need not read all machines."""
        return await self.list_owned(scope)

    async def remove(self, scope: ClusterScope[C, S], owned: Owned) -> None:
        """Starts the deletion of an orphan that still carries its marks. It is not an error if it is gone."""


class Instances(Protocol[C, M, S, P]):
    """A vendor's requests about machines: what a provider writes. `infra/machine/driver.py` decides when to send which.

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
        """The poller of the session. Needed if any request returns the id of a task."""
        raise TypeError(f"{type(self).__name__} returned the id of a task and has no method tasks")

    def kept_task(self, scope: MachineScope[C, M, S]) -> TaskReference | None:
        """The task that the object's status names."""
        return None

    def keep_task(self, scope: MachineScope[C, M, S], task: TaskReference | None) -> None:
        """Notes the task in the object's status, so that another process can follow it."""
        return

    def failure(self, scope: MachineScope[C, M, S], operation: Operation, task: Task, what: str) -> ProviderError:
        """The error of a task that failed. `what`: the first part of the message."""
        return Rejected(f"{what}: {task.error or 'the task failed without a message'}")

    async def obstacle(self, scope: MachineScope[C, M, S]) -> str:
        """What keeps the vendor from working on tasks of this machine, for messages; '' if nothing is known."""
        return ""

    # -- for providers that watch machines in the background ---------------------------------------------------

    def expect(self, scope: MachineScope[C, M, S], change: Expected) -> None:
        """How soon the machine will change: the background watch looks more often or less often."""
        return

    def stop_watching(self, uid: str) -> None:
        """The object is paused or gone."""
        return


class MachineDriver(Protocol[C, M, S]):
    """The steps of one machine's life. `infra/machine/driver.py` implements them for all vendors with `Instances`."""

    async def observe(self, scope: MachineScope[C, M, S]) -> Instance | None:
        """The machine that was created for this object, found by its mark; None if there is none."""

    async def converge(self, scope: MachineScope[C, M, S], instance: Instance | None) -> Wait | None:
        """Takes the next step towards a running machine. None: nothing is left to do."""

    async def release(self, scope: MachineScope[C, M, S], instance: Instance | None) -> Wait | None:
        """Takes the next step of a deletion. None: `instance` is None, and nothing else of the machine is left."""

    async def quiesce(self, scope: MachineScope[C, M, S]) -> Wait | None:
        """Waits for running operations and starts none. None: none is running, and `observe` finds their result."""

    def stop_watching(self, uid: str) -> None:
        """The object of this UID is paused: a driver that watches its machine in the background stops doing so."""


class Connector(Protocol[C_contra, M_contra, S_co]):
    """Opens sessions. All methods raise ProviderError: missing Secret, wrong password, no route."""

    def sources(self, infra: C_contra) -> Sources:
        """The Secrets and ConfigMaps that the connection needs. A change of one triggers a reconcile."""

    async def connect(self, infra: C_contra) -> S_co: ...

    async def connect_machine(self, infra: M_contra, cluster: C_contra | None) -> S_co:
        """With the machine's own credentials if it has any, otherwise with those of its cluster."""

    async def open(self, settings: Mapping[str, Any], secret: Mapping[str, str]) -> S_co:
        """From plain settings and the decoded data of a Secret, without reading objects."""

    async def close(self) -> None:
        """Ends all sessions."""


@dataclass(frozen=True, slots=True)
class Conditions:
    """Types of the conditions that every provider reports. Providers with an upstream use upstream's names."""

    connection: str = "ConnectionEstablished"
    orphans: str = "NoOrphanedMachines"
    instance: str = "InstanceProvisioned"
    addresses: str = "AddressesAssigned"


@dataclass(frozen=True, slots=True)
class Trigger:
    """Objects that a preflight reads: a change of one reconciles the InfraClusters in `keys`."""

    kind: Any
    keys: Callable[[Any], Iterable[Key]]


@dataclass(frozen=True, slots=True)
class Provider(Generic[C, M, S]):
    """Everything that Homeport needs to know about a provider.

    Finalizers are spelled as upstream spells them, so that upstream's controllers can take over the objects.
    """

    name: str
    cluster_kind: type[C]
    machine_kind: type[M]
    cluster_driver: ClusterDriver[C, S]
    machine_driver: MachineDriver[C, M, S]
    connector: Connector[C, M, S]
    preflight: Preflight[S]
    cluster_finalizer: str
    machine_finalizer: str
    source_finalizer: str = ""  # protects credentials while a cluster needs them; '': they are not protected
    former_finalizers: frozenset[str] = frozenset()  # older names of these finalizers, which are removed where found
    conditions: Conditions = Conditions()
    machine_sources: Callable[[M], Sources] | None = None  # for kinds whose machines can have their own credentials
    triggers: Sequence[Trigger] = ()
    machine_triggers: Sequence[Trigger] = ()  # the same for InfraMachines, which their driver reads
    template_kind: type[Object] | None = None  # of machine templates, which preflight checks
    capacity: Callable[[Any], Mapping[str, Any]] | None = None  # of a template's machines, for autoscalers
    observe_seconds: float = 60.0  # how often running machines are observed; longer if the driver watches them
    sweep_seconds: float = 600.0
    front_seconds: float = inf  # how often a load balancer in front of a control plane is looked at; inf: it is watched
    # Network interface of control plane machines for the virtual address; '': the provider has load balancers.
    vip_interface: Callable[[C], str] = _no_interface
    # The place where a session's machines are. Machines that are not found at another place are not gone.
    location: Callable[[S], Location] = _unknown_location
