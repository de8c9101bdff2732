"""The sidecars of CSI drivers: they read claims, volumes and attachments, ask the driver, and write what came of it."""

from __future__ import annotations

import base64
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from homeport.api.meta import Resource
from homeport.machinery.quantity import parse_quantity
from homeport.sim.machine.workload.kind import ATTACHMENT, CLAIM, SECRET, VOLUME, Json
from homeport.sim.machine.workload.standin.csi.driver import Caller, Driver, DriverError, NewVolume
from homeport.sim.machine.workload.standin.event import EventRecorder
from homeport.sim.machine.workload.storage.claim import PROVISIONER, SELECTED_NODE, is_bound, storage_class
from homeport.sim.machine.workload.view import View, leaving

if TYPE_CHECKING:
    from homeport.sim.machine.workload.cluster import WorkloadCluster

PROVISIONED_BY = "pv.kubernetes.io/provisioned-by"
_FINALIZER = "external-provisioner.volume.kubernetes.io/finalizer"
_DELETION_SECRET = "volume.kubernetes.io/provisioner-deletion-secret-"  # noqa: S105 - the start of two annotations
_ATTACHER = "external-attacher/"
_PREFIX = "csi.storage.k8s.io/"
_FIRST_PAUSE, _LONGEST_PAUSE = 2.0, 60.0

_Work = Callable[[], Awaitable[None]]


@dataclass(slots=True)
class _Retry:
    at: float
    pause: float = _FIRST_PAUSE


