"""What a KubevirtMachineTemplate names: namespace, networks, image, storage classes and keys have to exist."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from homeport.api.kubevirt.v1alpha1 import MachineSpec
from homeport.api.meta import Resource, Unstructured
from homeport.client.protocol import Key
from homeport.infra.error import Denied, ProviderError, policy_of
from homeport.infra.preflight.check import REFERENCES
from homeport.infra.preflight.fit import check_version, misfit
from homeport.infra.preflight.near import near
from homeport.infra.preflight.plan import MachinePlan
from homeport.infra.protocol import Check
from homeport.providers.harvester.image import Image, choose, parse_name, ready
from homeport.providers.harvester.infracluster.connection import HarvesterSession
from homeport.providers.harvester.infracluster.permission import networks_of
from homeport.providers.harvester.infracluster.resource import (
    CLAIM,
    CLAIM_TEMPLATES,
    IMAGE,
    IMAGE_ID,
    KEY_PAIR,
    NAMESPACE,
    NETWORK,
    NODE,
    STORAGE_CLASS,
)
from homeport.providers.harvester.machine.disk import parse_claim_templates, size_of
from homeport.providers.harvester.machine.plan import namespace_of
from homeport.runtime.cache import labels_of
from homeport.runtime.outcome import Wait

NETWORK_GROUP = "network.harvesterhci.io"
_GOOD = Check(REFERENCES, True)
_PACKED = (".xz", ".gz", ".zip", ".bz2", ".zst", ".tar")
_TEMPLATE = "spec.template.spec.virtualMachineTemplate"
_MISSING = "NotFound"


@dataclass(frozen=True, slots=True)
class Template:
    """A template, and where its VMs are going to be."""

    session: HarvesterSession
    plan: MachinePlan

    @property
    def spec(self) -> MachineSpec:
        found: MachineSpec = self.plan.template.spec.template.spec
        return found

    @property
    def namespace(self) -> str:
        return namespace_of(self.spec, self.session)

    def bad(self, field: str, reason: str, text: str, **more: bool) -> Check:
        where = f"KubevirtMachineTemplate {self.plan.template.metadata.name}"
        return Check(REFERENCES, False, reason, f"{where}: {field}: {text}", **more)


async def check(template: Template) -> list[Check]:
    """Everything that is wrong with a template is reported at once, except in a namespace that does not exist."""
    wrong = await _check_namespace(template)
    if wrong:
        return wrong
    checks = [_GOOD, *await _check_networks(template), *await _check_classes(template)]
    if template.session.harvester:
        checks += [*await _check_boot_disk(template), *await _check_keys(template)]
    elif template.spec.boot_disk is not None:
        text = "images are kinds of Harvester, and this is KubeVirt without it: use dataVolumeTemplates"
        checks.append(template.bad("spec.template.spec.bootDisk", "InvalidConfiguration", text))
    return [*checks, *await _check_sources(template)]


async def _check_namespace(template: Template) -> list[Check]:
    session, name = template.session, template.namespace
    try:
        if await session.look_up(NAMESPACE, Key("", name)) is not None:
            return []
        there = [each.name for each in await session.list(NAMESPACE)]
    except Denied:
        return []  # an account of a single namespace may not see it
    own = template.spec.virtual_machine_template.metadata.get("namespace")
    field = f"{_TEMPLATE}.metadata.namespace" if own else f"namespace of {session.access.origin}"
    text = f"namespace {name!r} does not exist on {session.access.server}: create it{near(name, there)}"
    return [template.bad(field, _MISSING, text)]


# -- networks --------------------------------------------------------------------------------------------------------


async def _check_networks(template: Template) -> list[Check]:
    checks: list[Check] = []
    for number, text in enumerate(networks_of(template.spec)):
        if text:
            field = f"{_TEMPLATE}.spec.template.spec.networks[{number}].multus.networkName"
            checks += await _check_network(template, parse_name(text, template.namespace), field)
    return checks


async def _check_network(template: Template, key: Key, field: str) -> list[Check]:
    there = await template.session.shown(NETWORK, key.namespace)
    found = next((each for each in there if each.name == key.name), None)
    if found is None:
        close = near(f"{key}", [f"{each.namespace}/{each.name}" for each in there])
        text = f"network {str(key)!r} does not exist: create it in the Harvester dashboard, Networks{close}"
        return [template.bad(field, _MISSING, text)]
    labels = labels_of(found)
    if labels.get(f"{NETWORK_GROUP}/ready") == "false":
        text = f"network {key} is not ready: check its cluster network in Harvester"
        return [template.bad(field, "NetworkNotReady", text)]
    wrong = await _check_cluster_network(template, key, labels.get(f"{NETWORK_GROUP}/clusternetwork", ""), field)
    return wrong or _check_connectivity(template, found, field)


async def _check_cluster_network(template: Template, key: Key, name: str, field: str) -> list[Check]:
    """Harvester places VMs on hosts that have the cluster network of each of their networks."""
    if not name or not template.session.harvester:
        return []
    try:
        nodes = await template.session.shown(NODE, "")
    except Denied:
        return []
    if not nodes or any(labels_of(each).get(f"{NETWORK_GROUP}/{name}") == "true" for each in nodes):
        return []
    text = f"no host has the cluster network {name!r} of network {key}: verify cluster network attachment (VlanConfig)"
    return [template.bad(field, "NetworkNotReady", text)]


def _check_connectivity(template: Template, network: Unstructured, field: str) -> list[Check]:
    """Harvester tries each network once. Machines with static addresses may work all the same."""
    said = str(route_of(network).get("connectivity") or "")
    if said in ("", "true"):
        return []
    vlan = labels_of(network).get(f"{NETWORK_GROUP}/vlan-id", "")
    text = (
        f"Harvester found no connectivity on network {network.namespace}/{network.name} ({said}): ensure that VLAN "
        f"{vlan} exists, check physical switch VLAN trunking and the DHCP server"
    )
    return [template.bad(field, "NetworkUnreachable", text, advisory=True)]


def route_of(network: Unstructured) -> dict[str, Any]:
    """Subnet and gateway of a network, as far as Harvester knows them."""
    text = (network.metadata.get("annotations") or {}).get(f"{NETWORK_GROUP}/route") or "{}"
    try:
        found = json.loads(text)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


# -- images and keys -------------------------------------------------------------------------------------------------


async def _check_boot_disk(template: Template) -> list[Check]:
    checks = []
    disk = template.spec.boot_disk
    if disk is not None:
        checks += await _check_image(template, disk.image, "spec.template.spec.bootDisk.image")
    for number, claim in enumerate(_claims(template)):
        name = (claim["metadata"].get("annotations") or {}).get(IMAGE_ID)
        if name:
            field = f"{_TEMPLATE}.metadata.annotations[{CLAIM_TEMPLATES}][{number}]"
            checks += await _check_image(template, str(name), field)
    return checks


async def _check_image(template: Template, name: str, field: str) -> list[Check]:
    wanted = parse_name(name, template.namespace)
    try:
        found = choose(wanted, await template.session.shown(IMAGE, wanted.namespace), "")
        image = ready(found, "")
    except ProviderError as error:
        return [template.bad(field, policy_of(error).reason, error.message.removeprefix(": "))]
    if isinstance(image, Wait):
        return [template.bad(field, image.reason, image.message.removeprefix(": "), waiting=True)]
    return _check_fit(template, image, field)


def _check_fit(template: Template, image: Image, field: str) -> list[Check]:
    shown, file = image.display_name or image.key.name, image.url.partition("?")[0].lower()
    if shown.lower().endswith(".iso") or file.endswith(".iso"):
        text = f"{shown!r} is an ISO installer image: upload a disk image (qcow2 or raw)"
        return [template.bad(field, "ImageIsISO", text)]
    wrong = misfit(shown, template.plan) or misfit(image.key.name, template.plan)
    if wrong:
        return [template.bad(field, *wrong)]
    size = template.spec.boot_disk.size if template.spec.boot_disk is not None else ""
    if size and size_of(size, "spec.bootDisk.size") < image.virtual_size:
        text = f"{size} is below the size of image {image.id} ({_gib(image.virtual_size)} GiB): use a larger disk"
        return [template.bad("spec.template.spec.bootDisk.size", "InvalidConfiguration", text)]
    if file.endswith(_PACKED):
        text = f"{shown!r} was imported from a compressed file ({file.rpartition('/')[2]}): VMs boot from it only if "
        return [template.bad(field, "ImageCompressed", f"{text}its content was decompressed first", advisory=True)]
    return [check_version(shown, template.plan, field)]


def _gib(size: int) -> int:
    return -(-size // 2**30)


async def _check_keys(template: Template) -> list[Check]:
    checks = []
    for number, text in enumerate(template.spec.key_pairs):
        key = parse_name(text, template.namespace)
        if await template.session.look_up(KEY_PAIR, key) is None:
            there = [f"{each.namespace}/{each.name}" for each in await template.session.list(KEY_PAIR, key.namespace)]
            wrong = f"SSH key {str(key)!r} does not exist: create it in the Harvester dashboard, SSH Keys"
            checks.append(
                template.bad(f"spec.template.spec.keyPairs[{number}]", _MISSING, wrong + near(str(key), there))
            )
    return checks


# -- storage ---------------------------------------------------------------------------------------------------------


async def _check_classes(template: Template) -> list[Check]:
    checks: list[Check] = []
    there: list[str] | None = None
    for field, name in _classes(template):
        try:
            if await template.session.look_up(STORAGE_CLASS, Key("", name)) is not None:
                continue
            there = there if there is not None else [each.name for each in await template.session.list(STORAGE_CLASS)]
        except Denied:
            return checks
        checks.append(template.bad(field, _MISSING, f"storage class {name!r} does not exist{near(name, there)}"))
    return checks


def _classes(template: Template) -> Iterator[tuple[str, str]]:
    """Each storage class that is named, and by which field."""
    for number, disk in enumerate(template.spec.data_disks):
        if disk.storage_class_name:
            yield f"spec.template.spec.dataDisks[{number}].storageClassName", disk.storage_class_name
    for number, volume in enumerate(_volumes(template)):
        for part in ("storage", "pvc"):
            name = ((volume.get("spec") or {}).get(part) or {}).get("storageClassName")
            if name:
                yield f"{_TEMPLATE}.spec.dataVolumeTemplates[{number}].spec.{part}.storageClassName", str(name)
    for number, claim in enumerate(_claims(template)):
        name = (claim.get("spec") or {}).get("storageClassName")
        if name:
            yield f"{_TEMPLATE}.metadata.annotations[{CLAIM_TEMPLATES}][{number}].spec.storageClassName", str(name)


async def _check_sources(template: Template) -> list[Check]:
    """Volumes that the boot disk is cloned from, on KubeVirt."""
    checks = []
    for number, volume in enumerate(_volumes(template)):
        source = ((volume.get("spec") or {}).get("source") or {}).get("pvc") or {}
        key = Key(str(source.get("namespace") or template.namespace), str(source.get("name") or ""))
        if not key.name or await _exists(template.session, CLAIM, key):
            continue
        text = f"PersistentVolumeClaim {key} does not exist: create it, or correct the name"
        checks.append(template.bad(f"{_TEMPLATE}.spec.dataVolumeTemplates[{number}].spec.source.pvc", _MISSING, text))
    return checks


async def _exists(session: HarvesterSession, kind: Resource, key: Key) -> bool:
    try:
        return await session.look_up(kind, key) is not None
    except Denied:
        return True  # others may see it


def _volumes(template: Template) -> list[dict[str, Any]]:
    return list(template.spec.virtual_machine_template.spec.get("dataVolumeTemplates") or ())


def _claims(template: Template) -> list[dict[str, Any]]:
    text = (template.spec.virtual_machine_template.metadata.get("annotations") or {}).get(CLAIM_TEMPLATES)
    return parse_claim_templates(text) if text else []  # admission has read it before
