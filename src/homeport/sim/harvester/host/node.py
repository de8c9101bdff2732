"""Nodes that are lost to a fault, and come back. Their VMs are gone with them, and start again elsewhere."""

from __future__ import annotations

from homeport.sim.engine.fault import Outage
from homeport.sim.harvester.controller.instance import Instances
from homeport.sim.harvester.controller.launcher import BY_INSTANCE
from homeport.sim.harvester.core import Core
from homeport.sim.harvester.host.drain import Maintenance
from homeport.sim.harvester.kind import NODE, POD, VMI, Json
from homeport.sim.harvester.object import condition, leaving, status_of, with_condition

_DRAIN_TAINT = "kubevirt.io/drain"
_UNREACHABLE = "node.kubernetes.io/unreachable"


class Nodes:
    def __init__(self, core: Core, instances: Instances, maintenance: Maintenance) -> None:
        self._core = core
        self._instances = instances
        self._maintenance = maintenance

    async def settle(self, key: str) -> float | None:
        node = self._core.mirror.get(NODE, key)
        if node is None or leaving(node):
            return None
        lost = self._core.faults.holds(self._core.subject(node, "node"), Outage) is not None
        known = condition(node, "Ready").get("status") == "Unknown"
        if lost:
            if not known:
                await self._lose(node)
            return self._soonest(await self._give_up(node))
        if known:
            await self._regain(node)
            return None
        if any(each.get("key") == _DRAIN_TAINT for each in node["spec"].get("taints") or ()):
            await self._mark(node)
        return self._soonest(await self._maintenance.settle(node))

    def _soonest(self, after: float | None) -> float | None:
        """A fault may begin or end by itself."""
        now = self._core.clock.monotonic()
        edges = [edge - now for edge in self._core.faults.window_ends()]
        return min([*edges, *([after] if after is not None else [])], default=None)

    # -- away --------------------------------------------------------------------------------------------------

    async def _lose(self, node: Json) -> None:
        for vmi in self._maintenance.instances(node):
            self._core.guests.powered_off(self._instances.machine_of(vmi), crashed=True)
        text = "Kubelet stopped posting node status."
        await self._condition(node, "Unknown", reason="NodeStatusUnknown", message=text)
        taints = [each for each in node["spec"].get("taints") or () if each.get("key") != _UNREACHABLE]
        added = [{"key": _UNREACHABLE, "effect": effect} for effect in ("NoSchedule", "NoExecute")]
        await self._core.patch(NODE, node, {"spec": {"taints": [*taints, *added]}})
        self._core.tell(node, NODE, "NodeNotReady", f"Node {node['metadata']['name']} status is now: NodeNotReady")

    async def _give_up(self, node: Json) -> float | None:
        """Harvester's vm-force-reset-policy: Pods of a lost node are removed after a while, so that VMs can restart."""
        core = self._core
        fresh = core.mirror.get(NODE, node["metadata"]["name"]) or node
        since = condition(fresh, "Ready").get("lastTransitionTime") or core.stamp
        left = core.seconds_until(since, core.pace.lost)
        if left > 0:
            return left
        for vmi in self._maintenance.instances(node):
            for pod in core.mirror.by(POD, BY_INSTANCE, vmi["metadata"]["uid"]):
                if pod["spec"].get("nodeName") == node["metadata"]["name"]:
                    await core.delete(POD, pod, grace_seconds=0)
        return None

    async def _regain(self, node: Json) -> None:
        await self._condition(node, "True", reason="KubeletReady", message="kubelet is posting ready status")
        taints = [each for each in node["spec"].get("taints") or () if each.get("key") != _UNREACHABLE]
        await self._core.patch(NODE, node, {"spec": {"taints": taints or None}})
        for vmi in self._maintenance.instances(node):
            if status_of(vmi).get("phase") == "Running":
                await self._instances.wake(vmi)

    async def _condition(self, node: Json, status: str, **more: str) -> None:
        found = with_condition(status_of(node).get("conditions") or (), self._core.stamp, "Ready", status, **more)
        shown = [{name: value for name, value in each.items() if name != "lastProbeTime"} for each in found]
        await self._core.patch(NODE, node, {"status": {"conditions": shown}}, "status")

    async def _mark(self, node: Json) -> None:
        for vmi in self._maintenance.instances(node):
            if vmi["spec"].get("evictionStrategy") and not status_of(vmi).get("evacuationNodeName"):
                await self._core.patch(VMI, vmi, {"status": {"evacuationNodeName": node["metadata"]["name"]}})
