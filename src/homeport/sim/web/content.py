"""Files of the web sites: small stand-ins for disk images, the same again for the same address. Pure."""

from __future__ import annotations

import hashlib
import lzma
import re
from collections.abc import Callable, Mapping
from functools import partial

_BYTES = 64 * 1024
_VERSION = r"v\d+\.\d+\.\d+[\w.-]*"
_DISK = r"(metal|nocloud|nutanix|openstack)-(amd64|arm64)\.(qcow2|raw|raw\.xz|raw\.zst|iso|tar\.gz)"
_FACTORY = re.compile(rf"/image/[0-9a-f]{{64}}/{_VERSION}/{_DISK}")
_TALOS = re.compile(rf"/siderolabs/talos/releases/download/{_VERSION}/{_DISK}")
_ROCKY = re.compile(r"/pub/rocky/\d+(\.\d+)?/images/(x86_64|aarch64)/Rocky-\d+[\w.-]*\.qcow2")
_EXAMPLE = re.compile(r"/[\w./-]+\.(qcow2|img|raw)")
_UBUNTU = re.compile(r"/[\w./-]+-cloudimg-(amd64|arm64)\.img")


def _matches(pattern: re.Pattern[str], path: str) -> bool:
    return pattern.fullmatch(path) is not None


# Whether a site has a file.
SITES: Mapping[str, Callable[[str], bool]] = {
    "factory.talos.dev": partial(_matches, _FACTORY),
    "github.com": partial(_matches, _TALOS),
    "dl.rockylinux.org": partial(_matches, _ROCKY),
    "download.rockylinux.org": partial(_matches, _ROCKY),
    "cloud-images.ubuntu.com": partial(_matches, _UBUNTU),
    "images.example.com": partial(_matches, _EXAMPLE),  # in the examples, in place of a server of the reader's own
}


def file_of(host: str, path: str) -> bytes | None:
    """None: the site has no such file."""
    has = SITES.get(host.lower())
    if has is None or not has(path):
        return None
    title = f"Simulated image of https://{host.lower()}{path}\n".encode()
    seed = hashlib.sha256(title).digest()
    content = (title + seed * (_BYTES // len(seed)))[:_BYTES]
    return lzma.compress(content) if path.endswith(".xz") else content
