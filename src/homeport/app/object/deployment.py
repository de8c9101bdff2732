"""The Deployments under which users of upstream's releases look for controllers.

`kubectl logs -n capx-system deploy/capx-controller-manager` shows what the plane's controllers of that component log.
The Pods are ordinary ones of the workload loop; their only container repeats the log of controllers in this process.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from typing import Any

from homeport import __version__
from homeport.api.meta import Resource
from homeport.apiserver.kinds.pod.log import LogLine
from homeport.capi.component import LogDeployment
from homeport.client.errors import AlreadyExists
from homeport.client.protocol import Client, Key, Query, Write
from homeport.runtime.telemetry.stream import LogStreams
from homeport.runtime.workload.coroutine import ContainerHandle, CoroutineRunner
from homeport.runtime.workload.runner import RUNNER_ANNOTATION, Launch, Runners

RUNNER = "plane"
_MANAGED = {"app.kubernetes.io/managed-by": "homeport-plane"}
_NAMESPACE = Resource("", "v1", "Namespace", "namespaces", namespaced=False)
_DEPLOYMENT = Resource("apps", "v1", "Deployment", "deployments")
_WRITE = Write(field_manager="homeport")


class Deployments:
    """Keeps one Deployment for each place and runs their containers."""

    def __init__(self, client: Client, streams: LogStreams) -> None:
        self._client = client
        self._streams = streams
        self._shown: dict[Key, list[str]] = {}
        self._changed = asyncio.Event()

    def register(self, runners: Runners) -> None:
        runners.register(RUNNER, CoroutineRunner(self._repeat))

    def show(self, found: Mapping[LogDeployment, Sequence[str]]) -> None:
        """The controllers of a manager that was just made."""
        self._shown = {}
        for place, names in found.items():
            self._shown.setdefault(Key(place.namespace, place.deployment), []).extend(names)
        self._changed.set()

    async def run(self) -> None:
        """Until cancelled: publishes again whenever controllers change."""
        while True:
            await self._changed.wait()
            self._changed.clear()
            await self._publish()

    async def _publish(self) -> None:
        await create_namespaces(self._client, (key.namespace for key in self._shown))
        for key in self._shown:
            await self._client.apply(_render(key), _WRITE, kind=_DEPLOYMENT, force=True)
        await self._remove_others()

    async def _remove_others(self) -> None:
        """Deployments of components that an earlier start had and this one leaves out."""
        selector = ",".join(f"{name}={value}" for name, value in _MANAGED.items())
        page = await self._client.list(_DEPLOYMENT, Query(labels=selector))
        for each in page.items:
            if Key(each.namespace, each.name) not in self._shown:
                await self._client.delete(_DEPLOYMENT, Key(each.namespace, each.name), uid=each.uid)

    async def _repeat(self, launch: Launch, inside: ContainerHandle) -> None:
        meta = launch.pod["metadata"]
        key = Key(str(meta["namespace"]), str((meta.get("labels") or {}).get("app.kubernetes.io/name", "")))
        streams = [self._streams.source(name) for name in self._shown.get(key, ())]
        following = [stream.follow() for stream in streams]  # before the past is read, so that no line is missed
        for line in sorted(line for stream in streams for line in stream.lines()):
            launch.log(line.text)
        tasks = [asyncio.create_task(_pass_on(lines, launch)) for lines in following]
        try:
            await inside.stopping.wait()
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)


async def create_namespaces(client: Client, names: Iterable[str]) -> None:
    for name in dict.fromkeys(names):
        with contextlib.suppress(AlreadyExists):
            await client.create({"metadata": {"name": name}}, _WRITE, kind=_NAMESPACE)


async def create_objects(client: Client, objects: Iterable[tuple[Resource, Mapping[str, Any]]]) -> None:
    for kind, body in objects:
        with contextlib.suppress(AlreadyExists):
            await client.create(dict(body), _WRITE, kind=kind)


async def _pass_on(lines: AsyncIterator[LogLine], launch: Launch) -> None:
    async for line in lines:
        launch.log(line.text)


def _render(key: Key) -> dict[str, Any]:
    selector = {"app.kubernetes.io/name": key.name}
    labels = {**selector, **_MANAGED}
    pod = {
        "metadata": {"labels": labels, "annotations": {RUNNER_ANNOTATION: RUNNER}},
        "spec": {"containers": [{"name": "manager", "image": f"homeport:{__version__}"}]},
    }
    return {
        **_DEPLOYMENT.type_meta,
        "metadata": {"name": key.name, "namespace": key.namespace, "labels": labels},
        "spec": {"replicas": 1, "selector": {"matchLabels": selector}, "template": pod},
    }
