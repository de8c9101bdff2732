"""From a KubevirtMachine to the objects of its VM: everything resolved, nothing sent.

Harvester's admission rewrites VirtualMachines, so what was written is never compared with what is there.
"""

from __future__ import annotations

import base64
import copy
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from homeport.api.kubevirt.v1alpha1 import DataDisk, KubevirtCluster, KubevirtMachine, MachineSpec
from homeport.capi.name import CLUSTER_NAME_LABEL, label_value
from homeport.client.protocol import Key
from homeport.infra.error import Misconfigured
from homeport.infra.machine.userdata import render_user_data, with_keys
from homeport.infra.protocol import MachineScope
from homeport.machinery.quantity import render_bytes
from homeport.providers.harvester.image import Image, parse_name
from homeport.providers.harvester.infracluster.connection import HarvesterSession
from homeport.providers.harvester.infracluster.resource import (
    BOOTSTRAP_CHECK,
    CLAIM_TEMPLATES,
    CLUSTER_UID,
    CREATOR,
    DISK_NAMES,
    HARVESTER_VM_NAME,
    IMAGE_ID,
    MACHINE_NAME,
    MACHINE_NAMESPACE,
    MACHINE_UID,
    ROLE,
    SSH_NAMES,
    VM_NAME,
    ZONE,
)
from homeport.providers.harvester.machine.disk import claim_templates, prefix_data_volumes, size_of
from homeport.providers.harvester.machine.network import Card, mac_of, render_config_drive, render_no_cloud
from homeport.providers.harvester.machine.sshkey import with_user

Json = dict[str, Any]
Scope = MachineScope[KubevirtCluster, KubevirtMachine, HarvesterSession]

BOOT = "boot"
CLOUD_INIT = "cloudinitvolume"
MIN_BOOT_DISK = 10 * 2**30
_EMPTY_SOURCE: Json = {"blank": {}}


@dataclass(frozen=True, slots=True)
class Material:
    """What was looked up for a machine."""

    image: Image | None = None
    keys: Sequence[tuple[str, str]] = field(default=())  # name of the KeyPair, public key
    check_key: str = ""  # public key of the bootstrap check; '' without one


def namespace_of(spec: MachineSpec, session: HarvesterSession) -> str:
    return str(spec.virtual_machine_template.metadata.get("namespace") or session.namespace)


def key_of_vm(scope: Scope) -> Key:
    return Key(namespace_of(scope.infra.spec, scope.session), scope.name)


def secret_name(name: str) -> str:
    return f"{name}-cloud-init"


def marks(scope: Scope) -> dict[str, str]:
    """Labels on everything that is made for this machine."""
    infra, cluster = scope.infra, scope.infra_cluster
    made = {
        MACHINE_NAME: label_value(infra.metadata.name),
        MACHINE_NAMESPACE: label_value(infra.metadata.namespace),
        MACHINE_UID: scope.uid,
    }
    if scope.cluster:
        made[CLUSTER_NAME_LABEL] = label_value(scope.cluster)
    if cluster is not None:
        made[CLUSTER_UID] = cluster.metadata.uid
    return made


# -- the Secret ------------------------------------------------------------------------------------------------------


def render_secret(scope: Scope, material: Material, source: str) -> Json:
    data = {"userdata": _user_data(scope, material)[0]}
    network = _network_data(scope, source)
    if network:
        data["networkdata"] = network.encode()
    key = key_of_vm(scope)
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": secret_name(key.name), "namespace": key.namespace, "labels": marks(scope)},
        "type": "Opaque",
        "data": {name: base64.b64encode(value).decode() for name, value in data.items()},
    }


def _user_data(scope: Scope, material: Material) -> tuple[bytes, bool]:
    """And whether it has the user of the bootstrap check."""
    data = with_keys(render_user_data(scope.user_data, scope.name), [key for _, key in material.keys])
    checked = with_user(data, material.check_key) if material.check_key else None
    return (data, False) if checked is None else (checked, True)


