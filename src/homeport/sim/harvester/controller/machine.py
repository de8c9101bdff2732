"""VirtualMachines: what a VM needs is made, its instance is started and stopped as the run strategy says, and its
status follows the instance."""

from __future__ import annotations

import orjson

from homeport.client.errors import Invalid
from homeport.machinery.quantity import parse_quantity
from homeport.sim.harvester.controller.run import plan_run, run_strategy
from homeport.sim.harvester.controller.template import claim_templates
from homeport.sim.harvester.controller.vmstatus import Volumes, render_status
from homeport.sim.harvester.core import Core
from homeport.sim.harvester.kind import CLAIM, DATA_VOLUME, IMAGE, STORAGE_CLASS, VM, VMI, Json
from homeport.sim.harvester.object import (
    controlled_by,
    finalizers,
    key_of,
    labels,
    leaving,
    notes,
    owner_reference,
    status_of,
)

CONTROLLER_FINALIZER = "kubevirt.io/virtualMachineControllerFinalize"
INSTANCE_FINALIZER = "kubevirt.io/foregroundDeleteVirtualMachine"
CLEANUP_FINALIZER = "wrangler.cattle.io/VMController.CleanupPVCAndSnapshot"
RUN_STRATEGY = "harvesterhci.io/vmRunStrategy"
MAC_ADDRESSES = "harvesterhci.io/mac-address"
REMOVED_CLAIMS = "harvesterhci.io/removedPersistentVolumeClaims"
_OURS = (CONTROLLER_FINALIZER, CLEANUP_FINALIZER)
_FINAL = ("Succeeded", "Failed")
_BIND_SECONDS = 1.0


