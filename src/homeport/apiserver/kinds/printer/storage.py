"""Rows of volumes, claims and the drivers behind them."""

from __future__ import annotations

from datetime import datetime

from homeport.apiserver.kinds.printer.text import UNSET, Cell, age_of, count, name_of, part, text
from homeport.apiserver.resource import Json

_MODES = {"ReadWriteOnce": "RWO", "ReadOnlyMany": "ROX", "ReadWriteMany": "RWX", "ReadWriteOncePod": "RWOP"}
_OLD_CLASS = "volume.beta.kubernetes.io/storage-class"
_DEFAULT_CLASS = ("storageclass.kubernetes.io/is-default-class", "storageclass.beta.kubernetes.io/is-default-class")


def _modes(found: list[str] | None) -> str:
    return ",".join(short for mode, short in _MODES.items() if mode in (found or ()))


def _phase(obj: Json) -> str:
    return "Terminating" if part(obj, "metadata", "deletionTimestamp") else text(obj, "status", "phase")


def _class(obj: Json) -> str:
    return text(obj, "metadata", "annotations", _OLD_CLASS) or text(obj, "spec", "storageClassName")


def persistent_volume(obj: Json, now: datetime) -> list[Cell]:
    claim = part(obj, "spec", "claimRef")
    return [
        name_of(obj),
        text(obj, "spec", "capacity", "storage"),
        _modes(part(obj, "spec", "accessModes")),
        text(obj, "spec", "persistentVolumeReclaimPolicy"),
        _phase(obj),
        f"{claim.get('namespace', '')}/{claim.get('name', '')}" if claim else "",
        _class(obj),
        text(obj, "spec", "volumeAttributesClassName", default=UNSET),
        text(obj, "status", "reason"),
        age_of(obj, now),
        text(obj, "spec", "volumeMode", default=UNSET),
    ]


def persistent_volume_claim(obj: Json, now: datetime) -> list[Cell]:
    bound = text(obj, "spec", "volumeName")
    return [
        name_of(obj),
        _phase(obj),
        bound,
        text(obj, "status", "capacity", "storage") if bound else "",
        _modes(part(obj, "status", "accessModes")) if bound else "",
        _class(obj),
        text(obj, "spec", "volumeAttributesClassName", default=UNSET),
        age_of(obj, now),
        text(obj, "spec", "volumeMode", default=UNSET),
    ]


def storage_class(obj: Json, now: datetime) -> list[Cell]:
    annotations = part(obj, "metadata", "annotations") or {}
    default = any(annotations.get(key) == "true" for key in _DEFAULT_CLASS)
    return [
        f"{name_of(obj)} (default)" if default else name_of(obj),
        text(obj, "provisioner"),
        text(obj, "reclaimPolicy", default="Delete"),
        text(obj, "volumeBindingMode", default="Immediate"),
        bool(obj.get("allowVolumeExpansion")),
        age_of(obj, now),
    ]


def volume_attachment(obj: Json, now: datetime) -> list[Cell]:
    return [
        name_of(obj),
        text(obj, "spec", "attacher"),
        text(obj, "spec", "source", "persistentVolumeName"),
        text(obj, "spec", "nodeName"),
        bool(part(obj, "status", "attached")),
        age_of(obj, now),
    ]


def csi_node(obj: Json, now: datetime) -> list[Cell]:
    return [name_of(obj), count(obj, "spec", "drivers"), age_of(obj, now)]


def csi_driver(obj: Json, now: datetime) -> list[Cell]:
    audiences = [request.get("audience", "") for request in part(obj, "spec", "tokenRequests") or ()]
    attach = part(obj, "spec", "attachRequired")
    return [
        name_of(obj),
        True if attach is None else bool(attach),
        bool(part(obj, "spec", "podInfoOnMount")),
        bool(part(obj, "spec", "storageCapacity")),
        ",".join(audiences) if audiences else UNSET,
        bool(part(obj, "spec", "requiresRepublish")),
        ",".join(part(obj, "spec", "volumeLifecycleModes") or ()),
        age_of(obj, now),
    ]


def volume_attributes_class(obj: Json, now: datetime) -> list[Cell]:
    return [name_of(obj), text(obj, "driverName"), age_of(obj, now)]
