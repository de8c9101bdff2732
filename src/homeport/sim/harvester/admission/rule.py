"""Which VirtualMachines Harvester refuses."""

from __future__ import annotations

import orjson

from homeport.apiserver.auth.rbac.rbac import Rbac
from homeport.apiserver.verb.admission import Attributes
from homeport.machinery.quantity import Quantity, QuantityError, parse_quantity
from homeport.sim.harvester.admission.access import image_of_class, may_read
from homeport.sim.harvester.admission.machine import BY_MAC, RESERVED_MEMORY
from homeport.sim.harvester.admission.refusal import failed, invalid
from homeport.sim.harvester.controller.image import IMAGE_ID
from homeport.sim.harvester.controller.template import CLAIM_TEMPLATES, claim_templates
from homeport.sim.harvester.core import Core
from homeport.sim.harvester.kind import CLAIM, NAD, STORAGE_CLASS, VM, Json
from homeport.sim.harvester.manifest import NETWORK_GROUP
from homeport.sim.harvester.object import key_of, labels, leaving, notes

MAINTENANCE = "harvesterhci.io/maintain-mode-strategy"
_STRATEGIES = (
    "Migrate",
    "ShutdownAndRestartAfterEnable",
    "ShutdownAndRestartAfterDisable",
    "Shutdown",
)
_FIELD = f"metadata.annotations[{CLAIM_TEMPLATES}]"
_LONGHORN = "driver.longhorn.io"


class MachineRules:
    def __init__(self, core: Core, rbac: Rbac) -> None:
        self._core = core
        self._rbac = rbac

    def check(self, attributes: Attributes) -> None:
        vm, old = attributes.object, attributes.old
        if vm is None or leaving(vm) or "template" not in vm.get("spec", {}):
            return
        _check_annotation(vm)
        self._check_golden(vm)
        self._check_occupied(vm)
        _check_grace(vm)
        _check_memory(vm)
        _check_reserved(vm)
        if old is None:
            self._check_templates(attributes, claim_templates(vm))
        elif notes(vm).get(CLAIM_TEMPLATES) != notes(old).get(CLAIM_TEMPLATES):
            self._check_changed(attributes, old, vm)
        _check_maintenance(vm, old)
        if old is None or _interfaces(old) != _interfaces(vm):
            self._check_macs(vm)

    # -- volumes -------------------------------------------------------------------------------------------------------

    def _check_templates(self, attributes: Attributes, templates: list[Json]) -> None:
        for template in templates:
            name = template["spec"].get("storageClassName") if isinstance(template.get("spec"), dict) else None
            if not name:
                continue
            image = image_of_class(self._core, name)
            if image is None:
                raise failed(f'failed to get storage class {name}: storageclasses.storage.k8s.io "{name}" not found')
            if not image:
                continue
            asked = (template["metadata"].get("annotations") or {}).get(IMAGE_ID, "")
            if asked and asked != image:
                text = (
                    f'imageId "{asked}" in volume template does not match backing image of storage class "{name}" '
                    f'(expected "{image}")'
                )
                raise invalid(text, _FIELD)
            user = attributes.ctx.user
            if not may_read(self._rbac, user, image):
                raise invalid(f'user "{user.name}" is not allowed to access image {image}', _FIELD)

    def _check_changed(self, attributes: Attributes, old: Json, vm: Json) -> None:
        before = {each["metadata"]["name"]: each for each in claim_templates(old)}
        changed: list[str] = []
        added: list[Json] = []
        for template in claim_templates(vm):
            name = template["metadata"]["name"]
            known = before.get(name)
            if known is None:
                added.append(template)
                continue
            if _storage(template) < _storage(known):
                text = f"{name} PVC requests storage can't be less than previous value"
                raise invalid(text, f"metadata.annotations.{CLAIM_TEMPLATES}")
            after = template["spec"].get("storageClassName")
            if after != known["spec"].get("storageClassName"):
                changed.append(f" new name {after} in volume {name};")
        self._check_templates(attributes, added)
        if changed:
            text = f"storage class names for the volumes in the {CLAIM_TEMPLATES} annotation cannot be changed;"
            raise failed(text + "".join(changed))

    def _check_golden(self, vm: Json) -> None:
        for claim in self._claims(vm):
            if notes(claim).get("harvesterhci.io/goldenImage") == "true":
                text = f"PVC {key_of(claim)} is a golden image, it can't be used as a volume in VM"
                raise invalid(text, "spec.templates.spec.volumes")

    def _check_occupied(self, vm: Json) -> None:
        """A volume of Longhorn, or one that a single node can use, is of one VM."""
        for claim in self._claims(vm):
            storage_class = self._core.mirror.get(STORAGE_CLASS, str(claim["spec"].get("storageClassName") or ""))
            shared = "ReadWriteMany" in claim["spec"].get("accessModes", ())
            if shared and storage_class is not None and storage_class["provisioner"] != _LONGHORN:
                continue
            others = [
                each
                for each in self._core.mirror.by(VM, "claim", str(key_of(claim)))
                if each["metadata"]["name"] != vm["metadata"]["name"]
            ]
            if others:
                text = f"PVC {key_of(claim)} is already used by other VM, please use a shareable RWX volume."
                raise invalid(text, "spec.templates.spec.volumes")

    def _claims(self, vm: Json) -> list[Json]:
        found = []
        for volume in vm["spec"]["template"]["spec"].get("volumes") or ():
            name = (volume.get("persistentVolumeClaim") or {}).get("claimName")
            claim = self._core.mirror.get(CLAIM, f"{vm['metadata'].get('namespace', '')}/{name}") if name else None
            if claim is not None:
                found.append(claim)
        return found

    # -- networks ------------------------------------------------------------------------------------------------------

    def _check_macs(self, vm: Json) -> None:
        mine = self._macs(vm)
        for mac, network in mine.items():
            for other in self._core.mirror.by(VM, BY_MAC, mac):
                if key_of(other) != key_of(vm) and self._macs(other).get(mac) == network:
                    name = vm["metadata"]["name"]
                    raise failed(f"duplicate mac address present for vm {name} for cluster network {network}")

    def _macs(self, vm: Json) -> dict[str, str]:
        """The cluster network of each MAC."""
        networks = {}
        for network in vm["spec"]["template"]["spec"].get("networks") or ():
            named = (network.get("multus") or {}).get("networkName", "")
            if named:
                found = self._core.mirror.get(NAD, named if "/" in named else f"default/{named}")
                networks[network["name"]] = labels(found).get(f"{NETWORK_GROUP}/clusternetwork", "") if found else ""
        return {mac: networks.get(each["name"], "") for each in _interfaces(vm) if (mac := each.get("macAddress"))}