class Machines:
    def __init__(self, core: Core) -> None:
        self._core = core

    async def settle(self, key: str) -> float | None:
        vm = self._core.mirror.get(VM, key)
        if vm is None:
            return None
        vmi = self.instance_of(vm)
        after: float | None = None
        if leaving(vm):
            await self._release(vm, vmi)
        else:
            await self._hold_metadata(vm, vmi)
            await self._hold_claims(vm)
            await self._hold_labels(vm, vmi)
            if vmi is None and self._binds_at_once(vm):
                return _BIND_SECONDS  # the claim brings it back before that
            after = await self._run(vm, vmi)
        await self._report(key)
        return after

    def instance_of(self, vm: Json) -> Json | None:
        vmi = self._core.mirror.get(VMI, key_of(vm))
        if vmi is None or controlled_by(vmi, VM).get("uid") != vm["metadata"]["uid"]:
            return None
        return vmi

    # -- what a VM needs -----------------------------------------------------------------------------------------

    async def _hold_metadata(self, vm: Json, vmi: Json | None) -> None:
        wanted = [CONTROLLER_FINALIZER, CLEANUP_FINALIZER] if self._core.world.harvester else [CONTROLLER_FINALIZER]
        missing = [each for each in wanted if each not in finalizers(vm)]
        patch: Json = {"finalizers": [*finalizers(vm), *missing]} if missing else {}
        if self._core.world.harvester and (changed := _observed(vm, vmi)):
            patch["annotations"] = changed
        if patch:
            await self._core.patch(VM, vm, {"metadata": patch})

    async def _hold_labels(self, vm: Json, vmi: Json | None) -> None:
        """Harvester brings changed labels of the template to the instance that runs; KubeVirt's own stay."""
        if vmi is None or leaving(vmi) or not self._core.world.harvester:
            return
        wanted = (vm["spec"]["template"].get("metadata") or {}).get("labels") or {}
        changed: dict[str, str | None] = {
            name: value for name, value in wanted.items() if not _reserved(name) and labels(vmi).get(name) != value
        }
        changed |= {name: None for name in labels(vmi) if not _reserved(name) and name not in wanted}
        if changed:
            await self._core.patch(VMI, vmi, {"metadata": {"labels": changed}})

    async def _hold_claims(self, vm: Json) -> None:
        if not self._core.world.harvester:
            return
        for template in claim_templates(vm):
            await self._hold_claim(vm, template)

    def _binds_at_once(self, vm: Json) -> bool:
        """Whether a claim is about to be bound: where that takes no time, nobody sees a VM wait for it."""
        if self._core.pace.bind:
            return False
        waiting = [each for each in self._volumes(vm).claims if status_of(each).get("phase") != "Bound"]
        return any(self._core.mirror.get(STORAGE_CLASS, each["spec"].get("storageClassName") or "") for each in waiting)

    async def _hold_claim(self, vm: Json, template: Json) -> None:
        core, namespace = self._core, vm["metadata"]["namespace"]
        image_id = (template["metadata"].get("annotations") or {}).get("harvesterhci.io/imageId", "")
        image = core.mirror.get(IMAGE, image_id) if image_id else None
        if image_id.count("/") == 1 and image is None:
            return  # as Harvester does: the entry is skipped until the image exists
        name = template["metadata"]["name"]
        claim = core.mirror.get(CLAIM, f"{namespace}/{name}")
        if claim is None:
            if image is not None and image["spec"].get("backend") == "cdi":
                await core.create(_clone(template, namespace, image), DATA_VOLUME)
                return
            kept = {key: template["metadata"].get(key) for key in ("name", "labels", "annotations")}
            await core.create({"metadata": {**kept, "namespace": namespace}, "spec": template["spec"]}, CLAIM)
            return
        asked = template["spec"]["resources"]["requests"]["storage"]
        has = claim["spec"]["resources"]["requests"]["storage"]
        if parse_quantity(asked) > parse_quantity(has):
            await core.patch(CLAIM, claim, {"spec": {"resources": {"requests": {"storage": asked}}}})

    async def _hold_data_volumes(self, vm: Json) -> None:
        for template in vm["spec"].get("dataVolumeTemplates") or ():
            key = f"{vm['metadata']['namespace']}/{template['metadata']['name']}"
            if self._core.mirror.get(DATA_VOLUME, key) is None:
                meta = {
                    **{name: template["metadata"].get(name) or {} for name in ("labels", "annotations")},
                    "name": template["metadata"]["name"],
                    "namespace": vm["metadata"]["namespace"],
                    "ownerReferences": [owner_reference(vm, VM)],
                }
                await self._core.create({"metadata": meta, "spec": template["spec"]}, DATA_VOLUME)

    # -- running -------------------------------------------------------------------------------------------------

    async def _run(self, vm: Json, vmi: Json | None) -> float | None:
        step = plan_run(vm, vmi, self._core.clock.now())
        if step.action == "start":
            await self._start(vm)
        elif step.action == "stop" and vmi is not None and not leaving(vmi):
            await self._stop(vm, vmi)
            if step.then_start:
                requests = [*(status_of(vm).get("stateChangeRequests") or ()), {"action": "Start"}]
                await self._core.patch(VM, vm, {"status": {"stateChangeRequests": requests}}, "status")
        return step.after

    async def _start(self, vm: Json) -> None:
        await self._hold_data_volumes(vm)
        made = _instance(vm)
        try:
            created = await self._core.create(made, VMI)
        except Invalid as error:
            self._core.tell(vm, VM, "FailedCreate", f"Error creating virtual machine instance: {error}", warning=True)
            return
        if created is not None:
            name = vm["metadata"]["name"]
            text = f"Started the virtual machine by creating the new virtual machine instance {name}"
            self._core.tell(vm, VM, "SuccessfulCreate", text)

    async def _stop(self, vm: Json, vmi: Json) -> None:
        await self._core.delete(VMI, vmi)
        text = f"Stopped the virtual machine by deleting the virtual machine instance {vmi['metadata']['uid']}"
        self._core.tell(vm, VM, "SuccessfulDelete", text)

    async def _release(self, vm: Json, vmi: Json | None) -> None:
        if vmi is not None:
            if not leaving(vmi):
                await self._stop(vm, vmi)
            return
        await self._drop_claims(vm)
        kept = [each for each in finalizers(vm) if each not in _OURS]
        if kept != finalizers(vm):
            await self._core.patch(VM, vm, {"metadata": {"finalizers": kept}})

    async def _drop_claims(self, vm: Json) -> None:
        if CLEANUP_FINALIZER not in finalizers(vm):
            return
        for name in notes(vm).get(REMOVED_CLAIMS, "").split(","):
            claim = self._core.mirror.get(CLAIM, f"{vm['metadata']['namespace']}/{name.strip()}")
            if claim is not None:
                await self._core.delete(CLAIM, claim)

    # -- reporting -----------------------------------------------------------------------------------------------

    async def _report(self, key: str) -> None:
        """From what is there after all writes."""
        core = self._core
        vm = core.mirror.get(VM, key)
        if vm is None:
            return
        vmi = self.instance_of(vm)
        status = render_status(vm, vmi, self._volumes(vm), core.clock.now(), core.rng)
        if status != status_of(vm):
            gone = {name: None for name in status_of(vm) if name not in status}
            await core.patch(VM, vm, {"status": {**status, **gone}}, "status")
        if vmi is not None and status_of(vmi).get("phase") in _FINAL and CONTROLLER_FINALIZER in finalizers(vmi):
            kept = [each for each in finalizers(vmi) if each != CONTROLLER_FINALIZER]
            await core.patch(VMI, vmi, {"metadata": {"finalizers": kept}})

    def _volumes(self, vm: Json) -> Volumes:
        core, namespace = self._core, vm["metadata"]["namespace"]
        claims: list[Json] = []
        data_volumes: list[Json] = []
        for volume in vm["spec"]["template"]["spec"].get("volumes") or ():
            if name := (volume.get("persistentVolumeClaim") or {}).get("claimName"):
                claims += [found] if (found := core.mirror.get(CLAIM, f"{namespace}/{name}")) else []
            elif name := (volume.get("dataVolume") or {}).get("name"):
                claims += [found] if (found := core.mirror.get(CLAIM, f"{namespace}/{name}")) else []
                data_volumes += [found] if (found := core.mirror.get(DATA_VOLUME, f"{namespace}/{name}")) else []
        return Volumes(claims, data_volumes)


