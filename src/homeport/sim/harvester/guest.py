"""What a VM boots from, and what its guest finds: its image, its cloud-init data, its networks."""

from __future__ import annotations

import base64
import binascii
import re
from dataclasses import dataclass

import orjson

from homeport.machinery.quantity import parse_quantity
from homeport.sim.engine.guest import Machine
from homeport.sim.harvester.controller.image import IMAGE_ID, find_download
from homeport.sim.harvester.controller.volume import CLONE, SOURCE
from homeport.sim.harvester.core import Core
from homeport.sim.harvester.kind import CLAIM, IMAGE, NAD, STORAGE_CLASS, VM, Json
from homeport.sim.harvester.lease import POD_NETWORK
from homeport.sim.harvester.netconfig import static_addresses
from homeport.sim.harvester.object import controlled_by, labels, notes
from homeport.sim.machine.image import describe_image

NAME = "harvester"
_SOURCES = {"cloudInitNoCloud": "nocloud", "cloudInitConfigDrive": "configdrive"}
_TAGGED = re.compile(r"(?:^|/)capk/(?P<name>[^:/]+):(?P<version>v\d+\.\d+\.\d+)")


@dataclass(frozen=True, slots=True)
class System:
    """What is on the boot disk."""

    name: str = ""  # of the image; '' for an empty disk
    os: str = ""
    iso: bool = False
    agent: bool = False
    url: str = ""
    lasting: bool = True  # whether the disk is there after the instance is gone

    def reads(self, source: str) -> bool:
        """Whether the system looks for its data there. Talos images are made for one platform each."""
        family = describe_image(self.name, family=self.os).family
        if family == "talos":
            found = re.search(r"(nocloud|openstack|metal|kubevirt)-", self.url)
            platform = found.group(1) if found else "nocloud"
            return (platform, source) in (("nocloud", "nocloud"), ("openstack", "configdrive"))
        if family in ("flatcar", "coreos"):
            return source == "configdrive"
        return True


@dataclass(frozen=True, slots=True)
class Nic:
    name: str
    mac: str
    vlan: int | None  # None: a network that nothing is known of
    trunked: bool = True


@dataclass(frozen=True, slots=True)
class CloudInit:
    source: str = ""  # nocloud or configdrive; '' if the VM has none
    user_data: bytes = b""
    network_data: bytes = b""


@dataclass(frozen=True, slots=True)
class Furnished:
    machine: Machine
    system: System
    nics: list[Nic]
    addresses: dict[str, list[str]]  # by MAC, also those by which nobody reaches it


def machine_id(vmi: Json, system: System) -> str:
    """A machine is its disk: it is the same after a restart unless the disk was thrown away."""
    owner = controlled_by(vmi, VM)
    return str(owner["uid"] if owner and system.lasting else vmi["metadata"]["uid"])