def has_cloud_init(scope: Scope) -> bool:
    """A machine that boots without user data gets no disk with it: systems such as Talos would read an empty one."""
    return bool(scope.user_data or scope.addresses or not scope.bare)


def data_source(scope: Scope, image: Image | None) -> str:
    """NoCloud or ConfigDrive: as the spec says, otherwise as the image needs it."""
    chosen = scope.infra.spec.user_data_source
    if chosen:
        return chosen
    if scope.format == "ignition" or not scope.session.harvester or (image is not None and image.for_openstack):
        return "ConfigDrive"
    return "NoCloud"


def _network_data(scope: Scope, source: str) -> str:
    if not scope.addresses:
        return ""
    spec = scope.infra.spec.virtual_machine_template.spec
    inner = (spec.get("template") or {}).get("spec") or {}
    nameservers = [str(each) for each in (inner.get("dnsConfig") or {}).get("nameservers") or ()]
    render = render_no_cloud if source == "NoCloud" else render_config_drive
    return render(cards(scope), nameservers)


def cards(scope: Scope) -> list[Card]:
    """One for each network. Raises Misconfigured for an address without a card."""
    spec = scope.infra.spec.virtual_machine_template.spec
    inner = (spec.get("template") or {}).get("spec") or {}
    named = [str(each.get("name") or "") for each in inner.get("networks") or ()]
    if len(scope.addresses) > len(named):
        raise Misconfigured(
            f"spec.addressesFromPools: {len(scope.addresses)} pools for {len(named)} networks; name a network for each "
            "in spec.virtualMachineTemplate.spec.template.spec.networks, in the same order"
        )
    macs = {each.get("name"): str(each.get("macAddress") or "") for each in _interfaces(inner)}
    given = [*scope.addresses, *[None] * (len(named) - len(scope.addresses))]
    return [
        Card(name, macs.get(name) or mac_of(scope.uid, index), address)
        for index, (name, address) in enumerate(zip(named, given, strict=True))
    ]


def _interfaces(inner: Mapping[str, Any]) -> list[Json]:
    found: list[Json] = ((inner.get("domain") or {}).get("devices") or {}).get("interfaces") or []
    return found


# -- the VirtualMachine ----------------------------------------------------------------------------------------------


def render_vm(scope: Scope, material: Material, source: str) -> Json:
    template, key, own = scope.infra.spec.virtual_machine_template, key_of_vm(scope), marks(scope)
    spec: Json = copy.deepcopy(template.spec)
    if "running" not in spec:
        spec.setdefault("runStrategy", "Always")
    prefix_data_volumes(spec, key.name, own)
    vmi = spec.setdefault("template", {})
    labels = {**_labels(template.metadata), **own, **_roles(scope), VM_NAME: label_value(key.name)}
    meta = vmi["metadata"] = {name: dict(value) for name, value in (vmi.get("metadata") or {}).items() if value}
    meta["labels"] = {**meta.get("labels", {}), **labels}
    if scope.session.harvester:
        meta["labels"][HARVESTER_VM_NAME] = label_value(key.name)
        labels = {CREATOR: "homeport", **labels}
    inner = vmi.setdefault("spec", {})
    inner.setdefault("hostname", key.name)
    claims = _with_disks(scope, material, spec, inner, claim_templates(template.metadata, key, inner, own))
    if has_cloud_init(scope):
        _with_cloud_init(inner, key.name, source, bool(scope.addresses))
    _with_devices(scope, key.namespace, inner)
    if scope.failure_domain:
        _with_zone(inner, scope.failure_domain)
    if scope.session.harvester:
        _with_limits(inner)
        inner.setdefault("evictionStrategy", "LiveMigrateIfPossible")
        meta["annotations"] = {**meta.get("annotations", {}), **_notes(material, claims)}
    annotations = {**(template.metadata.get("annotations") or {})}
    if claims:
        annotations[CLAIM_TEMPLATES] = json.dumps(claims)
    if _user_data(scope, material)[1]:
        annotations[BOOTSTRAP_CHECK] = "ssh"
    return {
        "apiVersion": "kubevirt.io/v1",
        "kind": "VirtualMachine",
        "metadata": {"name": key.name, "namespace": key.namespace, "labels": labels, "annotations": annotations},
        "spec": spec,
    }


