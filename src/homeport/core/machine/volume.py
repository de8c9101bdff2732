"""Which volumes are still attached to a Node and have to leave it before its machine goes. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from homeport.api.meta import Unstructured

_SHOWN = 3


def attached(node: Mapping[str, Any], attachments: Iterable[Unstructured]) -> tuple[set[str], set[str]]:
    """(names that the Node reports, names of PersistentVolumes that VolumeAttachments report)."""
    reported = {str(v["name"]) for v in (node.get("status") or {}).get("volumesAttached") or ()}
    name = node["metadata"]["name"]
    volumes = {
        str(volume)
        for each in attachments
        if (each.get("status") or {}).get("attached") and each["spec"].get("nodeName") == name
        # An inline volume has no PersistentVolume: the attachment itself is what is waited for.
        for volume in [each["spec"]["source"].get("persistentVolumeName") or f"VolumeAttachment {each.name}"]
    }
    return reported, volumes


def claims_of(pods: Iterable[Unstructured]) -> set[str]:
    """The claims of Pods that stay on the Node: deletion does not wait for their volumes."""
    return {
        f"{pod.namespace}/{volume['persistentVolumeClaim']['claimName']}"
        for pod in pods
        for volume in (pod.get("spec") or {}).get("volumes") or ()
        if volume.get("persistentVolumeClaim")
    }


def waiting(reported: set[str], volumes: set[str], persistent: Iterable[Unstructured], staying: set[str]) -> list[str]:
    """What to wait for, named so that people find it: by claim where there is one."""
    found: set[str] = set()
    unknown = set(reported) | set(volumes)
    for volume in persistent:
        names = {volume.name, _csi_name(volume)} & unknown
        if not names:
            continue
        found.add(_label(volume, staying))
        unknown -= names
    return sorted((found | {f"volume {name}" for name in unknown}) - {""})


def explain(names: list[str]) -> str:
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return f"still attached: {', '.join(names[:_SHOWN])}{more}"


def _label(volume: Unstructured, staying: set[str]) -> str:
    claim = volume["spec"].get("claimRef") or {}
    if claim.get("kind", "PersistentVolumeClaim") != "PersistentVolumeClaim" or not claim.get("name"):
        return f"volume {volume.name}"
    key = f"{claim.get('namespace', '')}/{claim['name']}"
    return "" if key in staying else f"claim {key}"


def _csi_name(volume: Unstructured) -> str:
    csi = volume["spec"].get("csi")
    return f"kubernetes.io/csi/{csi['driver']}^{csi['volumeHandle']}" if csi else ""
