"""Maintenance mode: a node is cordoned and emptied, and says so in an annotation, as Harvester does it."""

from __future__ import annotations

from homeport.client.errors import TooManyRequests
from homeport.sim.harvester.controller.launcher import is_launcher
from homeport.sim.harvester.core import Core
from homeport.sim.harvester.host.eviction import Evictions
from homeport.sim.harvester.kind import NODE, POD, VM, VMI, Json
from homeport.sim.harvester.object import condition, key_of, labels, leaving, notes, status_of

REQUESTED = "harvesterhci.io/drain-requested"
FORCED = "harvesterhci.io/drain-forced"
STATUS = "harvesterhci.io/maintain-status"
_CONTROL_PLANE = ("node-role.kubernetes.io/control-plane", "node-role.kubernetes.io/etcd")
_RETRY_SECONDS = 5.0
_REPLICATED = 3


class Maintenance:
    def __init__(self, core: Core, evictions: Evictions) -> None:
        self._core = core
        self._evictions = evictions

    async def settle(self, node: Json) -> float | None:
        if REQUESTED in notes(node):
            return await self._drain(node)
        if notes(node).get(STATUS) == "running" and not self.instances(node):
            await self._note(node, {STATUS: "completed"})
        return None

    async def _drain(self, node: Json) -> float | None:
        forced = FORCED in notes(node)
        why = self._impossible(node) or ("" if forced else self._stuck(node))
        if why:
            self._core.tell(node, NODE, "MaintenanceImpossible", f"enabling maintenance mode is impossible: {why}",
                            warning=True)  # fmt: skip
            await self._note(node, {REQUESTED: None, FORCED: None, STATUS: None})
            return None
        if not node["spec"].get("unschedulable"):
            await self._core.patch(NODE, node, {"spec": {"unschedulable": True}})
        for vmi in self.instances(node) if forced else ():
            if condition(vmi, "LiveMigratable").get("status") == "False":
                await self._stop(vmi)
        if await self._evict(node):
            return _RETRY_SECONDS
        await self._note(node, {REQUESTED: None, FORCED: None, STATUS: "running"})
        return None

    async def _evict(self, node: Json) -> bool:
        """Whether some are still there."""
        left = False
        for pod in self._core.mirror.all(POD):
            here = pod["spec"].get("nodeName") == node["metadata"]["name"]
            if not here or not is_launcher(pod) or status_of(pod).get("phase") in ("Succeeded", "Failed"):
                continue
            left = True
            try:
                await self._evictions.ask(pod)
            except TooManyRequests:
                continue  # its VM moves; the Pod goes then
            if not leaving(pod):
                await self._core.delete(POD, pod)
        return left

    async def _stop(self, vmi: Json) -> None:
        vm = self._core.mirror.get(VM, key_of(vmi))
        if vm is not None and vm["spec"].get("runStrategy") != "Halted":
            await self._core.patch(VM, vm, {"spec": {"runStrategy": "Halted"}})

    def _impossible(self, node: Json) -> str:
        """Of the nodes that run Harvester itself, one at a time may be away."""
        if not any(role in labels(node) for role in _CONTROL_PLANE):
            return ""
        others = [each for each in self._core.mirror.all(NODE) if any(role in labels(each) for role in _CONTROL_PLANE)]
        if len(others) == 1:
            return "single controlplane cluster, cannot place controlplane in maintenance mode"
        if sum(STATUS not in notes(each) for each in others) != _REPLICATED:
            return "another controlplane is already in maintenance mode, cannot place current node in maintenance mode"
        return ""

    def _stuck(self, node: Json) -> str:
        """VMs that can't be moved: without force, nobody stops them."""
        reasons: dict[str, list[str]] = {}
        for vmi in self.instances(node):
            found = condition(vmi, "LiveMigratable")
            if found.get("status") == "False":
                reasons.setdefault(found.get("reason", ""), []).append(str(key_of(vmi)))
        shown = "; ".join(f"{','.join(names)} cannot be migrated due to {why}" for why, names in reasons.items())
        return f"Non-migratable VMs found: {shown}. Use 'force drain' to perform a collective shutdown" if shown else ""

    def instances(self, node: Json) -> list[Json]:
        name = node["metadata"]["name"]
        return [each for each in self._core.mirror.all(VMI) if status_of(each).get("nodeName") == name]

    async def _note(self, node: Json, annotations: dict[str, str | None]) -> None:
        await self._core.patch(NODE, node, {"metadata": {"annotations": annotations}})
