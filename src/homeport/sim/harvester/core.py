"""What all controllers of a simulated Harvester share."""

from __future__ import annotations

import contextlib
import random
from dataclasses import dataclass, field
from typing import Any

from homeport.api.meta import Resource, Unstructured
from homeport.client.absence import drop_object, find_object
from homeport.client.errors import AlreadyExists, NotFound
from homeport.client.protocol import Client, Key, MergePatch
from homeport.runtime.clock import Clock, parse_time, rfc3339
from homeport.runtime.event import Recorder
from homeport.sim.engine.download import Downloads
from homeport.sim.engine.guest import Guests
from homeport.sim.engine.injector import Injector, Subject
from homeport.sim.harvester.kind import SECRET, SETTING, Json
from homeport.sim.harvester.lease import Leases
from homeport.sim.harvester.mirror import Mirror
from homeport.sim.harvester.object import key_of, labels
from homeport.sim.harvester.pace import Pace
from homeport.sim.harvester.world import WorldFile


@dataclass(slots=True)
class Core:
    world: WorldFile
    client: Client
    mirror: Mirror
    clock: Clock
    pace: Pace
    guests: Guests
    faults: Injector
    recorder: Recorder
    leases: Leases
    rng: random.Random = field(default_factory=random.Random)
    downloads: Downloads | None = None  # where images come from; None: every URL is there, whatever is in it

    @property
    def stamp(self) -> str:
        return rfc3339(self.clock.now())

    def seconds_until(self, stamp: str, seconds: float) -> float:
        """How long until `seconds` after a moment that an object names; 0 or less: that is over.

        Stamps are whole seconds, so what takes no time is never waited for.
        """
        return parse_time(stamp) + seconds - self.clock.now() if seconds else 0.0

    def setting(self, name: str) -> str:
        """What an administrator set, or the default; '' if there is neither."""
        found = self.mirror.get(SETTING, name) or {}
        return str(found.get("value") or found.get("default") or "")

    def tell(self, obj: Json, kind: Resource, reason: str, message: str, *, warning: bool = False) -> None:
        """An Event about an object."""
        told = Unstructured({**kind.type_meta, "metadata": obj["metadata"]})
        self.recorder.record(told, reason, message, warning=warning)

    def subject(self, obj: Json, kind: str) -> Subject:
        """What faults meet: `kind: vm`, `entity:` its name."""
        meta = obj["metadata"]
        state = {**labels(obj), "namespace": meta.get("namespace", "")}
        namespace = meta.get("namespace", "")
        return Subject(kind=kind, namespace=namespace, name=meta["name"], ext_id=meta.get("uid", ""), state=state)

    # -- writing -----------------------------------------------------------------------------------------------

    async def create(self, obj: Json, kind: Resource) -> Json | None:
        """None if it is there already."""
        with contextlib.suppress(AlreadyExists):
            return await self.client.create(obj, kind=kind)
        return None

    async def patch(self, kind: Resource, obj: Json, patch: Json, subresource: str = "") -> None:
        """Nothing happens to an object that is gone, or was replaced by another of its name."""
        meta = {"uid": obj["metadata"]["uid"], **(patch.get("metadata") or {})}
        with contextlib.suppress(NotFound):
            await self.client.patch(kind, key_of(obj), MergePatch({**patch, "metadata": meta}), subresource=subresource)

    async def delete(self, kind: Resource, obj: Json, grace_seconds: int | None = None) -> None:
        await drop_object(self.client, kind, key_of(obj), uid=obj["metadata"]["uid"], grace_seconds=grace_seconds)

    async def secret(self, namespace: str, name: str) -> dict[str, Any] | None:
        """The data of a Secret, still in base64."""
        found = await find_object(self.client, SECRET, Key(namespace, name))
        if found is None:
            return None
        return found.get("data") or {}
