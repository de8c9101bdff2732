"""Volumes of Pods are attached to their nodes and detached when no Pod there uses them any more, as CSI does it.

Where a stand-in of the driver runs, it attaches and detaches; volumes of other drivers are attached at once.
"""

from __future__ import annotations

import hashlib

from homeport.sim.machine.workload.kind import ATTACHMENT, CLAIM, VOLUME, Json
from homeport.sim.machine.workload.standin.csi.driver import served_drivers
from homeport.sim.machine.workload.storage.claim import claim_names, is_bound
from homeport.sim.machine.workload.view import View, finished, leaving

_FINALIZER = "external-attacher/"


async def settle_volumes(view: View) -> None:
    attachments = view.all(ATTACHMENT)
    volumes = {each["metadata"]["name"]: each["spec"] for each in view.all(VOLUME) if each["spec"].get("csi")}
    drivers = served_drivers(view) if volumes else frozenset()
    used = _used(view) if volumes else set()
    known = {(each["spec"]["nodeName"], each["spec"]["source"].get("persistentVolumeName")) for each in attachments}
    for node, volume in sorted(used - known):
        if volume in volumes and node in view.nodes and view.alive(node):
            driver = volumes[volume]["csi"]["driver"]
            await _attach(view, node, volume, driver, attached=driver not in drivers)
    for attachment in attachments:
        await _settle(view, attachment, volumes, used, drivers)


def awaits_volumes(view: View, pod: Json) -> bool:
    """Whether a volume of a Pod that has a node is not bound or not attached there yet."""
    names = set(claim_names(pod))
    if not names:
        return False
    namespace, node = pod["metadata"]["namespace"], pod["spec"]["nodeName"]
    claims = {each["metadata"]["name"]: each for each in view.all(CLAIM) if each["metadata"]["namespace"] == namespace}
    if any(name not in claims or not is_bound(claims[name]) for name in names):
        return True
    wanted = {claims[name]["spec"].get("volumeName") for name in names}
    csi = {each["metadata"]["name"] for each in view.all(VOLUME) if each["spec"].get("csi")}
    attached = {
        each["spec"]["source"].get("persistentVolumeName")
        for each in view.all(ATTACHMENT)
        if each["spec"]["nodeName"] == node and (each.get("status") or {}).get("attached")
    }
    return not (wanted & csi) <= attached


def _used(view: View) -> set[tuple[str, str]]:
    """(node, volume), as far as claims are bound."""
    bound = {
        (each["metadata"]["namespace"], each["metadata"]["name"]): str(each["spec"].get("volumeName") or "")
        for each in view.all(CLAIM)
    }
    found = set()
    for pod in view.pods:
        node = pod["spec"].get("nodeName")
        for volume in (pod["spec"].get("volumes") or ()) if node and not finished(pod) else ():
            claim = (volume.get("persistentVolumeClaim") or {}).get("claimName")
            name = bound.get((pod["metadata"]["namespace"], claim), "") if claim else ""
            if name:
                found.add((str(node), name))
    return found


async def _attach(view: View, node: str, volume: str, driver: str, *, attached: bool) -> None:
    name = "csi-" + hashlib.sha256(f"{volume}{driver}{node}".encode()).hexdigest()
    meta = {"name": name, "finalizers": [_FINALIZER + driver.replace(".", "-")]}
    spec = {"attacher": driver, "nodeName": node, "source": {"persistentVolumeName": volume}}
    await view.create({"metadata": meta, "spec": spec, "status": {"attached": attached}}, ATTACHMENT)


async def _settle(
    view: View,
    attachment: Json,
    volumes: dict[str, Json],
    used: set[tuple[str, str]],
    drivers: frozenset[str],
) -> None:
    spec = attachment["spec"]
    served = spec["attacher"] in drivers
    node, volume = spec["nodeName"], spec["source"].get("persistentVolumeName")
    if leaving(attachment):
        if served:
            return
        held = attachment["metadata"].get("finalizers") or []
        kept = [each for each in held if not each.startswith(_FINALIZER)]  # others may still have to do their part
        if kept != held:
            await view.patch(ATTACHMENT, attachment, {"metadata": {"finalizers": kept or None}})
        return
    # An unresponsive node may still have it mounted: it is attached elsewhere only after the node is gone.
    free = node not in view.nodes or view.alive(node)
    if volume in volumes and (node, volume) not in used and free:
        await view.delete(ATTACHMENT, attachment)
    elif volume in volumes and not served and not (attachment.get("status") or {}).get("attached"):
        await view.set_status(ATTACHMENT, attachment, {"attached": True})
