"""What a running plane tells about itself, as data."""

from __future__ import annotations

import msgspec

from homeport.sim.state import SimulatorState


class PartState(msgspec.Struct, frozen=True, rename="camel"):
    name: str
    state: str
    crashes: int = 0
    error: str = ""
    retry_in: float = 0.0


class Unmanaged(msgspec.Struct, frozen=True, rename="camel"):
    """An object runs, but its hypervisor can't be asked about it: nothing can be changed or healed."""

    message: str
    since: str = ""  # a time; '' if that is not known


class Unfinished(msgspec.Struct, frozen=True, rename="camel"):
    """An object that is not what it should be yet, and why."""

    kind: str
    object: str  # namespace/name
    reason: str
    message: str = ""
    wrong: bool = False  # it failed, or its controller warns: a user should look
    seconds: float = 0.0  # for how long, for this reason
    unmanaged: Unmanaged | None = None
    cluster: str = ""  # namespace/name of the Cluster that it belongs to


class Finding(msgspec.Struct, frozen=True, rename="camel"):
    """One line of the overview: an object, what happens to it or holds it up, and which objects wait for it."""

    kind: str
    object: str  # namespace/name, or the name of a part of the plane
    message: str
    waiting: list[str] = []
    since: str = ""  # a time; '' if that is not known
    same: list[str] = []  # other objects that report the same


class Machines(msgspec.Struct, frozen=True, rename="camel"):
    ready: int = 0
    desired: int = 0
    up_to_date: int | None = None  # None: unknown

    @property
    def done(self) -> int:
        """How many are as they should be: ready, and of the desired version."""
        return min(self.ready, self.desired, self.ready if self.up_to_date is None else self.up_to_date)


class ClusterState(msgspec.Struct, frozen=True, rename="camel"):
    """A Cluster in one line, or the object of a platform that it was made for."""

    namespace: str
    name: str
    health: str  # Available, NotAvailable, Unknown or Deleting; of platforms: Ready or NotReady
    version: str = ""
    paused: bool = False
    control_plane: Machines = Machines()
    workers: Machines = Machines()
    cause: str = ""  # why it is not Available
    seconds: float = 0.0  # since its health last changed
    under_way: list[str] = []  # `Kind name: what happens`
    kind: str = "Cluster"  # or TenantCluster, ClusterDeployment
    cluster: str = ""  # namespace/name of the Cluster, where that is another object
    unmanaged: Unmanaged | None = None

    @property
    def fine(self) -> bool:
        complete = all(part.ready >= part.desired for part in (self.control_plane, self.workers))
        return self.healthy and complete and not self.under_way and self.unmanaged is None

    @property
    def home(self) -> str:
        """The namespace of the Cluster and its machines."""
        return self.cluster.partition("/")[0] or self.namespace

    @property
    def done(self) -> int:
        """Machines that are ready and of the desired version."""
        return self.control_plane.done + self.workers.done

    @property
    def desired(self) -> int:
        return self.control_plane.desired + self.workers.desired

    @property
    def healthy(self) -> bool:
        return self.health in ("Available", "Ready")


class ControllerState(msgspec.Struct, frozen=True, rename="camel"):
    name: str
    queue: int  # keys that are ready to be worked on
    delayed: int  # keys that come back later
    held: int  # keys whose last write is not in the caches yet
    reconciles: int
    errors: int
    unfinished_count: int
    unfinished: list[Unfinished]


class CertificateState(msgspec.Struct, frozen=True):
    """`until` is in seconds since 1970; `renewed`: the plane issues it again by itself before that."""

    name: str
    file: str
    until: float
    renewed: bool


class BackupState(msgspec.Struct, frozen=True):
    """`file` may have been moved since; `written` is in seconds since 1970."""

    file: str
    written: float


class Description(msgspec.Struct, frozen=True, rename="camel"):
    revision: int  # of the store; 0 on a cluster of others
    objects: dict[str, int]
    requests: int  # answered since the start; 0 on a cluster of others
    parts: list[PartState]
    controllers: list[ControllerState]
    blind: dict[str, str]  # kinds that can't be followed, and why
    simulators: list[SimulatorState] = []
    clusters: list[ClusterState] = []
    stuck: list[Finding] = []  # what needs a user, causes before consequences
    under_way: list[Finding] = []
    processes: dict[str, int] = {}  # of hosted control planes on this machine: program > how many run
    standby: str = ""  # why the controllers are off; '': they work
    certificates: list[CertificateState] = []  # of the plane itself
    backup: BackupState | None = None  # the last one
    kubeconfig: str = ""  # of the administrator, on the machine of the plane
