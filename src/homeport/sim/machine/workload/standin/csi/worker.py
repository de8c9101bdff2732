"""Runs the sidecars of all drivers in a task of their own: hypervisors may be slow, and Pods don't wait for them."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import structlog

from homeport.client.errors import ApiError
from homeport.runtime.task import cancel
from homeport.sim.machine.workload.alarm import Alarm
from homeport.sim.machine.workload.kind import Json
from homeport.sim.machine.workload.standin.csi.driver import Driver, served_drivers
from homeport.sim.machine.workload.standin.csi.harvester import HarvesterDriver
from homeport.sim.machine.workload.standin.csi.longhorn import LonghornDriver
from homeport.sim.machine.workload.standin.csi.nutanix import NutanixDriver
from homeport.sim.machine.workload.standin.csi.sidecar import Sidecars
from homeport.sim.machine.workload.standin.image import repository, working
from homeport.sim.machine.workload.view import Reader, View
from homeport.store import StoreUnavailable

if TYPE_CHECKING:
    from homeport.sim.machine.workload.cluster import WorkloadCluster

log = structlog.get_logger(__name__)

_RETRY_SECONDS = 5.0


class CsiWorker:
    def __init__(self, cluster: WorkloadCluster) -> None:
        drivers: tuple[Driver, ...] = (NutanixDriver(), HarvesterDriver(), LonghornDriver())
        self._sidecars = [Sidecars(cluster, driver) for driver in drivers]
        self._view: View | None = None  # the newest one
        self._dirty = False
        self._task: asyncio.Task[None] | None = None
        self._alarm = Alarm(self._wake)
        self._closed = False

    async def settle(self, view: View) -> None:
        """Looks again, soon."""
        if served_drivers(view):
            self._view = view
            self._wake()

    def _wake(self) -> None:
        self._dirty = True
        if self._task is None and not self._closed:
            self._task = asyncio.get_running_loop().create_task(self._run(), name="CSI drivers of a simulated cluster")

    async def _run(self) -> None:
        try:
            while self._dirty and not self._closed and self._view is not None:
                self._dirty = False
                await self._pass(self._view)
        except StoreUnavailable:
            return  # closed in the meantime
        except ApiError as error:
            log.warning("a CSI driver of a simulated cluster was refused", why=str(error))
            self._alarm.after(_RETRY_SECONDS)
        finally:
            self._task = None

    async def _pass(self, seen: View) -> None:
        reader = Reader(seen.server.store)
        for each in self._sidecars:
            view = View(seen.server, reader, seen.clock, seen.alive, self._alarm.after, seen.busy)
            pods = _controllers(view, each.driver) if each.driver.name in served_drivers(view) else []
            if pods:
                await each.settle(view, pods[0])

    async def close(self) -> None:
        self._closed = True
        self._alarm.close()
        await cancel(self._task)


def _controllers(view: View, driver: Driver) -> list[Json]:
    """Pods that make and attach volumes: those on nodes only mount them."""
    return [pod for pod in working(view, *driver.images) if not driver.sidecar or _has(pod, driver.sidecar)]


def _has(pod: Json, name: str) -> bool:
    """By the end of the image's name: mirrors put words before it."""
    return any(repository(str(each.get("image") or "")).endswith(name) for each in pod["spec"]["containers"])
