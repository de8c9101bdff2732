"""Events of stand-ins, in the words of the programs that they stand in for. Each is recorded once."""

from __future__ import annotations

import contextlib
import hashlib

from homeport.api.meta import Resource
from homeport.client.errors import AlreadyExists, NotFound
from homeport.runtime.event import EVENT
from homeport.sim.machine.workload.kind import Json
from homeport.sim.machine.workload.view import View


class EventRecorder:
    """Records events for one program."""

    def __init__(self, component: str) -> None:
        self._component = component
        self._last: dict[str, tuple[str, str]] = {}  # the last one about an object, by its UID

    async def normal(self, view: View, kind: Resource, obj: Json, reason: str, message: str) -> None:
        await self._record(view, kind, obj, "Normal", reason, message)

    async def warn(self, view: View, kind: Resource, obj: Json, reason: str, message: str) -> None:
        await self._record(view, kind, obj, "Warning", reason, message)

    async def _record(self, view: View, kind: Resource, obj: Json, level: str, reason: str, message: str) -> None:
        meta = obj["metadata"]
        uid = str(meta["uid"])
        if self._last.get(uid) == (reason, message):
            return
        self._last[uid] = (reason, message)
        digest = hashlib.sha256(f"{uid}{self._component}{reason}{message}".encode()).hexdigest()[:16]
        namespace = meta.get("namespace") or "default"
        subject = {
            **kind.type_meta,
            "name": meta["name"],
            "uid": uid,
            **({"namespace": meta["namespace"]} if meta.get("namespace") else {}),
        }
        body = {
            "metadata": {"name": f"{meta['name']}.{digest}", "namespace": namespace},
            "involvedObject": subject,
            "reason": reason,
            "message": message,
            "type": level,
            "source": {"component": self._component},
            "reportingComponent": self._component,
            "firstTimestamp": view.stamp,
            "lastTimestamp": view.stamp,
            "count": 1,
        }
        with contextlib.suppress(AlreadyExists, NotFound):
            await view.client.create(body, kind=EVENT)