def macs(vm: Json) -> list[str]:
    return [each["macAddress"] for each in _interfaces(vm) if each.get("macAddress")]


def _interfaces(vm: Json) -> list[Json]:
    domain = vm["spec"]["template"]["spec"].get("domain") or {}
    return (domain.get("devices") or {}).get("interfaces") or []


def _check_annotation(vm: Json) -> None:
    text = notes(vm).get(CLAIM_TEMPLATES, "")
    if not text:
        return
    why = ""
    try:
        found = orjson.loads(text)
    except orjson.JSONDecodeError as error:
        why = str(error)
    else:
        if not isinstance(found, list) or not all(isinstance(each, dict) for each in found):
            why = "json: cannot unmarshal into Go value of type []util.VolumeClaimTemplateEntry"
        elif any(not (each.get("metadata") or {}).get("name") for each in found):
            why = "PVC name is required"
    if why:
        raise invalid(f"the volumeClaimTemplates annotaion is invalid: {why}", "metadata.annotations")


def _storage(template: Json) -> Quantity:
    return parse_quantity(str(template["spec"]["resources"]["requests"]["storage"]))


def _check_grace(vm: Json) -> None:
    seconds = vm["spec"]["template"]["spec"].get("terminationGracePeriodSeconds")
    if seconds is not None and seconds < 0:
        raise invalid("Termination grace period can't be negative", "spec.Template.Spec.TerminationGracePeriodSeconds")


def _check_memory(vm: Json) -> None:
    domain = vm["spec"]["template"]["spec"]["domain"]
    guest = (domain.get("memory") or {}).get("guest")
    limit = ((domain.get("resources") or {}).get("limits") or {}).get("memory")
    if not guest and not limit:
        raise invalid("either memory.guest or resources.limits.memory must be set", "spec.template.spec.domain")


def _check_reserved(vm: Json) -> None:
    limit = ((vm["spec"]["template"]["spec"]["domain"].get("resources") or {}).get("limits") or {}).get("memory")
    text = notes(vm).get(RESERVED_MEMORY)
    if not limit or not text:
        return
    field = f"metadata.annotations[{RESERVED_MEMORY}]"
    try:
        reserved = parse_quantity(text)
    except QuantityError as error:
        raise invalid(str(error), field) from None
    if reserved >= parse_quantity(str(limit)):
        raise invalid("reservedMemory cannot be equal or greater than limits.memory", field)
    if reserved.amount < 0:
        raise invalid("reservedMemory cannot be less than 0", field)


def _check_maintenance(vm: Json, old: Json | None) -> None:
    strategy = labels(vm).get(MAINTENANCE)
    if strategy is None or strategy in _STRATEGIES or (old is not None and labels(old).get(MAINTENANCE) == strategy):
        return
    raise invalid(f"invalid maintenance mode strategy: {strategy}", f"metadata.labels[{MAINTENANCE}]")
