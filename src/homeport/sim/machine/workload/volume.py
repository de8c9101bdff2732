"""Volumes of Pods are attached to their nodes and detached when no Pod there uses them any more, as CSI does it."""

from __future__ import annotations

import hashlib

from homeport.sim.machine.workload.kind import ATTACHMENT, CLAIM, VOLUME, Json
from homeport.sim.machine.workload.view import View, finished, leaving

_FINALIZER = "external-attacher/"


async def settle_volumes(view: View) -> None:
    attachments = view.all(ATTACHMENT)
    volumes = {each["metadata"]["name"]: each["spec"] for each in view.all(VOLUME) if each["spec"].get("csi")}
    used = _used(view) if volumes else set()
    known = {(each["spec"]["nodeName"], each["spec"]["source"].get("persistentVolumeName")) for each in attachments}
    for node, volume in sorted(used - known):
        if volume in volumes and node in view.nodes and view.alive(node):
            await _attach(view, node, volume, volumes[volume]["csi"]["driver"])
    for attachment in attachments:
        await _settle(view, attachment, volumes, used)


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


async def _attach(view: View, node: str, volume: str, driver: str) -> None:
    name = "csi-" + hashlib.sha256(f"{volume}{driver}{node}".encode()).hexdigest()
    meta = {"name": name, "finalizers": [_FINALIZER + driver.replace(".", "-")]}
    spec = {"attacher": driver, "nodeName": node, "source": {"persistentVolumeName": volume}}
    await view.create({"metadata": meta, "spec": spec, "status": {"attached": True}}, ATTACHMENT)


async def _settle(view: View, attachment: Json, volumes: dict[str, Json], used: set[tuple[str, str]]) -> None:
    spec = attachment["spec"]
    node, volume = spec["nodeName"], spec["source"].get("persistentVolumeName")
    if leaving(attachment):
        held = attachment["metadata"].get("finalizers") or []
        kept = [each for each in held if not each.startswith(_FINALIZER)]  # others may still have to do their part
        if kept != held:
            await view.patch(ATTACHMENT, attachment, {"metadata": {"finalizers": kept or None}})
        return
    # An unresponsive node may still have it mounted: it is attached elsewhere only after the node is gone.
    free = node not in view.nodes or view.alive(node)
    if volume in volumes and (node, volume) not in used and free:
        await view.delete(ATTACHMENT, attachment)
    elif volume in volumes and not (attachment.get("status") or {}).get("attached"):
        await view.set_status(ATTACHMENT, attachment, {"attached": True})
