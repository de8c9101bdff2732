"""All state of one Prism Central: tables of records. Saved, loaded, copied, and looked at as it was."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator
from importlib import resources
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from homeport.sim.engine.document import Document, Place, read_document, write_document
from homeport.sim.engine.world import ChangeHistory, Table
from homeport.sim.prism import entity as e

_NAMESPACE = uuid.UUID("6f1c0d1e-6f6d-4f0a-9c7e-5b3d1e2a4c00")

E = TypeVar("E", bound=e.Entity)


class WorldFile(e.Plain, frozen=True, kw_only=True):
    """A world as it stands in a file. Entities may be referred to by name or by id."""

    clusters: tuple[e.Cluster, ...] = ()
    containers: tuple[e.Container, ...] = ()
    subnets: tuple[e.Subnet, ...] = ()
    images: tuple[e.Image, ...] = ()
    categories: tuple[e.Category, ...] = ()
    projects: tuple[e.Project, ...] = ()
    gpus: tuple[e.GpuDevice, ...] = ()
    users: tuple[e.User, ...] = ()
    vms: tuple[e.Vm, ...] = ()
    volume_groups: tuple[e.VolumeGroup, ...] = ()
    tasks: tuple[e.Task, ...] = ()
    timers: tuple[e.Timer, ...] = ()


# Fields that hold ids of other entities, by table: (field, table it points into).
_REFERENCES: dict[str, tuple[tuple[str, str], ...]] = {
    "containers": (("cluster", "clusters"),),
    "subnets": (("clusters", "clusters"),),
    "images": (("clusters", "clusters"), ("categories", "categories")),
    "projects": (("clusters", "clusters"), ("subnets", "subnets")),
    "gpus": (("cluster", "clusters"),),
    "clusters": (("categories", "categories"),),
    "vms": (("cluster", "clusters"), ("categories", "categories"), ("project", "projects")),
    "volume_groups": (("cluster", "clusters"),),
}


class World:
    def __init__(self, file: WorldFile | None = None) -> None:
        file = file or WorldFile()
        self.past = ChangeHistory()
        self.clusters = Table("clusters", self.past, file.clusters)
        self.containers = Table("containers", self.past, file.containers)
        self.subnets = Table("subnets", self.past, file.subnets)
        self.images = Table("images", self.past, file.images)
        self.categories = Table("categories", self.past, file.categories)
        self.projects = Table("projects", self.past, file.projects)
        self.gpus = Table("gpus", self.past, file.gpus)
        self.users = Table("users", self.past, file.users)
        self.vms = Table("vms", self.past, file.vms)
        self.volume_groups = Table("volume_groups", self.past, file.volume_groups)
        self.tasks = Table("tasks", self.past, file.tasks)
        self.timers = Table("timers", self.past, file.timers)

    def tables(self) -> Iterator[Table[Any]]:
        for name in WorldFile.__struct_fields__:
            yield getattr(self, name)

    def snapshot(self) -> WorldFile:
        """A copy that nothing changes any more; `World(copy)` goes on from it."""
        return WorldFile(**{table.name: tuple(table) for table in self.tables()})

    def as_of(self, moment: float) -> World:
        """The world as it was at a moment, as far back as changes are kept."""
        then = World()
        for table in self.tables():
            setattr(then, table.name, table.as_of(moment))
        return then

    def restore(self, file: WorldFile) -> None:
        """Becomes the world of a snapshot, in place."""
        fresh = World(file)
        for table in fresh.tables():
            setattr(self, table.name, table)
        self.past = fresh.past

    def save(self) -> str:
        return write_document(self.snapshot())

    # What an entity is called is how people refer to it; ids are how entities do.

    def cluster_of_host(self, host: str) -> tuple[e.Cluster, e.Host] | None:
        for cluster in self.clusters:
            for each in cluster.hosts:
                if each.ext_id == host:
                    return cluster, each
        return None

    def default_project(self) -> str:
        return next((project.ext_id for project in self.projects if project.default), "")

    def user(self, name: str) -> e.User | None:
        return next((user for user in self.users if user.name == name), None)


def parse_world(text: str | bytes, source: str = "world") -> WorldFile:
    return _resolved(Document(text, source))


def load_world(path: Path) -> WorldFile:
    return _resolved(read_document(path))


def default_text() -> str:
    """The file of the built-in world."""
    return resources.files("homeport.sim.prism").joinpath("default.yaml").read_text(encoding="utf-8")


def default_world() -> WorldFile:
    return parse_world(default_text(), "default.yaml")


def derive_id(kind: str, name: str) -> str:
    """The id of an entity that a file gives none: the same in every world with that name."""
    return str(uuid.uuid5(_NAMESPACE, f"{kind}/{name}"))


def label(record: e.Entity) -> str:
    """What an entity is called."""
    if isinstance(record, e.Category):
        return f"{record.key}:{record.value}" if record.value else record.key
    return getattr(record, "name", "") or record.ext_id


def _resolved(document: Document) -> WorldFile:
    file = document.convert(WorldFile)
    tables = {name: tuple(_identified(name, getattr(file, name))) for name in WorldFile.__struct_fields__}
    names = {name: _index(document, name, records) for name, records in tables.items()}
    for name, fields in _REFERENCES.items():
        tables[name] = tuple(
            _pointed(document, (_wire(name), number), record, fields, names)
            for number, record in enumerate(tables[name])
        )
    return WorldFile(**tables)


def _identified(table: str, records: Iterable[E]) -> Iterator[E]:
    for record in records:
        if not record.ext_id:
            record = msgspec.structs.replace(record, ext_id=derive_id(table, label(record)))
        if isinstance(record, e.Cluster):
            hosts = tuple(
                host if host.ext_id else msgspec.structs.replace(host, ext_id=derive_id("hosts", host.name))
                for host in record.hosts
            )
            record = msgspec.structs.replace(record, hosts=hosts)
        yield record


def _index(document: Document, table: str, records: Iterable[e.Entity]) -> dict[str, str]:
    """Ids by id and by name; a name that two entities share is left out."""
    found: dict[str, str] = {}
    twice: set[str] = set()
    for number, record in enumerate(records):
        if record.ext_id in found:
            raise document.error((_wire(table), number), f"the id {record.ext_id} is used twice")
        found[record.ext_id] = record.ext_id
        name = label(record)
        if name in found and name != record.ext_id:
            twice.add(name)
        found[name] = record.ext_id
    return {name: ext_id for name, ext_id in found.items() if name not in twice}


def _pointed(
    document: Document, at: Place, record: E, fields: tuple[tuple[str, str], ...], names: dict[str, dict[str, str]]
) -> E:
    changes: dict[str, Any] = {}
    for field, table in fields:
        value = getattr(record, field)
        several = isinstance(value, tuple)
        found = []
        for one in value if several else (value,) if value else ():
            if one not in names[table]:
                raise document.error((*at, _wire(field)), f"no entry of {_wire(table)} is called {one!r}")
            found.append(names[table][one])
        changes[field] = tuple(found) if several else found[0] if found else ""
    return msgspec.structs.replace(record, **changes)


def _wire(name: str) -> str:
    head, *rest = name.split("_")
    return head + "".join(part.capitalize() for part in rest)
