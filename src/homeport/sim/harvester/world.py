"""What a simulated Harvester has at the beginning, as data: of the file default.yaml, or of one that users write."""

from __future__ import annotations

from importlib import resources
from ipaddress import ip_address, ip_network
from pathlib import Path

import msgspec

from homeport.sim.engine.document import Document, read_document
from homeport.sim.harvester.kind import Json

_GIB = 1024**3


class _Data(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True, rename="camel"):
    pass


class Node(_Data, frozen=True):
    name: str
    address: str
    zone: str = ""
    cpus: int = 64
    memory_bytes: int = 512 * _GIB
    pods: int = 1000
    labels: dict[str, str] = {}


class Vlan(_Data, frozen=True):
    """A segment of the physical network. `dhcp`: ranges that its DHCP server gives out; none: there is no server."""

    id: int
    name: str = ""
    subnet: str = ""
    gateway: str = ""
    dhcp: tuple[str, ...] = ()
    trunked: bool = True  # whether the switches carry it to the nodes

    def __post_init__(self) -> None:
        if not 0 <= self.id <= 4094:
            raise ValueError("id is a number from 1 to 4094, or 0 for the untagged network")
        if self.subnet:
            network = ip_network(self.subnet)
            for text in self.dhcp:
                for address in text.split("-"):
                    if "/" not in text and ip_address(address.strip()) not in network:
                        raise ValueError(f"dhcp: {text} is outside the subnet {self.subnet}")


class ClusterNetwork(_Data, frozen=True):
    """`nodes`: those that it reaches; none given: all of them."""

    name: str
    nodes: tuple[str, ...] = ()


class VmNetwork(_Data, frozen=True):
    name: str
    vlan: int
    namespace: str = "default"
    cluster_network: str = "mgmt"


class WorldImage(_Data, frozen=True):
    """An image that was imported before. `agent`: whether the QEMU guest agent runs in it."""

    name: str
    namespace: str = "default"
    display_name: str = ""  # default: the name
    url: str = ""
    size_bytes: int = 2 * _GIB
    virtual_size_bytes: int = 0  # default: the size
    os: str = ""
    agent: bool = True


class Download(_Data, frozen=True):
    """What the network gives for an image's URL. Those that no entry fits are there, with the guest agent in them."""

    url: str  # a glob
    status: int = 200
    size_bytes: int = 2 * _GIB
    virtual_size_bytes: int = 0
    os: str = ""
    agent: bool = True
    fails_at: int | None = None  # the import fails at this progress, every time
    message: str = ""


class WorldKeyPair(_Data, frozen=True):
    name: str
    public_key: str
    namespace: str = "default"


class WorldStorageClass(_Data, frozen=True):
    name: str
    default: bool = False
    provisioner: str = "driver.longhorn.io"
    parameters: dict[str, str] = {}


class WorldFile(_Data, frozen=True):
    version: str = "v1.8.1"
    kubernetes: str = "v1.34.2"
    address: str = "10.20.0.10"  # the cluster's virtual address, where its API answers
    pod_network: str = "10.52.0.0/16"
    harvester: bool = True  # False: plain KubeVirt, without the kinds and the admission of Harvester
    nodes: tuple[Node, ...] = ()
    vlans: tuple[Vlan, ...] = ()
    cluster_networks: tuple[ClusterNetwork, ...] = ()
    networks: tuple[VmNetwork, ...] = ()
    images: tuple[WorldImage, ...] = ()
    downloads: tuple[Download, ...] = ()
    key_pairs: tuple[WorldKeyPair, ...] = ()
    storage_classes: tuple[WorldStorageClass, ...] = ()
    settings: dict[str, str] = {}
    objects: tuple[Json, ...] = ()  # anything else that the API server should have, as manifests

    @property
    def numbers(self) -> tuple[int, int, int]:
        """Of the version."""
        parts = self.version.removeprefix("v").split("-")[0].split(".")
        first, second, third = (int(part) for part in (*parts, "0", "0")[:3])
        return first, second, third

    @property
    def classes_by_uid(self) -> bool:
        """Whether the class of an image is called after its UID; before 1.8.1 it was called after its name."""
        return self.numbers >= (1, 8, 1)


def parse_world(text: str | bytes, source: str = "world") -> WorldFile:
    return _checked(Document(text, source))


def load_world(path: Path) -> WorldFile:
    return _checked(read_document(path))


def default_text() -> str:
    """The file of the built-in world."""
    return resources.files("homeport.sim.harvester").joinpath("default.yaml").read_text(encoding="utf-8")


def default_world() -> WorldFile:
    return parse_world(default_text(), "default.yaml")


def _checked(document: Document) -> WorldFile:
    file = document.convert(WorldFile)
    try:
        _ = file.numbers
    except ValueError:
        raise document.error(("version",), f"invalid version {file.version!r}: expected for example v1.8.1") from None
    networks = {each.name for each in file.cluster_networks}
    nodes = {each.name for each in file.nodes}
    for number, each in enumerate(file.networks):
        if each.cluster_network not in networks:
            text = f"no entry of clusterNetworks is called {each.cluster_network!r}"
            raise document.error(("networks", number, "clusterNetwork"), text)
    for number, network in enumerate(file.cluster_networks):
        for name in network.nodes:
            if name not in nodes:
                raise document.error(("clusterNetworks", number, "nodes"), f"no entry of nodes is called {name!r}")
    return file
