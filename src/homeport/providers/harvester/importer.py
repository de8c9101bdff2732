"""VirtualMachines that somebody else created: what they are made of, whose they are, and our mark on them."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from homeport.api.kubevirt.v1alpha1 import KubevirtCluster, KubevirtMachine, KubevirtMachineTemplate
from homeport.api.meta import Unstructured
from homeport.capi.name import CLUSTER_NAME_LABEL, label_value
from homeport.client.protocol import Key
from homeport.infra.candidate import Candidate, Json, Mark
from homeport.infra.error import Denied, Missing, Taken
from homeport.providers.harvester.infracluster.belonging import holder_of
from homeport.providers.harvester.infracluster.connection import HarvesterSession
from homeport.providers.harvester.infracluster.resource import (
    CLAIM_TEMPLATES,
    CLUSTER_UID,
    CREATOR,
    IMAGE_ID,
    MACHINE_NAME,
    MACHINE_NAMESPACE,
    MACHINE_UID,
    VM,
    VMI,
)
from homeport.providers.harvester.machine.observation import HARVESTER, KUBEVIRT, addresses_of, machine_of, power_of
from homeport.runtime.cache import labels_of

_LABELS = (MACHINE_NAME, MACHINE_NAMESPACE, MACHINE_UID, CLUSTER_UID, CLUSTER_NAME_LABEL)
# Rancher creates the VMs of its clusters with this driver, and deletes them.
_RANCHER = "docker-machine-driver-harvester"
# Parts of a VM that belong to this one alone.
_OWN = ("hostname", "subdomain", "volumes", "accessCredentials")


class HarvesterImporter:
    vendor = "Harvester"
    cluster_kind = KubevirtCluster.__resource__
    machine_kind = KubevirtMachine.__resource__
    template_kind = KubevirtMachineTemplate.__resource__

    def __init__(self, session: HarvesterSession, close: Callable[[], Any]) -> None:
        self._session = session
        self._close = close

    async def close(self) -> None:
        await self._close()

    async def candidates(self) -> Sequence[Candidate]:
        instances = {(each.namespace, each.name): each for each in await self._list(VMI)}
        return [self._candidate(vm, instances.get((vm.namespace, vm.name))) for vm in await self._list(VM)]

    async def _list(self, kind: Any) -> list[Unstructured]:
        """In all namespaces, or in that of the account if it may not see others."""
        try:
            return await self._session.list(kind, "")
        except Denied:
            return await self._session.list(kind, self._session.namespace)

    def _candidate(self, vm: Unstructured, vmi: Unstructured | None) -> Candidate:
        machine = machine_of(vm, vmi)
        prefix = HARVESTER if self._session.harvester else KUBEVIRT
        spec, missing = machine_spec(vm)
        # KubeVirt fills in the UUID of the firmware when it starts a VM.
        shown = ((machine.vmi or vm.get("spec", {}).get("template") or {}).get("spec") or {}).get("domain") or {}
        firmware = str((shown.get("firmware") or {}).get("uuid") or "").lower()
        return Candidate(
            id=vm.uid,
            name=vm.name,
            provider_id=f"{prefix}{vm.uid}",
            power=power_of(machine),
            addresses=tuple(addresses_of(machine, virtual="", first=0)),
            system_uuids=(firmware,) if firmware else (),
            machine_uid=labels_of(vm).get(MACHINE_UID, ""),
            holder=_holder(vm),
            spec=spec,
            size=_size(spec),
            missing=missing,
            vendor=vm,
        )

    def with_image(self, spec: Mapping[str, Any], image: str) -> Json:
        return {**spec, "bootDisk": {**(spec.get("bootDisk") or {}), "image": image}}

    # -- marks -------------------------------------------------------------------------------------------------

    async def mark(self, candidate: Candidate, mark: Mark) -> None:
        vm: Unstructured = candidate.vendor
        current = await self._session.get(VM, Key(vm.namespace, vm.name))
        if current is None or current.uid != vm.uid:
            raise Missing(f"VM {vm.namespace}/{vm.name} ({vm.uid}) no longer exists")
        held = labels_of(current).get(MACHINE_UID, "")
        if held and held != mark.machine_uid:
            raise Taken(f"VM {vm.namespace}/{vm.name} meanwhile got the mark of another plane ({MACHINE_UID}: {held})")
        wanted = _marks(mark)
        if any(labels_of(current).get(name) != value for name, value in wanted.items()):
            await self._label(current, wanted)

    async def unmark(self, vm_id: str, mark: Mark) -> bool:
        found = [vm for vm in await self._list(VM) if vm.uid == vm_id]
        if not found or labels_of(found[0]).get(MACHINE_UID) != mark.machine_uid:
            return False
        await self._label(found[0], dict.fromkeys(_LABELS))
        return True

    async def forget(self, cluster: str) -> None:
        """Labels are all there is."""

    async def _label(self, vm: Unstructured, labels: Mapping[str, str | None]) -> None:
        """For this very state of the VM: what others change at the same time is not overwritten."""
        meta = {"uid": vm.uid, "resourceVersion": vm.resource_version, "labels": dict(labels)}
        await self._session.patch(VM, Key(vm.namespace, vm.name), {"metadata": meta})


def _marks(mark: Mark) -> dict[str, str]:
    return {
        MACHINE_NAME: label_value(mark.machine.name),
        MACHINE_NAMESPACE: label_value(mark.machine.namespace),
        MACHINE_UID: mark.machine_uid,
        CLUSTER_NAME_LABEL: label_value(mark.cluster),
        CLUSTER_UID: mark.cluster_uid,
    }


def _holder(vm: Unstructured) -> str:
    labels = labels_of(vm)
    if any(name in labels for name in _LABELS):
        return holder_of(vm)
    if labels.get(CREATOR) == _RANCHER:
        return f"has the label {CREATOR}: {_RANCHER}, so Rancher manages it"
    return ""


def machine_spec(vm: Unstructured) -> tuple[Json, tuple[str, ...]]:
    """The spec of a KubevirtMachine like this VM, and the fields that can't be read from it."""
    spec: Json = copy.deepcopy(vm.get("spec") or {})
    spec.pop("dataVolumeTemplates", None)
    inner: Json = (spec.get("template") or {}).get("spec") or {}
    volumes = inner.get("volumes") or []
    claims = _claims(vm)
    boot, others = _disks(inner, volumes, claims)
    for name in _OWN:
        inner.pop(name, None)
    _anonymise(inner)
    spec["template"] = {"spec": inner}
    made: Json = {"virtualMachineTemplate": {"metadata": {"namespace": vm.namespace}, "spec": spec}}
    image = str(((boot or {}).get("metadata", {}).get("annotations") or {}).get(IMAGE_ID) or "")
    if boot is not None:
        made["bootDisk"] = {**({"image": image} if image else {}), "size": _storage(boot)}
    if others:
        made["dataDisks"] = [_data_disk(f"disk-{number}", each) for number, each in enumerate(others, 1)]
    return made, () if image else ("bootDisk.image",)


