"""What runs inside simulated machines. The hypervisor switches its power and reads its console."""

from __future__ import annotations

from typing import Protocol

import msgspec


class Machine(msgspec.Struct, frozen=True):
    """A machine as its guest sees it at power-on: what it boots from, and what it finds on its config drive."""

    ext_id: str
    name: str
    cluster: str
    image: str = ""  # name of the image that its boot disk was made from
    image_type: str = ""  # DISK_IMAGE or ISO_IMAGE
    image_os: str = ""  # family of the operating system, where the world says so
    image_network: str = "bridge"  # what Pods get from the image: a default bridge, or none
    image_programs: tuple[str, ...] = ()  # programs that the image has besides the usual ones
    image_without: tuple[str, ...] = ()  # usual programs that it does not have
    lacks: tuple[str, ...] = ()  # what its network does not reach: internet, dns, registry
    uefi: bool = False
    secure_boot: bool = False
    vcpus: int = 1
    memory_bytes: int = 0
    user_data: bytes = b""
    meta_data: bytes = b""
    addresses: tuple[str, ...] = ()
    macs: tuple[str, ...] = ()
    platform: str = "nutanix"  # as cloud-init names the hypervisor
    simulator: str = "prism"  # whose machine it is
    system_uuid: str = ""  # that the guest reads from its firmware; '': that of the machine


class Guests(Protocol):
    """Called in the event loop, and must not block. A guest that works for a while starts a task of its own."""

    def powered_on(self, machine: Machine) -> None: ...

    def powered_off(self, ext_id: str, *, crashed: bool) -> None: ...

    def readdressed(self, ext_id: str, addresses: tuple[str, ...]) -> None: ...

    def removed(self, ext_id: str) -> None: ...


class NoGuests:
    """Machines that run nothing."""

    def powered_on(self, machine: Machine) -> None:
        del machine

    def powered_off(self, ext_id: str, *, crashed: bool) -> None:
        del ext_id, crashed

    def readdressed(self, ext_id: str, addresses: tuple[str, ...]) -> None:
        del ext_id, addresses

    def removed(self, ext_id: str) -> None:
        del ext_id