def _labels(metadata: Mapping[str, Any]) -> dict[str, str]:
    return {str(name): str(value) for name, value in (metadata.get("labels") or {}).items()}


def _roles(scope: Scope) -> dict[str, str]:
    return {ROLE: "control-plane" if scope.control_plane else "worker"} if scope.cluster else {}


def _notes(material: Material, claims: Sequence[Json]) -> dict[str, str]:
    made = {DISK_NAMES: json.dumps([each["metadata"]["name"] for each in claims])} if claims else {}
    if material.keys:
        made[SSH_NAMES] = json.dumps([name for name, _ in material.keys])
    return made


# -- disks -----------------------------------------------------------------------------------------------------------


def _with_disks(scope: Scope, material: Material, spec: Json, inner: Json, claims: list[Json]) -> list[Json]:
    """Adds the boot disk and the data disks; gives all claims that Harvester has to make."""
    key, machine = key_of_vm(scope), scope.infra.spec
    disks: list[tuple[str, str]] = []
    if machine.boot_disk is not None:
        if material.image is None:
            raise Misconfigured(
                "spec.bootDisk: images are kinds of Harvester, and this is KubeVirt without it: use dataVolumeTemplates"
            )
        claims.insert(0, _image_claim(scope, material.image))
        disks.append((BOOT, f"{key.name}-{BOOT}"))
    for number, disk in enumerate(machine.data_disks):
        size = size_of(disk.size, f"spec.dataDisks[{number}].size")
        name = f"{key.name}-{disk.name}"
        disks.append((disk.name, name))
        if scope.session.harvester:
            claims.append(_claim(scope, name, size, disk.storage_class_name))
        else:
            spec.setdefault("dataVolumeTemplates", []).append(_data_volume(scope, name, disk, size))
    volumes = [{"name": name, "persistentVolumeClaim": {"claimName": claim}} for name, claim in disks]
    first = 1 if machine.boot_disk is not None else 0  # a VM boots from its first disk
    inner["volumes"] = [*volumes[:first], *(inner.get("volumes") or ()), *volumes[first:]]
    return claims


def _image_claim(scope: Scope, image: Image) -> Json:
    disk = scope.infra.spec.boot_disk
    least = max(image.virtual_size, 0)
    size = size_of(disk.size, "spec.bootDisk.size") if disk is not None and disk.size else max(MIN_BOOT_DISK, least)
    if size < least:
        raise Misconfigured(f"spec.bootDisk.size: {size} bytes are less than image {image.id} has ({least} bytes)")
    made = _claim(scope, f"{key_of_vm(scope).name}-{BOOT}", size, image.storage_class)
    made["metadata"]["annotations"] = {IMAGE_ID: image.id}
    return made


def _claim(scope: Scope, name: str, size: int, storage_class: str) -> Json:
    spec: Json = {
        "accessModes": ["ReadWriteMany"],
        "volumeMode": "Block",
        "resources": {"requests": {"storage": render_bytes(size)}},
    }
    if storage_class:
        spec["storageClassName"] = storage_class
    return {"metadata": {"name": name, "labels": marks(scope)}, "spec": spec}


def _data_volume(scope: Scope, name: str, disk: DataDisk, size: int) -> Json:
    storage: Json = {"resources": {"requests": {"storage": render_bytes(size)}}}
    if disk.storage_class_name:
        storage["storageClassName"] = disk.storage_class_name
    return {"metadata": {"name": name, "labels": marks(scope)}, "spec": {"source": _EMPTY_SOURCE, "storage": storage}}


# -- devices and placement -------------------------------------------------------------------------------------------


def _with_cloud_init(inner: Json, name: str, source: str, network: bool) -> None:
    secret = {"name": secret_name(name)}
    how: Json = {"secretRef": secret, **({"networkDataSecretRef": secret} if network else {})}
    kind = "cloudInitNoCloud" if source == "NoCloud" else "cloudInitConfigDrive"
    inner["volumes"] = [*(inner.get("volumes") or ()), {"name": CLOUD_INIT, kind: how}]


