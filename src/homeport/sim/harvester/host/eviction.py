"""A launcher Pod that is evicted: its VM is moved first, or somebody else is asked to end it, or it ends."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from homeport.apiserver.registry import Call, Forward, Raw, Registry
from homeport.client.errors import TooManyRequests
from homeport.sim.harvester.controller.launcher import is_launcher
from homeport.sim.harvester.core import Core
from homeport.sim.harvester.kind import POD, VMI, Json
from homeport.sim.harvester.object import is_true, notes, status_of

_DOMAIN = "kubevirt.io/domain"
_WEBHOOK = 'admission webhook "virt-launcher-eviction-interceptor.kubevirt.io" denied the request'
_FINAL = ("Succeeded", "Failed")


class Evictions:
    def __init__(self, core: Core) -> None:
        self._core = core

    def install(self, registry: Registry) -> None:
        pods = registry.catalog.by_plural("", "pods")
        assert pods is not None
        found = registry.connector(pods, "eviction")
        assert found is not None
        before = found.answer

        async def evict(call: Call) -> Json | Raw | Forward:
            pod = self._core.mirror.get(POD, f"{call.namespace}/{call.name}")
            if pod is not None:
                await self.ask(pod)
            return await before(call)

        registry.connect("", "pods", "eviction", evict, "POST")

    async def ask(self, pod: Json) -> None:
        """Returns if the Pod may go; raises TooManyRequests if its VM is moved or ended first."""
        name = notes(pod).get(_DOMAIN)
        if not is_launcher(pod) or not name or status_of(pod).get("phase") in _FINAL:
            return
        vmi = self._core.mirror.get(VMI, f"{pod['metadata']['namespace']}/{name}")
        if vmi is None or not self._protected(vmi):
            return
        triggered = f'Eviction triggered evacuation of VMI "{vmi["metadata"]["namespace"]}/{name}"'
        status = status_of(vmi)
        if status.get("evacuationNodeName"):
            raise _denied(f"Evacuation in progress: {triggered}")
        if status.get("nodeName") != pod["spec"].get("nodeName"):
            raise _denied("Eviction request for target Pod")
        await self._core.patch(VMI, vmi, {"status": {"evacuationNodeName": status["nodeName"]}})
        raise _denied(triggered)

    def _protected(self, vmi: Json) -> bool:
        strategy = vmi["spec"].get("evictionStrategy")
        migratable = is_true(vmi, "LiveMigratable")
        if strategy == "LiveMigrate" and not migratable:
            name = vmi["metadata"]["name"]
            raise _denied(f"VMI {name} is configured with an eviction strategy but is not live-migratable")
        return strategy in ("LiveMigrate", "External") or (strategy == "LiveMigrateIfPossible" and migratable)


Ask = Callable[[Json], Awaitable[None]]


def _denied(message: str) -> TooManyRequests:
    return TooManyRequests(f"{_WEBHOOK}: {message}")
