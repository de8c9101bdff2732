"""The simulator's inside: a world, its clock and chance, and the few ways in which entities change."""

from __future__ import annotations

import hashlib
import random
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

import msgspec

from homeport.runtime.clock import Clock, SystemClock
from homeport.sim.engine.download import Downloads
from homeport.sim.engine.fault import FullDisk, Outage
from homeport.sim.engine.guest import Guests, NoGuests
from homeport.sim.engine.injector import Injector, Subject
from homeport.sim.engine.world import Table
from homeport.sim.prism import entity as e
from homeport.sim.prism.pace import INSTANT, Pace
from homeport.sim.prism.usage import Usage
from homeport.sim.prism.world import World, WorldFile, label

E = TypeVar("E", bound=e.Entity)
replace = msgspec.structs.replace

KINDS = {
    "clusters": "cluster",
    "containers": "storage_container",
    "subnets": "subnet",
    "images": "image",
    "categories": "category",
    "projects": "project",
    "gpus": "gpu",
    "users": "user",
    "vms": "vm",
    "volume_groups": "volume_group",
    "tasks": "task",
}


@dataclass
class Core:
    world: World
    clock: Clock = field(default_factory=SystemClock)
    pace: Pace = INSTANT
    guests: Guests = field(default_factory=NoGuests)
    seed: int = 0
    newest_minor: int = 4  # what clients that negotiate are offered: v4.4
    faults: Injector = field(init=False)
    usage: Usage = field(init=False)
    rng: random.Random = field(init=False)
    at: float | None = None  # while the past is caught up with, the moment that is being lived through
    on_change: Callable[[], None] = lambda: None
    downloads: Downloads | None = None  # where images come from; None: every URL is there, whatever is in it

    def __post_init__(self) -> None:
        self.faults = Injector(self.clock, seed=self.seed)
        self.rng = self._chance()
        self.usage = Usage(self.world.vms, self.world.volume_groups)

    def _chance(self) -> random.Random:
        """The same seed gives the same future to the same world; one that has a past must not get its ids again."""
        ids = sorted(record.ext_id for table in self.world.tables() for record in table)
        past = hashlib.sha256("".join(ids).encode()).hexdigest()
        return random.Random(f"{self.seed}/{past}")  # noqa: S311  (repeatable, not secret)

    def restore(self, file: WorldFile) -> None:
        self.world.restore(file)
        self.rng = self._chance()
        self.usage = Usage(self.world.vms, self.world.volume_groups)

    def now(self) -> float:
        return self.clock.now() if self.at is None else self.at

    def new_id(self) -> str:
        return str(uuid.UUID(int=self.rng.getrandbits(128), version=4))

    def new_mac(self) -> str:
        while True:
            tail = self.rng.getrandbits(24)
            mac = f"50:6b:8d:{tail >> 16:02x}:{tail >> 8 & 255:02x}:{tail & 255:02x}"
            if mac not in self.usage.macs:
                self.usage.macs.add(mac)
                return mac

    # Every change goes through here: versions, times, what is used, and the past.

    def put(self, table: Table[E], record: E, **changes: object) -> E:
        now = self.now()
        known = table.get(record.ext_id)
        stamp = {"created": now} if known is None and not record.created else {}
        version = known.version + 1 if known is not None else record.version
        after = replace(record, **changes, **stamp, version=version, updated=now)
        self.world.past.now = now
        if isinstance(after, e.Vm):
            self.usage.change(known if isinstance(known, e.Vm) else None, after)
        elif isinstance(after, e.VolumeGroup):
            self.usage.change_group(known if isinstance(known, e.VolumeGroup) else None, after)
        table.put(after)
        return after

    def drop(self, table: Table[E], ext_id: str) -> E | None:
        self.world.past.now = self.now()
        before = table.drop(ext_id)
        if isinstance(before, e.Vm):
            self.usage.change(before, None)
        elif isinstance(before, e.VolumeGroup):
            self.usage.change_group(before, None)
        return before

    # What faults can match about entities.

    def subject(self, record: e.Entity, *, operation: str = "") -> Subject:
        table = _TABLE_OF.get(type(record), "")
        cluster = record.ext_id if isinstance(record, e.Cluster) else getattr(record, "cluster", "")
        state: dict[str, str] = {}
        if isinstance(record, e.Vm):
            state = {"powerState": record.power, "host": record.host, "bootType": record.boot}
        return Subject(
            kind=KINDS.get(table, table),
            name=label(record),
            ext_id=record.ext_id,
            clusters=self.cluster_names(cluster),
            state=state,
            operation=operation,
        )

    def cluster_names(self, ext_id: str) -> tuple[str, ...]:
        cluster = self.world.clusters.get(ext_id)
        return (cluster.name, cluster.ext_id) if cluster is not None else ()

    def out_of_reach(self, cluster: str) -> bool:
        names = self.cluster_names(cluster)
        subject = Subject(kind="cluster", name=names[0] if names else "", ext_id=cluster, clusters=names)
        return self.faults.holds(subject, Outage) is not None

    def disk_full(self, cluster: str) -> bool:
        names = self.cluster_names(cluster)
        subject = Subject(kind="cluster", name=names[0] if names else "", ext_id=cluster, clusters=names)
        return self.faults.holds(subject, FullDisk) is not None


_TABLE_OF: dict[type, str] = {
    e.Cluster: "clusters",
    e.Container: "containers",
    e.Subnet: "subnets",
    e.Image: "images",
    e.Category: "categories",
    e.Project: "projects",
    e.GpuDevice: "gpus",
    e.User: "users",
    e.Vm: "vms",
    e.VolumeGroup: "volume_groups",
    e.Task: "tasks",
}
