"""DataVolumes: each becomes a claim, which is filled from the source that it names."""

from __future__ import annotations

from homeport.sim.harvester.core import Core
from homeport.sim.harvester.kind import CLAIM, DATA_VOLUME, Json
from homeport.sim.harvester.object import leaving, owner_reference, status_of, with_condition

SOURCE = "cdi.kubevirt.io/storage.import.endpoint"
CLONE = "k8s.io/CloneRequest"


class DataVolumes:
    def __init__(self, core: Core) -> None:
        self._core = core

    async def settle(self, key: str) -> float | None:
        core = self._core
        volume = core.mirror.get(DATA_VOLUME, key)
        if volume is None or leaving(volume) or status_of(volume).get("phase") == "Succeeded":
            return None
        claim = core.mirror.get(CLAIM, key)
        if claim is None:
            made = _claim(volume, self._default_class())
            await core.create(made, CLAIM)
            claim = core.mirror.get(CLAIM, key)
        bound = claim is not None and status_of(claim).get("phase") == "Bound"
        if not bound:
            await self._report(volume, "Pending", "0.0%", False)
            return None  # the claim brings it back
        wait = core.seconds_until(volume["metadata"]["creationTimestamp"], core.pace.download)
        if wait > 0:
            share = 100 * (1 - wait / core.pace.download)
            await self._report(volume, "ImportInProgress", f"{share:.1f}%", True)
            return min(wait, core.pace.download / 5)
        await self._report(volume, "Succeeded", "100.0%", True)
        return None

    def _default_class(self) -> str:
        return next((each.name for each in self._core.world.storage_classes if each.default), "")

    async def _report(self, volume: Json, phase: str, progress: str, bound: bool) -> None:
        before, now = status_of(volume), self._core.stamp
        conditions = before.get("conditions") or []
        name = volume["metadata"]["name"]
        text = f"PVC {name} Bound" if bound else f"PVC {name} Pending"
        conditions = with_condition(
            conditions, now, "Bound", str(bound), reason="Bound" if bound else "Pending", message=text
        )
        conditions = with_condition(conditions, now, "Ready", str(phase == "Succeeded"))
        running = phase == "ImportInProgress"
        conditions = with_condition(conditions, now, "Running", str(running), reason="" if running else "Completed")
        status = {"phase": phase, "progress": progress, "claimName": name, "conditions": conditions}
        if any(before.get(key) != value for key, value in status.items()):
            await self._core.patch(DATA_VOLUME, volume, {"status": status}, "status")


def _claim(volume: Json, default_class: str) -> Json:
    meta, spec = volume["metadata"], volume["spec"]
    wanted = spec.get("storage") or spec.get("pvc") or {}
    source = spec.get("source") or {}
    origin = source.get("http") or source.get("registry") or source.get("s3") or {}
    notes = {**(meta.get("annotations") or {})}
    if origin.get("url"):
        notes[SOURCE] = origin["url"]
    if clone := source.get("pvc"):
        notes[CLONE] = f"{clone.get('namespace') or meta['namespace']}/{clone['name']}"
    return {
        "metadata": {
            "name": meta["name"],
            "namespace": meta["namespace"],
            "labels": {"app": "containerized-data-importer", **(meta.get("labels") or {})},
            "annotations": notes,
            "ownerReferences": [owner_reference(volume, DATA_VOLUME)],
        },
        "spec": {
            "accessModes": wanted.get("accessModes") or ["ReadWriteMany"],
            "volumeMode": wanted.get("volumeMode") or "Block",
            "storageClassName": wanted.get("storageClassName") or default_class,
            "resources": wanted.get("resources") or {"requests": {"storage": "10Gi"}},
        },
    }
