"""The plane's own parts as a Pod: `kubectl logs -n homeport-system homeport -c CONTROLLER` shows what each one says."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterable
from typing import Any

from homeport import __version__
from homeport.api.meta import Resource
from homeport.apiserver.embedded import EmbeddedServer
from homeport.client.absence import find_object
from homeport.client.errors import AlreadyExists
from homeport.client.protocol import Key, MergePatch, Write
from homeport.runtime.clock import rfc3339
from homeport.runtime.manager import Manager
from homeport.runtime.telemetry.stream import LogStreams

NAMESPACE = "homeport-system"
POD = "homeport"
# Not the node of the workload controllers: this process is the Pod, nothing has to start it.
NODE = "plane"

_NAMESPACE = Resource("", "v1", "Namespace", "namespaces", namespaced=False)
_POD = Resource("", "v1", "Pod", "pods")
_KEY = Key(NAMESPACE, POD)
_WRITE = Write(field_manager="homeport")


class Components:
    """Told of each manager that starts; keeps one container per controller in the Pod."""

    def __init__(self, server: EmbeddedServer, streams: LogStreams) -> None:
        self._server = server
        self._client = server.client()
        self._streams = streams
        self._names: set[str] = set()
        self._changed = asyncio.Event()
        self._removers: list[Callable[[], None]] = []

    def note(self, manager: Manager) -> Manager:
        self.add(controller.name for controller in manager.controllers)
        return manager

    def add(self, names: Iterable[str]) -> None:
        self._names.update(names)
        self._changed.set()

    async def run(self) -> None:
        """Until cancelled: publishes again whenever there are new controllers."""
        while True:
            await self._changed.wait()
            self._changed.clear()
            names = sorted(self._names)
            await self._publish(names)
            self._register(names)

    def _register(self, names: list[str]) -> None:
        for remove in self._removers:
            remove()
        logs = self._server.builtin.logs
        self._removers = [logs.register(NAMESPACE, POD, name, self._streams.source(name)) for name in names]

    async def _publish(self, names: list[str]) -> None:
        with contextlib.suppress(AlreadyExists):
            await self._client.create({"metadata": {"name": NAMESPACE}}, _WRITE, kind=_NAMESPACE)
        wanted = _spec(names)
        found = await find_object(self._client, _POD, _KEY)
        if found is not None and _shape(found["spec"]) != _shape(wanted):
            await self._client.delete(_POD, _KEY, uid=found.uid, grace_seconds=0)  # its containers can't be changed
            found = None
        if found is None:
            await self._client.create({"metadata": {"name": POD, "namespace": NAMESPACE}, "spec": wanted}, kind=_POD)
        status = MergePatch({"status": _status(names, rfc3339(self._server.registry.clock()))})
        await self._client.patch(_POD, _KEY, status, _WRITE, subresource="status")


def _spec(names: list[str]) -> dict[str, Any]:
    image = f"homeport:{__version__}"
    containers = [{"name": name, "image": image} for name in names]
    return {"nodeName": NODE, "containers": containers, "terminationGracePeriodSeconds": 0}


def _shape(spec: dict[str, Any]) -> list[tuple[str, str]]:
    return [(container["name"], container["image"]) for container in spec["containers"]]


def _status(names: list[str], now: str) -> dict[str, Any]:
    running = {
        "image": f"homeport:{__version__}",
        "imageID": "",
        "restartCount": 0,
        "ready": True,
        "started": True,
        "state": {"running": {"startedAt": now}},
    }
    conditions = [
        {"type": kind, "status": "True", "lastTransitionTime": now}
        for kind in ("PodScheduled", "Initialized", "ContainersReady", "Ready")
    ]
    return {
        "phase": "Running",
        "startTime": now,
        "conditions": conditions,
        "containerStatuses": [{"name": name, **running} for name in names],
    }