def _with_devices(scope: Scope, namespace: str, inner: Json) -> None:
    """A disk for each volume and a card for each network that has none yet."""
    domain = inner.setdefault("domain", {})
    domain.setdefault("firmware", {}).setdefault("uuid", scope.uid)
    devices = domain.setdefault("devices", {})
    disks = devices.setdefault("disks", [])
    known = {each.get("name") for each in disks}
    added = [
        {"name": each["name"], "disk": {"bus": "virtio"}} for each in inner["volumes"] if each["name"] not in known
    ]
    boots = scope.infra.spec.boot_disk is not None and BOOT not in known
    for each in added if boots else ():
        if each["name"] == BOOT:
            each["bootOrder"] = 1
    devices["disks"] = [*(each for each in added if each["name"] == BOOT), *disks, *_others(added)]
    _with_interfaces(scope, namespace, inner, devices)


def _others(disks: Sequence[Json]) -> list[Json]:
    return [each for each in disks if each["name"] != BOOT]


def _with_interfaces(scope: Scope, namespace: str, inner: Json, devices: Json) -> None:
    interfaces = {each.get("name"): each for each in devices.get("interfaces") or ()}
    made = []
    for network in inner.get("networks") or ():
        multus = network.get("multus")
        if multus is not None:
            named = parse_name(str(multus.get("networkName") or ""), namespace)
            multus["networkName"] = f"{named.namespace}/{named.name}"
        how: Json = {"model": "virtio", **({"bridge": {}} if multus is not None else {"masquerade": {}})}
        made.append(interfaces.pop(network.get("name"), None) or {"name": network.get("name"), **how})
    if scope.addresses:
        by_name = {card.name: card.mac for card in cards(scope)}
        for each in made:
            each.setdefault("macAddress", by_name[str(each["name"])])
    if made or interfaces:
        devices["interfaces"] = [*made, *interfaces.values()]


def _with_zone(inner: Json, zone: str) -> None:
    """In addition to whatever the user requires."""
    node = inner.setdefault("affinity", {}).setdefault("nodeAffinity", {})
    required = node.setdefault("requiredDuringSchedulingIgnoredDuringExecution", {})
    terms = required.setdefault("nodeSelectorTerms", [])
    if not terms:
        terms.append({})
    for term in terms:
        term.setdefault("matchExpressions", []).append({"key": ZONE, "operator": "In", "values": [zone]})


def _with_limits(inner: Json) -> None:
    """Harvester derives requests and the guest's memory from limits: a VM without them gets neither."""
    domain = inner["domain"]
    cpu = domain.get("cpu") or {}
    limits = domain.setdefault("resources", {}).setdefault("limits", {})
    if cpu and "cpu" not in limits:
        limits["cpu"] = str(cpus_of(cpu))
    guest = (domain.get("memory") or {}).get("guest")
    if guest is not None and "memory" not in limits:
        limits["memory"] = guest


def cpus_of(cpu: Mapping[str, Any]) -> int:
    return int(cpu.get("cores") or 1) * int(cpu.get("sockets") or 1) * int(cpu.get("threads") or 1)


def capacity_of(template: Any) -> dict[str, Any]:
    """CPUs and memory of a machine made from a template, as far as it says so."""
    spec = template.spec.template.spec.virtual_machine_template.spec
    domain = ((spec.get("template") or {}).get("spec") or {}).get("domain") or {}
    resources = domain.get("resources") or {}
    requests, limits = resources.get("requests") or {}, resources.get("limits") or {}
    cpu = domain.get("cpu")
    made = {
        "cpu": str(cpus_of(cpu)) if cpu else requests.get("cpu") or limits.get("cpu"),
        "memory": (domain.get("memory") or {}).get("guest") or requests.get("memory") or limits.get("memory"),
    }
    return {name: str(value) for name, value in made.items() if value is not None}