def _claims(vm: Unstructured) -> dict[str, Json]:
    """Of Harvester's annotation, by name. One that can't be read shows no image."""
    try:
        found = json.loads((vm.metadata.get("annotations") or {}).get(CLAIM_TEMPLATES) or "[]")
    except ValueError:
        return {}
    return {str((each.get("metadata") or {}).get("name")): each for each in found if isinstance(each, dict)}


def _disks(inner: Json, volumes: Sequence[Json], claims: Mapping[str, Json]) -> tuple[Json | None, list[Json]]:
    """The claims of the boot disk and of the others, in the order of the VM's disks."""
    named = {each.get("name"): (each.get("persistentVolumeClaim") or {}).get("claimName") for each in volumes}
    devices = (inner.get("domain") or {}).get("devices") or {}
    disks = [each for each in devices.get("disks") or () if "cdrom" not in each]
    disks.sort(key=lambda disk: disk.get("bootOrder") or 1_000)
    found = [claims[claim] for disk in disks if (claim := str(named.get(disk.get("name")))) in claims]
    return (found[0], found[1:]) if found else (None, [])


def _anonymise(inner: Json) -> None:
    domain: Json = inner.get("domain") or {}
    firmware = {key: value for key, value in (domain.get("firmware") or {}).items() if key not in ("uuid", "serial")}
    domain.pop("firmware", None)
    if firmware:
        domain["firmware"] = firmware
    devices: Json = domain.get("devices") or {}
    devices.pop("disks", None)
    for card in devices.get("interfaces") or ():
        card.pop("macAddress", None)
    (domain.get("resources") or {}).pop("requests", None)  # Harvester derives them from the limits


def _storage(claim: Json) -> str:
    requests = ((claim.get("spec") or {}).get("resources") or {}).get("requests") or {}
    return str(requests.get("storage") or "")


def _data_disk(name: str, claim: Json) -> Json:
    storage_class = str((claim.get("spec") or {}).get("storageClassName") or "")
    return {"name": name, "size": _storage(claim), **({"storageClassName": storage_class} if storage_class else {})}


def _size(spec: Json) -> str:
    domain = spec["virtualMachineTemplate"]["spec"]["template"]["spec"].get("domain") or {}
    cpu, limits = domain.get("cpu") or {}, (domain.get("resources") or {}).get("limits") or {}
    cores = int(cpu.get("cores") or 1) * int(cpu.get("sockets") or 1) * int(cpu.get("threads") or 1)
    memory = (domain.get("memory") or {}).get("guest") or limits.get("memory") or "?"
    disk = (spec.get("bootDisk") or {}).get("size") or "?"
    return f"{cores} vCPU, {memory} memory, {disk} disk"
