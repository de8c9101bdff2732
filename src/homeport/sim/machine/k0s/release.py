"""Releases of k0s: which versions exist, and what their binaries look like on a disk."""

from __future__ import annotations

import re
from urllib.parse import unquote

STABLE = "v1.32.2+k0s.0"  # what get.k0s.sh installs if no version is asked for
_TEXT = r"v?(\d+)\.(\d+)\.(\d+)[+-]k0s\.(\d+)"
_VERSION = re.compile(_TEXT)
_INSIDE = re.compile(rf"{_TEXT}(?![\d.])")
_MARK = b"\x7fELF k0s "
# The newest patch of each minor version, and releases that were built more than once.
_PATCHES = {
    20: 6, 21: 14, 22: 17, 23: 17, 24: 17, 25: 16, 26: 15, 27: 16, 28: 15, 29: 15, 30: 14, 31: 14, 32: 13, 33: 13,
    34: 10, 35: 7, 36: 3,
}  # fmt: skip
_BUILDS = {
    (21, 2): 1, (21, 5): 1, (21, 13): 1, (22, 1): 1, (22, 2): 2, (22, 4): 2, (22, 5): 1, (22, 9): 2, (23, 1): 1,
    (23, 3): 1, (23, 6): 2, (23, 17): 1, (24, 11): 1, (24, 12): 1, (25, 7): 1, (25, 8): 1, (26, 2): 1, (26, 3): 1,
    (26, 13): 1, (27, 10): 1, (28, 6): 1, (29, 1): 1, (31, 1): 1, (32, 5): 1, (32, 12): 1, (33, 1): 1, (33, 8): 1,
    (33, 13): 1, (34, 1): 1, (35, 1): 1, (36, 3): 2,
}  # fmt: skip


def exists(version: str) -> bool:
    """Whether k0s was released in this version, spelled as releases are: v1.31.5+k0s.0."""
    found = _VERSION.fullmatch(version)
    if found is None or not version.startswith("v") or "-" in version:
        return False
    major, minor, patch, build = map(int, found.groups())
    return major == 1 and patch <= _PATCHES.get(minor, -1) and build <= _BUILDS.get((minor, patch), 0)


def download_url(version: str) -> str:
    return f"https://github.com/k0sproject/k0s/releases/download/{version}/k0s-{version}-amd64"


def version_in(url: str) -> str:
    """The version that a URL names, as v1.31.5+k0s.0; '' if it names none."""
    found = _INSIDE.search(unquote(url))
    return "v{}.{}.{}+k0s.{}".format(*found.groups()) if found else ""


def binary(version: str) -> bytes:
    return _MARK + version.encode() + b"\n"


def version_of(content: bytes) -> str:
    """The version of a binary; '' for a file that is not k0s."""
    return content[len(_MARK) :].decode("ascii", "replace").strip() if content.startswith(_MARK) else ""


def kubernetes(version: str) -> str:
    """The version that the API server and kubelets of a release report: v1.31.5+k0s."""
    return f"v{version.removeprefix('v').partition('+')[0]}+k0s"
