"""What an image is good for: how it boots, who reads its user data, and which Kubernetes is baked in."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

Reader = Literal["cloud-init", "ignition", "talos", "none"]

_VERSION = r"v?(\d+\.\d+\.\d+)"
_KUBE = re.compile(rf"(?:kube|kubernetes|k8s|capi)[a-z-]*[-_]?{_VERSION}", re.IGNORECASE)
_K0S = re.compile(rf"k0s[-_]?{_VERSION}", re.IGNORECASE)
_TALOS = re.compile(r"talos[-_]?v?(\d+\.\d+(?:\.\d+)?)?", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Image:
    """`kubernetes` is the version of kubeadm and kubelet on it, '' if they are not there."""

    name: str
    reader: Reader = "cloud-init"
    family: str = "linux"  # ubuntu, rocky, flatcar, talos, windows, ...
    bootable: bool = True  # a disk with a boot loader; installation media are not
    iso: bool = False
    kubernetes: str = ""
    k0s: str = ""  # the version of its binary on it; an image that is only prepared for k0s has none
    uefi: bool = True
    bios: bool = True
    cni: bool = (
        True  # a default bridge network for Pods comes with the container runtime, as CRI-O's packages bring one
    )
    programs: tuple[str, ...] = ()  # besides the usual ones
    without: tuple[str, ...] = ()  # usual programs that are missing


# Talos releases and the Kubernetes that they bring along by default.
_TALOS_KUBERNETES = {
    "1.6": "1.29.0",
    "1.7": "1.30.0",
    "1.8": "1.31.1",
    "1.9": "1.32.0",
    "1.10": "1.33.0",
    "1.11": "1.34.0",
}


def describe_image(
    name: str,
    *,
    image_type: str = "DISK_IMAGE",
    family: str = "",
    kubernetes: str = "",
    cni: bool = True,
    programs: tuple[str, ...] = (),
    without: tuple[str, ...] = (),
) -> Image:
    """What an image's name tells, as people name them: ubuntu-22.04-kube-v1.28.0, talos-1.9, rocky-9-cloud."""
    low = name.lower()
    family = family.lower() if family.lower() not in ("", "linux", "other") else _family(low)
    iso = image_type == "ISO_IMAGE" or low.endswith(".iso")
    if family == "talos":
        found = _TALOS.search(low)
        minor = ".".join((found.group(1) or "").split(".")[:2]) if found else ""
        version = kubernetes or _TALOS_KUBERNETES.get(minor, "1.32.0")
        # A network for Pods comes with the configuration, or from whoever asked for none.
        return Image(name, "talos", family, bootable=not iso, iso=iso, kubernetes=version, cni=False)
    kube, k0s = _KUBE.search(low), _K0S.search(low)
    return Image(
        name,
        _reader(family),
        family,
        bootable=not iso,
        iso=iso,
        kubernetes=kubernetes.removeprefix("v") or (kube.group(1) if kube else ""),
        k0s=k0s.group(1) if k0s else "",
        cni=cni,
        programs=programs,
        without=without,
    )


def talos_version(image: Image) -> str:
    """The release of Talos on an image, v1.9.0 if its name tells only the minor version."""
    found = _TALOS.search(image.name)
    parts = ((found.group(1) if found else "") or "1.9").split(".")
    return f"v{'.'.join([*parts, '0'][:3])}"


def _family(low: str) -> str:
    for family in (
        "talos",
        "flatcar",
        "coreos",
        "ubuntu",
        "rocky",
        "rhel",
        "centos",
        "debian",
        "windows",
        "alma",
        "suse",
    ):
        if family in low:
            return family
    return "linux"


def _reader(family: str) -> Reader:
    if family in ("flatcar", "coreos"):
        return "ignition"
    return "none" if family == "windows" else "cloud-init"