def _reserved(label: str) -> bool:
    return label.startswith("kubevirt.io")


def _with_interface(spec: Json) -> Json:
    """A VM that names no network is on that of Pods."""
    devices = spec["domain"].get("devices") or {}
    if devices.get("interfaces") or spec.get("networks") or devices.get("autoattachPodInterface") is False:
        return spec
    interfaces = [{"name": "default", "bridge": {}}]
    domain = {**spec["domain"], "devices": {**devices, "interfaces": interfaces}}
    return {**spec, "domain": domain, "networks": [{"name": "default", "pod": {}}]}


def _observed(vm: Json, vmi: Json | None) -> dict[str, str]:
    """Annotations in which Harvester keeps what a VM had: the strategy it ran under, and its MAC addresses."""
    found: dict[str, str] = {}
    strategy = run_strategy(vm)
    if strategy not in ("Halted", notes(vm).get(RUN_STRATEGY)):
        found[RUN_STRATEGY] = strategy
    interfaces = status_of(vmi).get("interfaces") or () if vmi is not None else ()
    if macs := {each["name"]: each["mac"] for each in interfaces if each.get("name") and each.get("mac")}:
        text = orjson.dumps(macs, option=orjson.OPT_SORT_KEYS).decode()
        if notes(vm).get(MAC_ADDRESSES) != text:
            found[MAC_ADDRESSES] = text
    return found


def _with_macs(vm: Json) -> Json:
    """The specification of its instance; an interface that lost its MAC gets the one that it had."""
    spec: Json = vm["spec"]["template"]["spec"]
    known = orjson.loads(notes(vm).get(MAC_ADDRESSES) or "{}")
    devices = spec["domain"].get("devices") or {}
    interfaces = [
        each if each.get("macAddress") or each["name"] not in known else {**each, "macAddress": known[each["name"]]}
        for each in devices.get("interfaces") or ()
    ]
    if interfaces == devices.get("interfaces"):
        return spec
    return {**spec, "domain": {**spec["domain"], "devices": {**devices, "interfaces": interfaces}}}


def _instance(vm: Json) -> Json:
    meta, template = vm["metadata"], vm["spec"]["template"]
    inner = template.get("metadata") or {}
    return {
        "metadata": {
            "name": meta["name"],
            "namespace": meta["namespace"],
            "labels": {"kubevirt.io/vm": meta["name"], **(inner.get("labels") or {})},
            "annotations": {
                **(inner.get("annotations") or {}),
                "kubevirt.io/vm-generation": str(meta.get("generation", 1)),
            },
            "ownerReferences": [owner_reference(vm, VM)],
            "finalizers": [CONTROLLER_FINALIZER, INSTANCE_FINALIZER],
        },
        "spec": _with_interface(_with_macs(vm)),
    }


def _clone(template: Json, namespace: str, image: Json) -> Json:
    source = {"pvc": {"namespace": image["metadata"]["namespace"], "name": image["metadata"]["name"]}}
    storage = {
        "storageClassName": template["spec"].get("storageClassName", ""),
        "resources": template["spec"]["resources"],
    }
    meta = {"name": template["metadata"]["name"], "namespace": namespace}
    return {"metadata": meta, "spec": {"source": source, "storage": storage}}
