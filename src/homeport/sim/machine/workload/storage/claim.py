"""PersistentVolumeClaims and PersistentVolumes: bound to each other, released, and kept while Pods use them.

Volumes for claims are made by CSI drivers: a claim of a class waits until the class's driver has made one.
"""

from __future__ import annotations

from collections.abc import Mapping

from homeport.api.meta import Resource
from homeport.machinery.quantity import parse_quantity
from homeport.sim.machine.workload.kind import CLAIM, STORAGE_CLASS, VOLUME, Json
from homeport.sim.machine.workload.view import View, finished, leaving, matches

SELECTED_NODE = "volume.kubernetes.io/selected-node"
PROVISIONER = "volume.kubernetes.io/storage-provisioner"
_CLAIM_FINALIZER = "kubernetes.io/pvc-protection"
_VOLUME_FINALIZER = "kubernetes.io/pv-protection"
_BOUND = {"pv.kubernetes.io/bind-completed": "yes", "pv.kubernetes.io/bound-by-controller": "yes"}


async def settle_claims(view: View) -> None:
    claims, volumes = view.all(CLAIM), {each["metadata"]["name"]: each for each in view.all(VOLUME)}
    if not claims and not volumes:
        return
    used = {(pod["metadata"]["namespace"], name) for pod in view.pods if not finished(pod) for name in claim_names(pod)}
    for claim in claims:
        if leaving(claim):
            if (claim["metadata"]["namespace"], claim["metadata"]["name"]) not in used:
                await _drop_finalizer(view, claim, _CLAIM_FINALIZER, CLAIM)
        elif claim["spec"].get("volumeName"):
            await _complete(view, claim, volumes.get(claim["spec"]["volumeName"]))
        else:
            await _find_volume(view, claim, volumes)
    known = {each["metadata"]["uid"] for each in claims}
    for volume in volumes.values():
        await _settle_volume(view, volume, known)


def claim_names(pod: Json) -> list[str]:
    volumes = pod["spec"].get("volumes") or ()
    return [each["persistentVolumeClaim"]["claimName"] for each in volumes if each.get("persistentVolumeClaim")]


def storage_class(view: View, claim: Json) -> Json | None:
    name = claim["spec"].get("storageClassName")
    return next((each for each in view.all(STORAGE_CLASS) if each["metadata"]["name"] == name), None) if name else None


def waits_for_consumer(view: View, claim: Json) -> bool:
    """Whether a volume is made only once it is known where it is used."""
    found = storage_class(view, claim)
    return found is not None and found.get("volumeBindingMode") == "WaitForFirstConsumer"


def is_bound(claim: Json) -> bool:
    return (claim.get("status") or {}).get("phase") == "Bound"


async def _complete(view: View, claim: Json, volume: Json | None) -> None:
    """Both sides of a claim that names its volume."""
    if volume is None:
        await view.set_status(CLAIM, claim, {"phase": "Lost" if is_bound(claim) else "Pending"})
        return
    reference = volume["spec"].get("claimRef")
    if reference is None or (not reference.get("uid") and _refers(reference, claim)):
        await view.patch(VOLUME, volume, {"spec": {"claimRef": _reference(claim)}})
    elif reference.get("uid") != claim["metadata"]["uid"]:
        await view.set_status(CLAIM, claim, {"phase": "Pending"})
        return
    if not is_bound(claim):
        await view.patch(CLAIM, claim, {"metadata": {"annotations": _BOUND}})
        capacity = {"storage": (volume["spec"].get("capacity") or {}).get("storage", "0")}
        modes = volume["spec"].get("accessModes") or []
        await view.set_status(CLAIM, claim, {"phase": "Bound", "accessModes": modes, "capacity": capacity})
    await view.set_status(VOLUME, volume, {"phase": "Bound"})


async def _find_volume(view: View, claim: Json, volumes: Mapping[str, Json]) -> None:
    ready = [each for each in volumes.values() if _fits(each, claim)]
    if ready:
        smallest = min(ready, key=lambda each: parse_quantity(str(each["spec"]["capacity"]["storage"])).amount)
        await view.patch(VOLUME, smallest, {"spec": {"claimRef": _reference(claim)}})
        await view.patch(CLAIM, claim, {"spec": {"volumeName": smallest["metadata"]["name"]}})
        return
    await view.set_status(CLAIM, claim, {"phase": "Pending"})
    found = storage_class(view, claim)
    notes = claim["metadata"].get("annotations") or {}
    if found is None or (waits_for_consumer(view, claim) and SELECTED_NODE not in notes):
        return
    if notes.get(PROVISIONER) != found["provisioner"]:
        await view.patch(CLAIM, claim, {"metadata": {"annotations": {PROVISIONER: found["provisioner"]}}})


def _fits(volume: Json, claim: Json) -> bool:
    spec, wanted = volume["spec"], claim["spec"]
    if leaving(volume) or (volume.get("status") or {}).get("phase") in ("Bound", "Released", "Failed"):
        return False
    reference = spec.get("claimRef")
    if reference is not None:
        return _refers(reference, claim) and reference.get("uid") in (None, "", claim["metadata"]["uid"])
    asked = ((wanted.get("resources") or {}).get("requests") or {}).get("storage", "0")
    has = (spec.get("capacity") or {}).get("storage", "0")
    selector = wanted.get("selector")
    return (
        (spec.get("storageClassName") or "") == (wanted.get("storageClassName") or "")
        and set(wanted.get("accessModes") or ()) <= set(spec.get("accessModes") or ())
        and (spec.get("volumeMode") or "Filesystem") == (wanted.get("volumeMode") or "Filesystem")
        and parse_quantity(str(asked)) <= parse_quantity(str(has))
        and (not selector or matches(selector, volume["metadata"].get("labels")))
    )


def _refers(reference: Json, claim: Json) -> bool:
    meta = claim["metadata"]
    return (reference.get("namespace"), reference.get("name")) == (meta["namespace"], meta["name"])


def _reference(claim: Json) -> Json:
    meta = claim["metadata"]
    names = {"namespace": meta["namespace"], "name": meta["name"], "uid": meta["uid"]}
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", **names}


async def _settle_volume(view: View, volume: Json, claims: set[str]) -> None:
    uid = (volume["spec"].get("claimRef") or {}).get("uid")
    if leaving(volume):
        if uid not in claims:
            await _drop_finalizer(view, volume, _VOLUME_FINALIZER, VOLUME)
    elif not uid:
        await view.set_status(VOLUME, volume, {"phase": "Available"})
    elif uid not in claims and (volume.get("status") or {}).get("phase") != "Failed":
        await view.set_status(VOLUME, volume, {"phase": "Released"})


async def _drop_finalizer(view: View, obj: Json, finalizer: str, kind: Resource) -> None:
    held = obj["metadata"].get("finalizers") or []
    if finalizer in held:
        kept = [each for each in held if each != finalizer]
        await view.patch(kind, obj, {"metadata": {"finalizers": kept or None}})
