"""The group subresources.kubevirt.io: start, stop and restart of VMs, pause and reboot of instances, and volumes that
are plugged in while a VM runs."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from homeport.apiserver.crds.served import build_served
from homeport.apiserver.embedded import EmbeddedServer
from homeport.apiserver.registry import Call, Raw
from homeport.client.errors import ApiError, BadRequest, Internal, conflict, not_found
from homeport.client.protocol import Key, MergePatch, Write
from homeport.sim.harvester.controller.instance import FINAL, Instances
from homeport.sim.harvester.controller.run import run_strategy
from homeport.sim.harvester.controller.template import claim_names
from homeport.sim.harvester.core import Core
from homeport.sim.harvester.kind import CLAIM, VM, VMI, Json
from homeport.sim.harvester.object import condition, key_of, status_of, with_condition, without_condition

GROUP = "subresources.kubevirt.io"
VERSION = "v1"
_ANYTHING = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
_NOT_RUNNING = "VM is not running"

Action = Callable[[Call], Awaitable[None]]


class Subresources:
    def __init__(self, core: Core, instances: Instances) -> None:
        self._core = core
        self._instances = instances

    def install(self, server: EmbeddedServer) -> None:
        actions: dict[str, dict[str, Action]] = {
            "virtualmachines": {
                "start": self._start,
                "stop": self._stop,
                "restart": self._restart,
                "addvolume": self._add_volume,
                "removevolume": self._remove_volume,
            },
            "virtualmachineinstances": {
                "pause": self._pause,
                "unpause": self._unpause,
                "softreboot": self._reboot,
                "reset": self._reboot,
            },
        }
        for plural, named in actions.items():
            kind = VM.kind if plural == VM.plural else VMI.kind
            served = build_served(_definition(plural, kind))
            served.verbs = ()
            served.subresources = dict.fromkeys(named, (GROUP, VERSION, kind))
            served.subresource_verbs = dict.fromkeys(named, ("update",))
            server.catalog.add(served)
            for name, action in named.items():
                server.registry.connect(GROUP, plural, name, _accepted(action), "PUT")

    # -- VMs ---------------------------------------------------------------------------------------------------------

    async def _start(self, call: Call) -> None:
        vm = self._machine(call)
        vmi = self._core.mirror.get(VMI, key_of(vm))
        phase = status_of(vmi).get("phase", "") if vmi is not None else ""
        if vmi is not None and phase not in (*FINAL, "Unknown"):
            raise _conflict(vm, "VM is already running")
        match run_strategy(vm):
            case "Halted":
                await self._set_running(call, vm, running=True)
            case "RerunOnFailure" | "Manual" as strategy:
                if strategy == "RerunOnFailure" and vmi is not None and phase == "Failed":
                    raise _conflict(vm, f"{strategy} does not support starting VM from failed state")
                stop = [{"action": "Stop", "uid": vmi["metadata"]["uid"]}] if vmi is not None else []
                await self._request(call, vm, [*stop, {"action": "Start"}])
            case strategy:
                raise _conflict(vm, f"{strategy} does not support manual start requests")

    async def _stop(self, call: Call) -> None:
        vm = self._machine(call)
        vmi = self._core.mirror.get(VMI, key_of(vm))
        running = vmi is not None and status_of(vmi).get("phase") not in FINAL
        grace = (call.body or {}).get("gracePeriod")
        before = vmi["spec"].get("terminationGracePeriodSeconds") if vmi is not None else None
        if running and vmi is not None and grace is not None:
            await self._core.patch(VMI, vmi, {"spec": {"terminationGracePeriodSeconds": grace}})
        match run_strategy(vm):
            case "Always" | "Once":
                await self._set_running(call, vm, running=False)
                return
            case "Halted" if running and (grace is None or (before is not None and grace >= before)):
                raise _conflict(vm, "Halted only supports manual stop requests with a shorter graceperiod")
        if vmi is None or not running:
            raise _conflict(vm, _NOT_RUNNING)
        await self._request(call, vm, [{"action": "Stop", "uid": vmi["metadata"]["uid"]}])

    async def _restart(self, call: Call) -> None:
        grace = (call.body or {}).get("gracePeriodSeconds")
        if grace is not None and grace > 0:
            raise BadRequest("For force restart, only gracePeriod=0 is supported for now")
        if grace is not None and grace < 0:
            raise BadRequest("gracePeriod has to be greater or equal to 0")
        vm = self._machine(call)
        strategy = run_strategy(vm)
        if strategy in ("Halted", "Once"):
            raise _conflict(vm, f"RunStategy {strategy} does not support manual restart requests")
        vmi = self._core.mirror.get(VMI, key_of(vm))
        if vmi is None:
            raise _conflict(vm, "VM is not running: Halted")
        if grace == 0:
            await self._core.patch(VMI, vmi, {"spec": {"terminationGracePeriodSeconds": 1}})
        await self._request(call, vm, [{"action": "Stop", "uid": vmi["metadata"]["uid"]}, {"action": "Start"}])

    async def _set_running(self, call: Call, vm: Json, *, running: bool) -> None:
        spec = {"running": running} if "running" in vm["spec"] else {"runStrategy": "Always" if running else "Halted"}
        await self._write(call, vm, {"spec": spec}, "")

    async def _request(self, call: Call, vm: Json, requests: list[Json]) -> None:
        """One at a time; only a request to stop takes the place of others."""
        known = status_of(vm).get("stateChangeRequests") or []
        if known and not (len(requests) == 1 and requests[0]["action"] == "Stop"):
            raise Internal("Internal error occurred: unable to complete request: stop/start already underway")
        # Who asks does not wait for the next attempt of a VM that keeps failing.
        await self._write(call, vm, {"status": {"stateChangeRequests": requests, "startFailure": None}}, "status")

    async def _write(self, call: Call, vm: Json, patch: Json, subresource: str) -> None:
        patch = {**patch, "metadata": {"resourceVersion": vm["metadata"]["resourceVersion"]}}
        dry = bool((call.body or {}).get("dryRun")) or call.ctx.dry_run
        await self._core.client.patch(
            VM, key_of(vm), MergePatch(patch), Write(field_manager="virt-api", dry_run=dry), subresource=subresource
        )

    # -- volumes -----------------------------------------------------------------------------------------------------

    async def _add_volume(self, call: Call) -> None:
        """The VM has the volume from now on, and so has its instance if it runs."""
        vm, body = self._machine(call), call.body or {}
        name, source = body.get("name"), body.get("volumeSource") or {}
        if not name or not body.get("disk") or not source:
            raise BadRequest("AddVolumeOptions requires name, disk and volumeSource to be set")
        claim = (source.get("persistentVolumeClaim") or {}).get("claimName")
        claim = claim or (source.get("dataVolume") or {}).get("name")
        if self._core.mirror.get(CLAIM, f"{call.namespace}/{claim}") is None:
            raise not_found("", "persistentvolumeclaims", str(claim))
        spec = vm["spec"]["template"]["spec"]
        if any(each["name"] == name for each in spec.get("volumes") or ()):
            raise _conflict(vm, f"Unable to add volume [{name}] because volume with that name already exists")
        if claim in claim_names(vm):
            raise _conflict(vm, f"Unable to add volume source [{claim}] because it already exists")
        volume, disk = {"name": name, **source}, {**body["disk"], "name": name}
        await self._write(call, vm, {"spec": {"template": {"spec": _with_volume(spec, volume, disk)}}}, "")
        vmi = self._core.mirror.get(VMI, key_of(vm))
        if vmi is not None:
            number = len(vmi["spec"].get("volumes") or ())
            entry = {"name": name, "target": f"sd{chr(ord('a') + number % 26)}", "phase": "Ready", "hotplugVolume": {}}
            listed = [*(status_of(vmi).get("volumeStatus") or ()), entry]
            await self._core.patch(VMI, vmi, {"spec": _with_volume(vmi["spec"], volume, disk)})
            await self._core.patch(VMI, vmi, {"status": {"volumeStatus": listed}})

    async def _remove_volume(self, call: Call) -> None:
        vm, name = self._machine(call), (call.body or {}).get("name")
        if not name:
            raise BadRequest("RemoveVolumeOptions requires name to be set")
        spec = vm["spec"]["template"]["spec"]
        known = next((each for each in spec.get("volumes") or () if each["name"] == name), None)
        if known is None:
            raise _conflict(vm, f"Unable to remove volume [{name}] because it does not exist")
        source = known.get("persistentVolumeClaim") or known.get("dataVolume") or {}
        if not source.get("hotpluggable"):
            raise _conflict(vm, f"Unable to remove volume [{name}] because it is not hotpluggable")
        await self._write(call, vm, {"spec": {"template": {"spec": _without_volume(spec, name)}}}, "")
        vmi = self._core.mirror.get(VMI, key_of(vm))
        if vmi is not None:
            listed = [each for each in status_of(vmi).get("volumeStatus") or () if each["name"] != name]
            await self._core.patch(VMI, vmi, {"spec": _without_volume(vmi["spec"], name)})
            await self._core.patch(VMI, vmi, {"status": {"volumeStatus": listed}})

    # -- instances ---------------------------------------------------------------------------------------------------

    async def _pause(self, call: Call) -> None:
        vmi = self._running(call)
        if condition(vmi, "Paused"):
            raise _conflict(vmi, "VMI is already paused")
        conditions = with_condition(
            status_of(vmi).get("conditions") or (),
            self._core.stamp,
            "Paused",
            "True",
            reason="PausedByUser",
            message="VMI was paused by user",
        )
        await self._core.patch(VMI, vmi, {"status": {"conditions": conditions}})

    async def _unpause(self, call: Call) -> None:
        vmi = self._running(call)
        if not condition(vmi, "Paused"):
            raise _conflict(vmi, "VMI is not paused")
        conditions = without_condition(status_of(vmi).get("conditions") or (), "Paused")
        await self._core.patch(VMI, vmi, {"status": {"conditions": conditions}})

    async def _reboot(self, call: Call) -> None:
        """The guest starts again; its agent is silent until then."""
        await self._instances.reboot(self._running(call))

    def _machine(self, call: Call) -> Json:
        found = self._core.mirror.get(VM, Key(call.namespace, call.name))
        if found is None:
            raise not_found("kubevirt.io", "virtualmachine", call.name)
        return found

    def _running(self, call: Call) -> Json:
        found = self._core.mirror.get(VMI, Key(call.namespace, call.name))
        if found is None:
            raise not_found("kubevirt.io", "virtualmachineinstance", call.name)
        if status_of(found).get("phase") != "Running":
            raise _conflict(found, "VMI is not running")
        return found


def _with_volume(spec: Json, volume: Json, disk: Json) -> Json:
    disks = ((spec.get("domain") or {}).get("devices") or {}).get("disks") or []
    return {
        "volumes": [*(spec.get("volumes") or ()), volume],
        "domain": {"devices": {"disks": [*disks, disk]}},
    }


def _without_volume(spec: Json, name: str) -> Json:
    disks = ((spec.get("domain") or {}).get("devices") or {}).get("disks") or []
    return {
        "volumes": [each for each in spec.get("volumes") or () if each["name"] != name],
        "domain": {"devices": {"disks": [each for each in disks if each["name"] != name]}},
    }


def _conflict(obj: Json, why: str) -> ApiError:
    plural = "virtualmachine" if "template" in obj["spec"] else "virtualmachineinstance"
    return conflict("kubevirt.io", plural, obj["metadata"]["name"], why)


def _accepted(action: Action) -> Callable[[Call], Awaitable[Raw]]:
    async def answer(call: Call) -> Raw:
        await action(call)
        return Raw(b"", status=202)

    return answer


def _definition(plural: str, kind: str) -> Json:
    version = {"name": VERSION, "served": True, "storage": True, "schema": {"openAPIV3Schema": _ANYTHING}}
    return {
        "metadata": {"name": f"{plural}.{GROUP}"},
        "spec": {
            "group": GROUP,
            "scope": "Namespaced",
            "names": {"kind": kind, "plural": plural, "singular": ""},
            "versions": [version],
        },
    }