class Sidecars:
    """Those of one driver."""

    def __init__(self, cluster: WorkloadCluster, driver: Driver) -> None:
        self.driver = driver
        self._cluster = cluster
        self._provisioner = EventRecorder(f"{driver.name}_provisioner")
        self._attacher = EventRecorder("attachdetach-controller")
        self._resizer = EventRecorder(f"external-resizer {driver.name}")
        self._retries: dict[str, _Retry] = {}

    async def settle(self, view: View, pod: Json) -> None:
        for claim in view.all(CLAIM):
            if self._wants_volume(claim):
                await self._try(view, claim, CLAIM, "ProvisioningFailed", partial(self._provision, view, pod, claim))
            elif is_bound(claim) and not leaving(claim):
                await self._grow(view, pod, claim)
        for attachment in view.all(ATTACHMENT):
            if attachment["spec"]["attacher"] == self.driver.name:
                await self._follow(view, pod, attachment)
        for volume in view.all(VOLUME):
            if self._is_due(view, volume):
                await self._try(view, volume, VOLUME, "VolumeFailedDelete", partial(self._drop, view, pod, volume))
        known = {each["metadata"]["uid"] for kind in (CLAIM, VOLUME, ATTACHMENT) for each in view.all(kind)}
        self._retries = {uid: each for uid, each in self._retries.items() if uid in known}

    async def _try(self, view: View, obj: Json, kind: Resource, reason: str, work: _Work) -> None:
        """Failures are reported on the object and repeated after a pause."""
        uid = obj["metadata"]["uid"]
        retry = self._retries.get(uid)
        if retry is not None and retry.at > view.now:
            view.later(retry.at - view.now + 0.1)
            return
        try:
            await work()
        except DriverError as error:
            pause = min(retry.pause * 2, _LONGEST_PAUSE) if retry is not None else _FIRST_PAUSE
            self._retries[uid] = _Retry(view.now + pause, pause)
            view.later(pause + 0.1)
            teller = {CLAIM: self._provisioner, VOLUME: self._provisioner, ATTACHMENT: self._attacher}[kind]
            await teller.warn(view, kind, obj, reason, self._explain(view, kind, obj, error))
            if kind is ATTACHMENT and not leaving(obj):
                await view.set_status(ATTACHMENT, obj, {"attached": False, "attachError": _failure(view, error)})
            elif kind is ATTACHMENT:
                await view.set_status(ATTACHMENT, obj, {"detachError": _failure(view, error)})
        else:
            self._retries.pop(uid, None)

    def _explain(self, view: View, kind: Resource, obj: Json, error: DriverError) -> str:
        if kind is CLAIM and not is_bound(obj):
            return f'failed to provision volume with StorageClass "{obj["spec"].get("storageClassName")}": {error}'
        return str(error)

    # -- claims ------------------------------------------------------------------------------------------------

    def _wants_volume(self, claim: Json) -> bool:
        notes = claim["metadata"].get("annotations") or {}
        return notes.get(PROVISIONER) == self.driver.name and not claim["spec"].get("volumeName") and not leaving(claim)

    async def _provision(self, view: View, pod: Json, claim: Json) -> None:
        found = storage_class(view, claim)
        if found is None:
            return
        meta = claim["metadata"]
        text = f'External provisioner is provisioning volume for claim "{meta["namespace"]}/{meta["name"]}"'
        await self._provisioner.normal(view, CLAIM, claim, "Provisioning", text)
        given = {str(key): str(value) for key, value in (found.get("parameters") or {}).items()}
        name = f"pvc-{meta['uid']}"
        secret = _secret_named(given, "provisioner", claim, name)
        caller = Caller(self._cluster, view, pod, self._secret(view, pod, secret))
        parameters = {key: value for key, value in given.items() if not key.startswith(_PREFIX)}
        node = str((meta.get("annotations") or {}).get(SELECTED_NODE, ""))
        asked = NewVolume(name, _bytes(claim["spec"]["resources"]["requests"]["storage"]), parameters, claim, node)
        handle, attributes = await self.driver.create(caller, asked)
        await view.create(self._volume(name, claim, found, handle, attributes, secret), VOLUME)
        await self._provisioner.normal(
            view, CLAIM, claim, "ProvisioningSucceeded", f"Successfully provisioned volume {name}"
        )

    def _volume(
        self, name: str, claim: Json, found: Json, handle: str, attributes: Mapping[str, str], secret: tuple[str, str]
    ) -> Json:
        meta, spec = claim["metadata"], claim["spec"]
        notes = {PROVISIONED_BY: self.driver.name}
        if secret[1]:
            notes |= {f"{_DELETION_SECRET}namespace": secret[0], f"{_DELETION_SECRET}name": secret[1]}
        file_system = (found.get("parameters") or {}).get(f"{_PREFIX}fstype") or "ext4"
        source: Json = {"driver": self.driver.name, "volumeHandle": handle, "volumeAttributes": dict(attributes)}
        if spec.get("volumeMode") != "Block":
            source["fsType"] = file_system
        reference = {"namespace": meta["namespace"], "name": meta["name"], "uid": meta["uid"]}
        return {
            "metadata": {"name": name, "annotations": notes, "finalizers": [_FINALIZER]},
            "spec": {
                "capacity": {"storage": spec["resources"]["requests"]["storage"]},
                "accessModes": spec["accessModes"],
                "volumeMode": spec.get("volumeMode") or "Filesystem",
                "storageClassName": found["metadata"]["name"],
                "persistentVolumeReclaimPolicy": found.get("reclaimPolicy") or "Delete",
                "mountOptions": found.get("mountOptions") or None,
                "csi": source,
                "claimRef": {"apiVersion": "v1", "kind": "PersistentVolumeClaim", **reference},
            },
        }

    async def _grow(self, view: View, pod: Json, claim: Json) -> None:
        volume = self._volume_named(view, str(claim["spec"].get("volumeName") or ""))
        if volume is None:
            return
        asked = claim["spec"]["resources"]["requests"]["storage"]
        has = ((claim.get("status") or {}).get("capacity") or {}).get("storage", "0")
        found = storage_class(view, claim)
        if parse_quantity(str(asked)) <= parse_quantity(str(has)) or not (found or {}).get("allowVolumeExpansion"):
            return

        async def work() -> None:
            handle = volume["spec"]["csi"]["volumeHandle"]
            await self.driver.expand(self._caller(view, pod, volume), handle, _bytes(asked))
            await view.patch(VOLUME, volume, {"spec": {"capacity": {"storage": asked}}})
            await view.set_status(CLAIM, claim, {"capacity": {"storage": asked}})
            await self._resizer.normal(view, CLAIM, claim, "FileSystemResizeSuccessful", f"Volume has {asked}")

        await self._try(view, claim, CLAIM, "VolumeResizeFailed", work)

    # -- volumes -----------------------------------------------------------------------------------------------

    def _volume_named(self, view: View, name: str) -> Json | None:
        for each in view.all(VOLUME):
            if each["metadata"]["name"] == name and (each["spec"].get("csi") or {}).get("driver") == self.driver.name:
                return each
        return None

    def _is_due(self, view: View, volume: Json) -> bool:
        """Whether its claim is gone, nothing uses it, and it goes with its claim."""
        notes = volume["metadata"].get("annotations") or {}
        if notes.get(PROVISIONED_BY) != self.driver.name or (volume.get("status") or {}).get("phase") != "Released":
            return False
        name = volume["metadata"]["name"]
        attached = any(each["spec"]["source"].get("persistentVolumeName") == name for each in view.all(ATTACHMENT))
        return not attached and (volume["spec"].get("persistentVolumeReclaimPolicy") == "Delete" or leaving(volume))

    async def _drop(self, view: View, pod: Json, volume: Json) -> None:
        if volume["spec"].get("persistentVolumeReclaimPolicy") == "Delete":
            await self.driver.delete(self._caller(view, pod, volume), volume["spec"]["csi"]["volumeHandle"])
        await view.delete(VOLUME, volume)
        kept = [each for each in volume["metadata"].get("finalizers") or () if each != _FINALIZER]
        await view.patch(VOLUME, volume, {"metadata": {"finalizers": kept or None}})

    # -- attachments -------------------------------------------------------------------------------------------

    async def _follow(self, view: View, pod: Json, attachment: Json) -> None:
        spec = attachment["spec"]
        volume = self._volume_named(view, str(spec["source"].get("persistentVolumeName") or ""))
        if not leaving(attachment):
            if volume is not None and not (attachment.get("status") or {}).get("attached"):
                work = partial(self._attach, view, pod, attachment, volume)
                await self._try(view, attachment, ATTACHMENT, "FailedAttachVolume", work)
            return
        await self._try(
            view, attachment, ATTACHMENT, "FailedDetachVolume", partial(self._detach, view, pod, attachment, volume)
        )

    async def _attach(self, view: View, pod: Json, attachment: Json, volume: Json) -> None:
        node = view.nodes.get(attachment["spec"]["nodeName"])
        if node is None:
            return
        await self.driver.attach(self._caller(view, pod, volume), volume["spec"]["csi"]["volumeHandle"], node)
        await view.set_status(ATTACHMENT, attachment, {"attached": True, "attachError": None})

    async def _detach(self, view: View, pod: Json, attachment: Json, volume: Json | None) -> None:
        held = attachment["metadata"].get("finalizers") or []
        kept = [each for each in held if not each.startswith(_ATTACHER)]
        if kept == held:
            return  # done; somebody else has something left to do
        if volume is not None:
            handle = volume["spec"]["csi"]["volumeHandle"]
            node = view.nodes.get(attachment["spec"]["nodeName"])
            await self.driver.detach(self._caller(view, pod, volume), handle, node)
        await view.set_status(ATTACHMENT, attachment, {"attached": False})
        await view.patch(ATTACHMENT, attachment, {"metadata": {"finalizers": kept or None}})

    # -- credentials -------------------------------------------------------------------------------------------

    def _caller(self, view: View, pod: Json, volume: Json) -> Caller:
        notes = volume["metadata"].get("annotations") or {}
        named = (str(notes.get(f"{_DELETION_SECRET}namespace", "")), str(notes.get(f"{_DELETION_SECRET}name", "")))
        return Caller(self._cluster, view, pod, self._secret(view, pod, named))

    def _secret(self, view: View, pod: Json, named: tuple[str, str]) -> dict[str, bytes]:
        """Raises DriverError if the Secret does not exist that a class or volume names."""
        namespace = pod["metadata"]["namespace"]
        wanted = [named] if named[1] else [(namespace, name) for name in self.driver.secrets]
        found = {(each["metadata"]["namespace"], each["metadata"]["name"]): each for each in view.all(SECRET)}
        for key in wanted:
            if key in found:
                data = found[key].get("data") or {}
                return {name: base64.b64decode(value) for name, value in data.items()}
        if named[1]:
            raise DriverError(
                "InvalidArgument",
                f'failed to get secret {named[1]} in namespace {named[0]}: secrets "{named[1]}" not found',
            )
        return {}


def _failure(view: View, error: DriverError) -> Json:
    return {"message": str(error), "time": view.stamp}


def _secret_named(parameters: Mapping[str, str], role: str, claim: Json, volume: str) -> tuple[str, str]:
    """(namespace, name) of the Secret that a class names, with the variables that may be in there."""
    values = {
        "${pv.name}": volume,
        "${pvc.namespace}": claim["metadata"]["namespace"],
        "${pvc.name}": claim["metadata"]["name"],
    }
    return _filled(parameters.get(f"{_PREFIX}{role}-secret-namespace", ""), values), _filled(
        parameters.get(f"{_PREFIX}{role}-secret-name", ""), values
    )


def _filled(text: str, values: Mapping[str, str]) -> str:
    for name, value in values.items():
        text = text.replace(name, value)
    return text


def _bytes(quantity: object) -> int:
    return int(parse_quantity(str(quantity)).amount)
