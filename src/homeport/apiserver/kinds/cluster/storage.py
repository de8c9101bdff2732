"""PersistentVolume, PersistentVolumeClaim, StorageClass, VolumeAttachment, CSINode, CSIDriver and
CSIStorageCapacity.

Nothing here runs the controllers that keep volumes and claims until nobody uses them. Their finalizers are put on new
objects as usual, and go with the deletion, unless `controlled` says that such controllers run. Of the kinds of volume,
those of single vendors are not checked.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from homeport.apiserver.kinds import check
from homeport.apiserver.kinds.check import IMMUTABLE
from homeport.apiserver.kinds.strategy import Plain, WithStatus
from homeport.apiserver.resource import Json
from homeport.client.errors import Cause
from homeport.machinery.quantity import parse_quantity

CLAIM_PROTECTION = "kubernetes.io/pvc-protection"
VOLUME_PROTECTION = "kubernetes.io/pv-protection"
ATTRIBUTES_PROTECTION = "kubernetes.io/vac-protection"
_MODES = ("ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod")
_POSITIVE = "must be greater than zero"
# Fields of a PersistentVolumeSpec that are not the source of the volume.
_NO_SOURCE = frozenset({
    "accessModes", "capacity", "claimRef", "mountOptions", "nodeAffinity", "persistentVolumeReclaimPolicy",
    "storageClassName", "volumeAttributesClassName", "volumeMode",
})  # fmt: skip


def default_claim(claim: Json) -> None:
    claim.setdefault("spec", {}).setdefault("volumeMode", "Filesystem")
    status = claim["status"] = claim.get("status") or {}
    if not status.get("phase"):
        status["phase"] = "Pending"


def _access_modes(field: str, modes: list[str]) -> Iterator[Cause]:
    for mode in modes:
        if mode not in _MODES:
            yield check.unsupported(field, mode, _MODES)
    if "ReadWriteOncePod" in modes and len(modes) > 1:
        yield check.forbidden(field, "may not use ReadWriteOncePod with other access modes")


def claim_spec(field: str, spec: Json) -> Iterator[Cause]:
    modes = spec.get("accessModes") or []
    if not modes:
        yield check.required(f"{field}.accessModes", "at least 1 access mode is required")
    yield from check.label_selector(f"{field}.selector", spec.get("selector"))
    yield from _access_modes(f"{field}.accessModes", modes)
    size = ((spec.get("resources") or {}).get("requests") or {}).get("storage")
    if size is None:
        yield check.required(f"{field}.resources[storage]")
    elif parse_quantity(size).amount <= 0:
        yield check.invalid(f"{field}.resources[storage]", size, _POSITIVE)
    if spec.get("storageClassName"):
        yield from check.named(f"{field}.storageClassName", spec["storageClassName"], check.dns_subdomain)
    if spec.get("volumeMode") is not None:
        yield from check.one_of(f"{field}.volumeMode", spec["volumeMode"], ("Block", "Filesystem"))


def unprotect(obj: Json, finalizer: str) -> None:
    """What a controller does once nobody uses the object any more."""
    meta = obj["metadata"]
    kept = [name for name in meta.get("finalizers") or () if name != finalizer]
    if kept:
        meta["finalizers"] = kept
    else:
        meta.pop("finalizers", None)


class PersistentVolumeClaim(WithStatus):
    controlled = False  # a controller removes the finalizer

    def default(self, obj: Json) -> None:
        default_claim(obj)

    def prepare_delete(self, obj: Json, now: str) -> None:
        if not self.controlled:
            unprotect(obj, CLAIM_PROTECTION)

    def validate(self, obj: Json, old: Json | None) -> list[Cause]:
        causes = list(claim_spec("spec", obj["spec"]))
        if old is not None:
            causes += self._changed(obj["spec"], old)
        return causes

    def _changed(self, spec: Json, old: Json) -> Iterator[Cause]:
        before = old["spec"]
        bound = (old.get("status") or {}).get("phase") == "Bound"
        allowed = {"resources", "volumeAttributesClassName"} if bound else set()
        if not before.get("volumeName"):
            allowed.add("volumeName")  # binding happens once
        if before.get("storageClassName") is None:
            allowed.add("storageClassName")  # a default class may be chosen later
        if any(spec.get(f) != before.get(f) for f in (spec.keys() | before.keys()) - allowed):
            detail = (
                "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound "
                "claims"
            )
            yield check.forbidden("spec", detail)
        size = ((spec.get("resources") or {}).get("requests") or {}).get("storage")
        was = ((before.get("resources") or {}).get("requests") or {}).get("storage")
        if size is not None and was is not None and parse_quantity(size) < parse_quantity(was):
            field = "spec.resources.requests.storage"
            yield check.forbidden(field, "field can not be less than status.capacity")


class PersistentVolume(WithStatus):
    controlled = False  # a controller removes the finalizer

    def __init__(self, now: Callable[[], str] | None = None) -> None:
        self.now = now

    def begin(self, obj: Json) -> None:
        obj["status"] = {"phase": "Pending"}
        if self.now is not None:
            obj["status"]["lastPhaseTransitionTime"] = self.now()

    def prepare_delete(self, obj: Json, now: str) -> None:
        if not self.controlled:
            unprotect(obj, VOLUME_PROTECTION)

    def default(self, obj: Json) -> None:
        spec = obj["spec"] = obj.get("spec") or {}
        if not spec.get("persistentVolumeReclaimPolicy"):
            spec["persistentVolumeReclaimPolicy"] = "Retain"
        spec.setdefault("volumeMode", "Filesystem")
        if spec.get("hostPath") is not None:
            spec["hostPath"].setdefault("type", "")
        status = obj["status"] = obj.get("status") or {}
        if not status.get("phase"):
            status["phase"] = "Pending"

    def validate(self, obj: Json, old: Json | None) -> list[Cause]:
        spec = obj["spec"]
        causes: list[Cause] = []
        modes: list[str] = spec.get("accessModes") or []
        if not modes:
            causes.append(check.required("spec.accessModes"))
        causes += _access_modes("spec.accessModes", modes)
        causes += self._capacity(spec.get("capacity"))
        policies = ("Delete", "Recycle", "Retain")
        causes += check.one_of("spec.persistentVolumeReclaimPolicy", spec["persistentVolumeReclaimPolicy"], policies)
        causes += self._source(spec)
        if spec.get("storageClassName"):
            causes += check.named("spec.storageClassName", spec["storageClassName"], check.dns_subdomain)
        causes += check.one_of("spec.volumeMode", spec["volumeMode"], ("Block", "Filesystem"))
        if old is not None:
            before = old["spec"]
            if self._sources(spec) != self._sources(before):
                causes.append(
                    check.forbidden(
                        "spec.persistentvolumesource", "spec.persistentvolumesource is immutable after creation"
                    )
                )
            causes += check.immutable("spec.volumeMode", spec.get("volumeMode"), before.get("volumeMode"))
        return causes

    def _capacity(self, capacity: Json | None) -> Iterator[Cause]:
        if not capacity:
            yield check.required("spec.capacity")
        if not capacity or set(capacity) != {"storage"}:
            yield check.unsupported("spec.capacity", capacity or None, ("storage",))
        for key, amount in (capacity or {}).items():
            if parse_quantity(amount).amount <= 0:
                yield check.invalid(f"spec.capacity[{key}]", amount, _POSITIVE)

    def _sources(self, spec: Json) -> dict[str, Any]:
        return {field: value for field, value in spec.items() if field not in _NO_SOURCE}

    def _source(self, spec: Json) -> Iterator[Cause]:
        given = sorted(self._sources(spec))
        if not given:
            yield check.required("spec", "must specify a volume type")
        for field in given[1:]:
            yield check.forbidden(f"spec.{field}", "may not specify more than 1 volume type")
        if given[:1] == ["csi"]:
            for part in ("driver", "volumeHandle"):
                if not spec["csi"].get(part):
                    yield check.required(f"spec.csi.{part}")
        elif given[:1] == ["hostPath"] and not spec["hostPath"].get("path"):
            yield check.required("spec.hostPath.path")
        elif given[:1] == ["nfs"]:
            yield from (check.required(f"spec.nfs.{part}") for part in ("server", "path") if not spec["nfs"].get(part))


class StorageClass(Plain):
    def default(self, obj: Json) -> None:
        obj.setdefault("reclaimPolicy", "Delete")
        obj.setdefault("volumeBindingMode", "Immediate")

    def validate(self, obj: Json, old: Json | None) -> list[Cause]:
        causes: list[Cause] = []
        provisioner = obj.get("provisioner", "")
        if provisioner:
            causes += check.named("provisioner", provisioner.lower(), check.label_key)
        else:
            causes.append(check.required("provisioner"))
        for key in obj.get("parameters") or ():
            if not key:
                causes.append(check.invalid("parameters", key, "field can not be empty."))
        causes += check.one_of("reclaimPolicy", obj["reclaimPolicy"], ("Delete", "Retain"))
        causes += check.one_of("volumeBindingMode", obj["volumeBindingMode"], ("Immediate", "WaitForFirstConsumer"))
        if old is not None:
            for field in ("provisioner", "parameters", "reclaimPolicy", "volumeBindingMode"):
                if (obj.get(field) or None) != (old.get(field) or None):
                    causes.append(check.invalid(field, None, IMMUTABLE))
        return causes


class VolumeAttributesClass(Plain):
    def prepare_delete(self, obj: Json, now: str) -> None:
        unprotect(obj, ATTRIBUTES_PROTECTION)

    def validate(self, obj: Json, old: Json | None) -> list[Cause]:
        causes = [
            check.forbidden(field, f"updates to {field} are forbidden.")
            for field in ("driverName", "parameters")
            if old is not None and (obj.get(field) or None) != (old.get(field) or None)
        ]
        driver, parameters = obj.get("driverName", ""), obj.get("parameters") or {}
        if driver:
            causes += check.named("driverName", driver.lower(), check.label_key)
        else:
            causes.append(check.required("driverName"))
        if not parameters:
            causes.append(check.required("parameters", "must contain at least one key/value pair"))
        causes += [check.invalid("parameters", key, "field can not be empty.") for key in parameters if not key]
        return causes


class VolumeAttachment(WithStatus):
    def validate(self, obj: Json, old: Json | None) -> list[Cause]:
        spec = obj["spec"]
        causes: list[Cause] = []
        source = spec.get("source") or {}
        if bool(source.get("inlineVolumeSpec")) == bool(source.get("persistentVolumeName")):
            detail = "must specify exactly one of inlineVolumeSpec and persistentVolumeName"
            causes.append(check.required("spec.source", detail))
        causes += check.named("spec.nodeName", spec.get("nodeName", ""), check.dns_subdomain)
        if spec.get("attacher"):
            causes += check.named("spec.attacher", spec["attacher"].lower(), check.dns_subdomain)
        else:
            causes.append(check.required("spec.attacher"))
        if old is not None:
            causes += check.immutable("spec", spec, old["spec"])
        return causes


class CsiNode(Plain):
    def validate(self, obj: Json, old: Json | None) -> list[Cause]:
        causes: list[Cause] = []
        names: set[str] = set()
        for i, driver in enumerate((obj.get("spec") or {}).get("drivers") or ()):
            field, name = f"spec.drivers[{i}]", driver.get("name", "")
            if not name:
                causes.append(check.required(f"{field}.name"))
            if not driver.get("nodeID"):
                causes.append(check.required(f"{field}.nodeID"))
            if name in names:
                causes.append(check.duplicate(f"{field}.name", name))
            names.add(name)
        return causes


class CsiStorageCapacity(Plain):
    def validate(self, obj: Json, old: Json | None) -> list[Cause]:
        causes = list(check.label_selector("nodeTopology", obj.get("nodeTopology")))
        causes += check.named("storageClassName", obj.get("storageClassName", ""))
        amount = obj.get("capacity")  # nobody looks at maximumVolumeSize
        if amount is not None and parse_quantity(str(amount)).amount < 0:
            causes.append(check.invalid("capacity", str(amount), "must be greater than or equal to 0"))
        if old is not None:
            for field in ("nodeTopology", "storageClassName"):
                causes += check.immutable(field, obj.get(field), old.get(field))
        return causes


class CsiDriver(Plain):
    def default(self, obj: Json) -> None:
        spec = obj["spec"] = obj.get("spec") or {}
        for field, value in (
            ("attachRequired", True),
            ("podInfoOnMount", False),
            ("storageCapacity", False),
            ("fsGroupPolicy", "ReadWriteOnceWithFSType"),
            ("requiresRepublish", False),
            ("seLinuxMount", False),
            ("preventPodSchedulingIfMissing", False),
        ):
            spec.setdefault(field, value)
        if not spec.get("volumeLifecycleModes"):
            spec["volumeLifecycleModes"] = ["Persistent"]

    def validate(self, obj: Json, old: Json | None) -> list[Cause]:
        spec = obj["spec"]
        policies = ("File", "None", "ReadWriteOnceWithFSType")
        causes = list(check.one_of("spec.fsGroupPolicy", spec["fsGroupPolicy"], policies))
        for mode in spec["volumeLifecycleModes"]:
            causes += check.one_of("spec.volumeLifecycleModes", mode, ("Persistent", "Ephemeral"))
        if old is not None:
            for field in ("attachRequired", "volumeLifecycleModes"):
                causes += check.immutable(f"spec.{field}", spec[field], old["spec"].get(field))
        return causes
