"""Longhorn: volumes on the disks of nodes. They exist as objects of the cluster alone."""

from __future__ import annotations

from homeport.sim.machine.workload.kind import Json
from homeport.sim.machine.workload.standin.csi.driver import LONGHORN, Caller, DriverError, NewVolume
from homeport.sim.machine.workload.standin.image import working


class LonghornDriver:
    name: str = LONGHORN
    images: tuple[str, ...] = ("longhornio/longhorn-manager", "longhorn-manager")
    sidecar: str = ""
    secrets: tuple[str, ...] = ()

    async def create(self, caller: Caller, wanted: NewVolume) -> tuple[str, dict[str, str]]:
        """Replicas need nodes with a manager; with fewer of them than replicas, a volume is degraded but works."""
        nodes = {pod["spec"]["nodeName"] for pod in working(caller.view, *self.images)}
        if not nodes:
            raise DriverError("Internal", "no node with longhorn-manager is available for replicas")
        return wanted.name, {"numberOfReplicas": "3", **wanted.parameters}

    async def delete(self, caller: Caller, handle: str) -> None:
        del caller, handle

    async def expand(self, caller: Caller, handle: str, size_bytes: int) -> None:
        del caller, handle, size_bytes

    async def attach(self, caller: Caller, handle: str, node: Json) -> None:
        name = node["metadata"]["name"]
        if not any(pod["spec"]["nodeName"] == name for pod in working(caller.view, *self.images)):
            raise DriverError("NotFound", f"volume {handle}: no longhorn-manager is ready on node {name}")

    async def detach(self, caller: Caller, handle: str, node: Json | None) -> None:
        del caller, handle, node
