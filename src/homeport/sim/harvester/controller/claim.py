"""PersistentVolumeClaims: each gets a volume as its class says, as Longhorn's provisioner would make one."""

from __future__ import annotations

from homeport.machinery.quantity import parse_quantity
from homeport.sim.harvester.core import Core
from homeport.sim.harvester.kind import CLAIM, STORAGE_CLASS, VOLUME, Json
from homeport.sim.harvester.object import leaving, status_of

BY_CLAIM = "claim"  # index of volumes


class Claims:
    def __init__(self, core: Core) -> None:
        self._core = core

    async def settle(self, key: str) -> float | None:
        core = self._core
        claim = core.mirror.get(CLAIM, key)
        await self._drop_volumes(key, claim)
        if claim is None or leaving(claim):
            return None
        if status_of(claim).get("phase") == "Bound":
            await self._grow(claim)
            return None
        storage_class = core.mirror.get(STORAGE_CLASS, str(claim["spec"].get("storageClassName") or ""))
        if storage_class is None:
            return None  # a new class brings it back
        wait = core.seconds_until(claim["metadata"]["creationTimestamp"], core.pace.bind)
        if wait > 0:
            return wait
        await self._bind(claim, storage_class)
        return None

    async def _bind(self, claim: Json, storage_class: Json) -> None:
        core = self._core
        name = f"pvc-{claim['metadata']['uid']}"
        volume = await core.create(_volume(name, claim, storage_class), VOLUME) or core.mirror.get(VOLUME, name)
        if volume is not None:
            await core.patch(VOLUME, volume, {"status": {"phase": "Bound"}}, "status")
        if claim["spec"].get("volumeName") != name:
            bound = {"pv.kubernetes.io/bind-completed": "yes", "pv.kubernetes.io/bound-by-controller": "yes"}
            await core.patch(CLAIM, claim, {"metadata": {"annotations": bound}, "spec": {"volumeName": name}})
        capacity = {"storage": claim["spec"]["resources"]["requests"]["storage"]}
        status = {"phase": "Bound", "accessModes": claim["spec"]["accessModes"], "capacity": capacity}
        await core.patch(CLAIM, claim, {"status": status}, "status")

    async def _grow(self, claim: Json) -> None:
        asked = claim["spec"]["resources"]["requests"]["storage"]
        has = (status_of(claim).get("capacity") or {}).get("storage", "0")
        if parse_quantity(asked) > parse_quantity(has):
            await self._core.patch(CLAIM, claim, {"status": {"capacity": {"storage": asked}}}, "status")

    async def _drop_volumes(self, key: str, claim: Json | None) -> None:
        """Volumes of a claim that is gone, even if another has its name by now. One without a UID is reserved."""
        uid = claim["metadata"]["uid"] if claim is not None else ""
        for volume in self._core.mirror.by(VOLUME, BY_CLAIM, key):
            held, policy = (
                volume["spec"]["claimRef"].get("uid", ""),
                volume["spec"].get("persistentVolumeReclaimPolicy"),
            )
            if held and held != uid and policy == "Delete":
                await self._core.delete(VOLUME, volume)


def _volume(name: str, claim: Json, storage_class: Json) -> Json:
    meta = claim["metadata"]
    return {
        "metadata": {"name": name, "annotations": {"pv.kubernetes.io/provisioned-by": storage_class["provisioner"]}},
        "spec": {
            "capacity": {"storage": claim["spec"]["resources"]["requests"]["storage"]},
            "accessModes": claim["spec"]["accessModes"],
            "volumeMode": claim["spec"].get("volumeMode", "Filesystem"),
            "storageClassName": storage_class["metadata"]["name"],
            "persistentVolumeReclaimPolicy": storage_class.get("reclaimPolicy", "Delete"),
            "csi": {"driver": storage_class["provisioner"], "volumeHandle": name},
            "claimRef": {
                "apiVersion": "v1",
                "kind": "PersistentVolumeClaim",
                "namespace": meta["namespace"],
                "name": meta["name"],
                "uid": meta["uid"],
            },
        },
    }
