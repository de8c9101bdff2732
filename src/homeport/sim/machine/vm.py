"""One simulated machine: its parts, its power and what it has become."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any, Literal

from homeport.machinery.address import is_address
from homeport.runtime.clock import Clock
from homeport.sim.machine.console import Console
from homeport.sim.machine.disk import Disk
from homeport.sim.machine.image import Image
from homeport.sim.machine.pace import Pace
from homeport.sim.machine.shell.inventory import inventory
from homeport.sim.machine.workload.cluster import WorkloadCluster
from homeport.sim.machine.workload.kubelet import Kubelet
from homeport.sim.network import Host, Network, split_endpoint

State = Literal["off", "booting", "running"]
Spawn = Callable[[Coroutine[Any, Any, None], str], "asyncio.Task[None]"]
GIB = 1024**3
_UNUSUAL = frozenset({"oras"})  # simulated, but only there if an image says so


@dataclass(slots=True, eq=False, repr=False)
class Machine:
    """`state` is the machine's power state; `kubelet` and `cluster` are set by what its user data runs."""

    id: str
    name: str
    image: Image
    host: Host
    network: Network
    clock: Clock
    pace: Pace
    spawn: Spawn  # runs something that goes on after the boot
    user_data: bytes = b""
    meta_data: bytes = b""
    cpus: int = 2
    memory_bytes: int = 4 * GIB
    uefi: bool = False
    platform: str = "nutanix"
    simulator: str = "prism"  # whose machine it is
    system_uuid: str = ""  # of its firmware; '': its id
    state: State = "off"
    hostname: str = ""
    provisioned: bool = False  # its user data was carried out: that happens once in its life
    waiting: bool = False  # its boot goes on when somebody sends it a configuration
    installed: str = ""  # the version of kubeadm and kubelet on it now
    k0s: str = ""
    programs: set[str] = field(init=False)  # besides those that are simulated
    disk: Disk = field(default_factory=Disk)
    console: Console = field(init=False)
    cluster: WorkloadCluster | None = None
    kubelet: Kubelet | None = None
    task: asyncio.Task[None] | None = None
    service: asyncio.Task[None] | None = None  # repeats the start of k0s until it succeeds
    lacks: frozenset[str] = frozenset()  # what it does not reach: internet, dns, registry
    sink: Callable[[str], None] | None = None  # gets every line of the console

    def __post_init__(self) -> None:
        self.console = Console(self.clock, self.sink)
        self.hostname = self.hostname or self.name
        self.installed = self.image.kubernetes
        self.k0s = f"{self.image.k0s}+k0s.0" if self.image.k0s else ""
        self.programs = inventory(self.image)

    @property
    def running(self) -> bool:
        return self.state == "running"

    @property
    def address(self) -> str:
        return self.host.addresses[0] if self.host.addresses else ""

    def has(self, program: str) -> bool:
        """Whether a program is there that images usually have: this one may not, and a package may have brought it."""
        return (program not in self.image.without and program not in _UNUSUAL) or program in self.programs

    def stop(self) -> None:
        """Power is lost: what still ran ends."""
        for task in (self.task, self.service):
            if task is not None:
                task.cancel()
        self.service = None
        self.state = "off"

    def pull_problem(self, image: str) -> str:
        """Why containerd can't pull an image; '' if it can, or has it already."""
        if not self.lacks or self._has_image(image):
            return ""
        registry = _registry(image)
        where = f'failed to pull and unpack image "{image}": failed to do request: Head "https://{registry}/v2/"'
        if "dns" in self.lacks and not is_address(registry.partition(":")[0]):
            return f"{where}: dial tcp: lookup {registry.partition(':')[0]}: Temporary failure in name resolution"
        try:  # a registry of the simulated network
            host, port = split_endpoint(registry, 443)
            self.network.resolve(host)
            self.network.find(self.host.name, host, port)
        except OSError:
            return f"{where}: dial tcp {registry}: i/o timeout"
        return ""

    def _has_image(self, image: str) -> bool:
        """From a bundle of k0s, or with the image of the machine: those of kubeadm."""
        if self.disk.under("/var/lib/k0s/images"):
            return "k0sproject/" in image or image.startswith("registry.k8s.io/")
        return bool(self.image.kubernetes) and image.startswith("registry.k8s.io/")

    @property
    def cni(self) -> bool:
        return self.image.cni

    @property
    def os_image(self) -> str:
        return self.image.name


def _registry(image: str) -> str:
    first, slash, _ = image.partition("/")
    return first if slash and ("." in first or ":" in first or first == "localhost") else "registry-1.docker.io"
