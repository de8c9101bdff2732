"""What the views of v3 and v4 work with: the world to read from, and the ways to change it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple, TypeVar

from homeport.sim.engine.call import Answer, Call, Router
from homeport.sim.engine.world import Table
from homeport.sim.prism.core import KINDS, Core
from homeport.sim.prism.entity import Affected, Entity, Task
from homeport.sim.prism.error import missing
from homeport.sim.prism.machine import Machines
from homeport.sim.prism.power import Power
from homeport.sim.prism.task import Tasks
from homeport.sim.prism.world import World, label

E = TypeVar("E", bound=Entity)


@dataclass(frozen=True, slots=True)
class Site:
    core: Core
    power: Power
    machines: Machines
    world: World  # the core's, or how it was some time ago

    @property
    def tasks(self) -> Tasks:
        return self.power.tasks

    def find(self, table: Table[E], ext_id: str) -> E:
        found = table.get(ext_id)
        if found is None:
            raise missing(KINDS.get(table.name, table.name), ext_id)
        return found

    def start(self, operation: str, action: str, arguments: dict[str, object], entity: Entity, owner: str) -> Task:
        """Starts a task about an entity that is not a VM."""
        affected = (Affected(_kind(entity), entity.ext_id, label(entity)),)
        cluster = getattr(entity, "cluster", "")
        return self.tasks.start(operation, action, dict(arguments), affected, cluster=cluster, owner=owner)


def _kind(entity: Entity) -> str:
    name = type(entity).__name__
    return {"VolumeGroup": "volume_group", "Container": "storage_container"}.get(name, name.lower())


Respond = Callable[[Site, Call], Answer]


class Handlers(NamedTuple):
    """Who answers the five requests that most kinds of entities have."""

    listing: Respond
    create: Respond
    get: Respond
    update: Respond
    delete: Respond


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One method of one path: who answers, and what it is about."""

    respond: Respond
    response_type: str = ""
    table: str = ""  # of the entity that `param` names
    param: str = "extId"
    reads: bool = False  # changes nothing, though it is a POST


@dataclass(slots=True)
class Routes:
    """Routes of one API, added by its views."""

    router: Router[Endpoint] = field(default_factory=Router)

    def add(
        self,
        method: str,
        template: str,
        respond: Respond,
        response_type: str = "",
        *,
        table: str = "",
        param: str = "extId",
        reads: bool = False,
    ) -> None:
        endpoint = Endpoint(respond, response_type, table, param, reads or method in ("GET", "HEAD", "OPTIONS"))
        self.router.add(method, template, endpoint)
