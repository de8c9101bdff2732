"""The JSON types of the parts of a VirtualMachine that Homeport reads or adds to.

The schema of KubevirtMachine takes any VirtualMachine, so that nothing else makes sure of them. Parts that are not
listed go to the infrastructure cluster as they are, and are checked there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from homeport.client.errors import Cause

# An object with these fields, a list of such objects, or a type. Fields that are not listed may be anything.
Shape = Mapping[str, Any] | list[Any] | type

_OBJECT: Final[Shape] = {}
_META: Final[dict[str, Any]] = {"labels": _OBJECT, "annotations": _OBJECT, "namespace": str}
_TERMS: Final[Shape] = {"nodeSelectorTerms": [{"matchExpressions": [_OBJECT], "matchFields": [_OBJECT]}]}
_AFFINITY: Final[Shape] = {
    "nodeAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": _TERMS,
        "preferredDuringSchedulingIgnoredDuringExecution": [_OBJECT],
    },
    "podAffinity": _OBJECT,
    "podAntiAffinity": _OBJECT,
}
_CLOUD_INIT: Final[Shape] = {"secretRef": _OBJECT, "networkDataSecretRef": _OBJECT}
_VOLUME: Final[Shape] = {
    "name": str,
    "persistentVolumeClaim": {"claimName": str},
    "dataVolume": {"name": str},
    "containerDisk": _OBJECT,
    "cloudInitNoCloud": _CLOUD_INIT,
    "cloudInitConfigDrive": _CLOUD_INIT,
}
_DOMAIN: Final[Shape] = {
    "cpu": _OBJECT,
    "memory": _OBJECT,
    "resources": {"requests": _OBJECT, "limits": _OBJECT},
    "devices": {"disks": [{"name": str}], "interfaces": [{"name": str, "macAddress": str}]},
}
_INNER: Final[Shape] = {
    "domain": _DOMAIN,
    "networks": [{"name": str, "multus": {"networkName": str}, "pod": _OBJECT}],
    "volumes": [_VOLUME],
    "affinity": _AFFINITY,
    "nodeSelector": _OBJECT,
    "dnsConfig": {"nameservers": [str]},
    "evictionStrategy": str,
    "hostname": str,
}
_CLAIM: Final[Shape] = {"resources": {"requests": _OBJECT}, "storageClassName": str}
_DATA_VOLUME: Final[Shape] = {
    "metadata": {**_META, "name": str},
    "spec": {"source": _OBJECT, "storage": _CLAIM, "pvc": _CLAIM},
}
VIRTUAL_MACHINE: Final[Shape] = {
    "metadata": _META,
    "spec": {
        "running": bool,
        "runStrategy": str,
        "instancetype": {"name": str},
        "dataVolumeTemplates": [_DATA_VOLUME],
        "template": {"metadata": _META, "spec": _INNER},
    },
}
SERVICE_TEMPLATE: Final[Shape] = {"metadata": _META}
_NAMES: Final = {str: "a string", bool: "true or false"}


def wrong(value: Any, shape: Shape, path: str) -> Iterator[Cause]:
    """What is not of its type. Fields that are null count as absent."""
    if value is None:
        return
    if isinstance(shape, type):
        if not isinstance(value, shape):
            yield _cause(value, _NAMES[shape], path)
    elif isinstance(shape, list):
        if not isinstance(value, list):
            yield _cause(value, "a list", path)
            return
        for number, each in enumerate(value):
            yield from wrong({} if each is None else each, shape[0], f"{path}[{number}]")
    elif not isinstance(value, dict):
        yield _cause(value, "an object", path)
    else:
        for name, inner in shape.items():
            yield from wrong(value.get(name), inner, f"{path}.{name}")


def _cause(value: Any, expected: str, path: str) -> Cause:
    shown = "a list" if isinstance(value, list) else "an object" if isinstance(value, dict) else repr(value)
    return Cause("FieldValueTypeInvalid", f"Invalid value: must be {expected}, not {shown}", path)
