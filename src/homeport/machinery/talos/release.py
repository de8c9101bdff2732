"""Releases of Talos and the versions of Kubernetes that each runs."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

_VERSION: Final = re.compile(r"v?(\d+)\.(\d+)(?:\.(\d+))?(?:-[0-9A-Za-z.-]+)?")


class ReleaseError(ValueError):
    """A version of Talos, or of Kubernetes on it, that does not work: says which ones do."""


@dataclass(frozen=True, slots=True)
class Release:
    """`oldest` and `newest` are minor versions of Kubernetes 1; `kubernetes` is what Talos runs if none is named."""

    minor: int
    oldest: int
    newest: int
    kubernetes: str

    @property
    def name(self) -> str:
        return f"v1.{self.minor}"


# The configuration that is rendered here needs Talos 1.8; 1.14 reads it no longer in one document.
RELEASES: Final = (
    Release(8, 26, 31, "v1.31.4"),
    Release(9, 27, 32, "v1.32.4"),
    Release(10, 28, 33, "v1.33.6"),
    Release(11, 29, 34, "v1.34.1"),
    Release(12, 30, 35, "v1.35.0"),
    Release(13, 31, 36, "v1.36.0"),
)


def find_release(talos: str) -> Release:
    """Raises ReleaseError."""
    found = _VERSION.fullmatch(talos)
    if found is None:
        raise ReleaseError(f"invalid Talos version {talos!r}: expected for example v1.9.3")
    major, minor = int(found.group(1)), int(found.group(2))
    for release in RELEASES:
        if (major, minor) == (1, release.minor):
            return release
    known = f"{RELEASES[0].name} to {RELEASES[-1].name}"
    raise ReleaseError(f"Talos {talos} is not supported: choose a release from {known}")


def choose_kubernetes(talos: str, wanted: str = "") -> str:
    """The version of Kubernetes for a cluster: `wanted`, if this Talos runs it. Raises ReleaseError."""
    release = find_release(talos)
    if not wanted:
        return release.kubernetes
    found = _VERSION.fullmatch(wanted)
    if found is None or found.group(3) is None:
        raise ReleaseError(f"invalid Kubernetes version {wanted!r}: expected for example {release.kubernetes}")
    if int(found.group(1)) != 1 or not release.oldest <= int(found.group(2)) <= release.newest:
        supported = f"v1.{release.oldest} to v1.{release.newest}"
        raise ReleaseError(f"Talos {talos} does not run Kubernetes {wanted}: it runs {supported}")
    return wanted if wanted.startswith("v") else f"v{wanted}"


def installer_image(talos: str, schematic: str = "") -> str:
    """The image that Talos installs and upgrades itself from; a schematic of the image factory adds extensions."""
    if schematic:
        return f"factory.talos.dev/installer/{schematic}:{talos}"
    return f"ghcr.io/siderolabs/installer:{talos}"
