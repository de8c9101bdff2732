"""Which VirtualMachines KubeVirt itself refuses, with or without Harvester."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator

from homeport.apiserver.verb.admission import Attributes
from homeport.client.errors import Cause, Invalid
from homeport.sim.harvester.kind import Json
from homeport.sim.harvester.object import leaving

_DENIED = 'admission webhook "virtualmachine-validator.kubevirt.io" denied the request: '
_STRATEGIES = ("Halted", "Manual", "Always", "RerunOnFailure", "Once")
_MOST_BYTES = 2048  # of cloud-init data in the object itself
_SPEC = "spec.template.spec"


def check_machine(attributes: Attributes) -> None:
    vm = attributes.object
    if vm is None or leaving(vm):
        return
    causes = tuple(_causes(vm["spec"]))
    if causes:
        raise Invalid(_DENIED + ", ".join(each.message for each in causes), causes=causes)


def _causes(spec: Json) -> Iterator[Cause]:
    yield from _strategy(spec)
    inner = spec["template"]["spec"]
    yield from _disks(inner)
    yield from _networks(inner)
    for number, volume in enumerate(inner.get("volumes") or ()):
        for kind in ("cloudInitNoCloud", "cloudInitConfigDrive"):
            if kind in volume:
                yield from _cloud_init(f"{_SPEC}.volumes[{number}].{kind}", volume[kind])


def _invalid(message: str, field: str) -> Cause:
    return Cause("FieldValueInvalid", message, field)


def _strategy(spec: Json) -> Iterator[Cause]:
    strategy = spec.get("runStrategy")
    if strategy is not None and "running" in spec:
        text = "Note that Running is deprecated, please use RunStrategy instead"
        yield _invalid(f"Running and RunStrategy are mutually exclusive. {text}", "spec.running")
    if strategy is None and "running" not in spec:
        yield _invalid("RunStrategy must be specified", "spec.running")
    if strategy is not None and strategy not in _STRATEGIES:
        yield _invalid(f"Invalid RunStrategy ({strategy})", "spec.runStrategy")


def _disks(inner: Json) -> Iterator[Cause]:
    """A volume without a disk gets one; a disk without a volume has nothing on it."""
    volumes = {each["name"] for each in inner.get("volumes") or ()}
    for number, disk in enumerate((inner["domain"].get("devices") or {}).get("disks") or ()):
        if disk["name"] not in volumes:
            field = f"{_SPEC}.domain.devices.disks[{number}].name"
            shown = field.removesuffix("name") + "Name"
            yield _invalid(f"{shown} '{disk['name']}' not found.", field)


def _networks(inner: Json) -> Iterator[Cause]:
    networks = [each["name"] for each in inner.get("networks") or ()]
    interfaces = [each["name"] for each in (inner["domain"].get("devices") or {}).get("interfaces") or ()]
    for number, name in enumerate(networks):
        if name not in interfaces:
            field = f"{_SPEC}.networks[{number}].name"
            yield Cause("FieldValueRequired", f"{field} '{name}' not found.", field)
    for number, name in enumerate(interfaces):
        if name not in networks:
            field = f"{_SPEC}.domain.devices.interfaces[{number}].name"
            yield _invalid(f"{field} '{name}' not found.", field)


def _cloud_init(field: str, data: Json) -> Iterator[Cause]:
    user = _sources(data, "userData", "secretRef")
    network = _sources(data, "networkData", "networkDataSecretRef")
    if len(user) > 1:
        yield _invalid(f"{field} must have only one userdatasource set.", field)
    if max(user, default=0) > _MOST_BYTES:
        text = f"userdata exceeds {_MOST_BYTES} byte limit. Should use UserDataSecretRef for larger data."
        yield _invalid(f"{field} {text}", field)
    if len(network) > 1:
        yield _invalid(f"{field} must have only one networkdata source set.", field)
    if max(network, default=0) > _MOST_BYTES:
        text = f"networkdata exceeds {_MOST_BYTES} byte limit. Should use NetworkDataSecretRef for larger data."
        yield _invalid(f"{field} {text}", field)
    if not user and not network:
        yield _invalid(f"{field} must have at least one userdatasource or one networkdatasource set.", field)


def _sources(data: Json, inline: str, reference: str) -> list[int]:
    """How many bytes each source holds in the object itself."""
    found = [0] if (data.get(reference) or {}).get("name") else []
    if text := data.get(inline):
        found.append(len(text.encode()))
    if text := data.get(f"{inline}Base64"):
        try:
            found.append(len(base64.b64decode(text, validate=True)))
        except (binascii.Error, ValueError):
            found.append(0)
    return found