class Guestroom:
    """Looks up what an instance refers to."""

    def __init__(self, core: Core) -> None:
        self._core = core

    # -- the boot disk -------------------------------------------------------------------------------------------

    def system(self, vmi: Json) -> System:
        spec = vmi["spec"]
        disks = (spec["domain"].get("devices") or {}).get("disks") or []
        order = sorted(disks, key=lambda disk: disk.get("bootOrder") or 1_000)
        volumes = {each["name"]: each for each in spec.get("volumes") or ()}
        names = [disk["name"] for disk in order] or list(volumes)
        for name in names:
            volume = volumes.get(name)
            if volume is not None and not any(kind in volume for kind in _SOURCES):
                return self._on(vmi, volume)
        return System()

    def _on(self, vmi: Json, volume: Json) -> System:
        if disk := volume.get("containerDisk"):
            return _container_disk(str(disk["image"]))
        claim = (volume.get("persistentVolumeClaim") or {}).get("claimName")
        claim = claim or (volume.get("dataVolume") or {}).get("name")
        return self.on_claim(f"{vmi['metadata']['namespace']}/{claim}") if claim else System()

    def on_claim(self, key: str) -> System:
        core = self._core
        claim = core.mirror.get(CLAIM, key)
        if claim is None:
            return System()
        known = notes(claim)
        storage_class = core.mirror.get(STORAGE_CLASS, str(claim["spec"].get("storageClassName") or ""))
        named = known.get(IMAGE_ID) or (notes(storage_class).get(IMAGE_ID) if storage_class else "")
        if named and (image := core.mirror.get(IMAGE, named)) is not None:
            return self.of_image(image)
        if url := known.get(SOURCE):
            return self._of_url(url)
        source = known.get(CLONE, "")
        if source and source != key:
            if (image := core.mirror.get(IMAGE, source)) is not None:
                return self.of_image(image)
            return self.on_claim(source)
        return System()

    def of_image(self, image: Json) -> System:
        """The world knows what is on its images; of others their name, URL and label tell."""
        meta, spec = image["metadata"], image["spec"]
        name, url = str(spec.get("displayName") or meta["name"]), str(spec.get("url") or "")
        os = labels(image).get("harvesterhci.io/os-type", "")
        for known in self._core.world.images:
            if (known.namespace, known.name) == (meta["namespace"], meta["name"]):
                return System(name, known.os or os, iso=_iso(name, url), agent=known.agent, url=known.url or url)
        download = find_download(self._core.world.downloads, url)
        return System(name, os or download.os, iso=_iso(name, url), agent=download.agent, url=url)

    def _of_url(self, url: str) -> System:
        download = find_download(self._core.world.downloads, url)
        name = url.removeprefix("docker://").rpartition("/")[2]
        if url.startswith("docker://"):
            made = _container_disk(url.removeprefix("docker://"))
            return System(made.name, made.os, agent=True, url=url)
        return System(name, download.os, iso=_iso(name, url), agent=download.agent, url=url)

    # -- cloud-init ----------------------------------------------------------------------------------------------

    async def cloud_init(self, vmi: Json) -> CloudInit:
        for volume in vmi["spec"].get("volumes") or ():
            for kind, source in _SOURCES.items():
                if (data := volume.get(kind)) is not None:
                    namespace = vmi["metadata"]["namespace"]
                    user = await self._data(namespace, data, "userData", "secretRef", "userdata")
                    network = await self._data(namespace, data, "networkData", "networkDataSecretRef", "networkdata")
                    return CloudInit(source, user, network)
        return CloudInit()

    async def _data(self, namespace: str, data: Json, inline: str, ref: str, key: str) -> bytes:
        """Inline, in base64, or in a Secret, whose keys may be written either way."""
        if inline in data:
            return str(data[inline]).encode()
        if f"{inline}Base64" in data:
            return _decoded(data[f"{inline}Base64"])
        if ref not in data:
            return b""
        found = await self._core.secret(namespace, data[ref]["name"]) or {}
        return _decoded(found.get(key) or found.get(inline) or "")

    # -- networks ------------------------------------------------------------------------------------------------

    def nics(self, vmi: Json) -> list[Nic]:
        spec = vmi["spec"]
        networks = {each["name"]: each for each in spec.get("networks") or ()}
        found = []
        for interface in (spec["domain"].get("devices") or {}).get("interfaces") or ():
            network = networks.get(interface["name"]) or {}
            vlan, trunked = self._segment(vmi["metadata"]["namespace"], network)
            mac = interface.get("macAddress") or derived_mac(vmi, interface["name"])
            found.append(Nic(interface["name"], mac, vlan, trunked))
        return found

    def _segment(self, namespace: str, network: Json) -> tuple[int | None, bool]:
        named = (network.get("multus") or {}).get("networkName", "")
        if not named:
            return POD_NETWORK, True
        found = self._core.mirror.get(NAD, named if "/" in named else f"{namespace}/{named}")
        vlan = vlan_of(found) if found is not None else None
        trunked = any(each.id == vlan and each.trunked for each in self._core.world.vlans)
        return vlan, trunked

    # -- all of it -----------------------------------------------------------------------------------------------

    async def furnish(self, vmi: Json) -> Furnished:
        system, data = self.system(vmi), await self.cloud_init(vmi)
        found = system.reads(data.source)
        nics = self.nics(vmi)
        static = static_addresses(data.network_data, [nic.mac for nic in nics]) if found else {}
        addresses = {nic.mac: static.get(nic.mac) or self._leased(nic) for nic in nics}
        domain = vmi["spec"]["domain"]
        machine = Machine(
            ext_id=machine_id(vmi, system),
            name=vmi["metadata"]["name"],
            cluster=NAME,
            image=system.name,
            image_type="ISO_IMAGE" if system.iso else "DISK_IMAGE",
            image_os=system.os,
            uefi="efi" in ((domain.get("firmware") or {}).get("bootloader") or {}),
            vcpus=vcpus(domain),
            memory_bytes=memory_bytes(domain),
            user_data=data.user_data if found else b"",
            meta_data=_meta_data(vmi) if data.source and found else b"",
            addresses=tuple(address for nic in nics if nic.trunked for address in addresses[nic.mac]),
            macs=tuple(nic.mac for nic in nics),
            platform=data.source or "nocloud",
            simulator=NAME,
            system_uuid=str((domain.get("firmware") or {}).get("uuid") or ""),
        )
        return Furnished(machine, system, nics, addresses)

    def _leased(self, nic: Nic) -> list[str]:
        lease = self._core.leases.take(nic.vlan, nic.mac) if nic.vlan is not None else ""
        return [lease] if lease else []


def vlan_of(nad: Json) -> int | None:
    """Of its label, or of its configuration."""
    label = labels(nad).get("network.harvesterhci.io/vlan-id", "")
    if label.isdigit():
        return int(label)
    try:
        return int(orjson.loads(nad["spec"].get("config") or "{}").get("vlan", 0))
    except (orjson.JSONDecodeError, AttributeError, TypeError, ValueError):
        return None


def derived_mac(vmi: Json, interface: str) -> str:
    """What KubeVirt would choose at random: the same for the life of an instance."""
    seed = f"{vmi['metadata']['uid']}/{interface}".encode()
    tail = binascii.crc32(seed).to_bytes(4, "big")
    return ":".join(f"{byte:02x}" for byte in (0x02, 0x00, *tail))


def vcpus(domain: Json) -> int:
    cpu = domain.get("cpu") or {}
    return int(cpu.get("cores", 1)) * int(cpu.get("sockets", 1)) * int(cpu.get("threads", 1))


def memory_bytes(domain: Json) -> int:
    resources = domain.get("resources") or {}
    for value in (
        (domain.get("memory") or {}).get("guest"),
        (resources.get("limits") or {}).get("memory"),
        (resources.get("requests") or {}).get("memory"),
    ):
        if value:
            return parse_quantity(str(value)).value
    return 0


def _container_disk(reference: str) -> System:
    """Images for Cluster API carry the version of Kubernetes as their tag."""
    found = _TAGGED.search(reference)
    name = f"{found.group('name')}-kube-{found.group('version')}" if found else reference.rpartition("/")[2]
    return System(name, agent=True, url=f"docker://{reference}", lasting=False)


def _iso(name: str, url: str) -> bool:
    return name.lower().endswith(".iso") or url.lower().endswith(".iso")


def _meta_data(vmi: Json) -> bytes:
    meta, spec = vmi["metadata"], vmi["spec"]
    hostname = spec.get("hostname") or meta["name"]
    return orjson.dumps(
        {
            "instance-id": f"{meta['name']}.{meta['namespace']}",
            "local-hostname": hostname,
            "hostname": hostname,
        }
    )


def _decoded(text: str) -> bytes:
    try:
        return base64.b64decode(text)
    except (binascii.Error, ValueError):
        return b""
