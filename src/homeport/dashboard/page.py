"""The files of the page, as they are packed with the program, and the headers that each answer carries."""

from __future__ import annotations

import gzip
import hashlib
from dataclasses import dataclass
from importlib import resources

BASE = "/dashboard/"
_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
}

HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
        "worker-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
        "require-trusted-types-for 'script'; trusted-types homeport"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), microphone=(), geolocation=(), usb=()",
    "Cache-Control": "no-cache",
}


@dataclass(frozen=True, slots=True)
class File:
    type: str
    tag: str
    plain: bytes
    packed: bytes


def load() -> dict[str, File]:
    """By path below /dashboard/; the page itself is ''."""
    found: dict[str, File] = {}
    for each in resources.files(__package__).joinpath("static").iterdir():
        suffix = "." + each.name.rpartition(".")[2]
        if suffix not in _TYPES:
            continue
        content = each.read_bytes()
        tag = '"' + hashlib.sha256(content).hexdigest()[:20] + '"'
        found[each.name] = File(_TYPES[suffix], tag, content, gzip.compress(content, 9, mtime=0))
    if "index.html" in found:
        found[""] = found["index.html"]
    return found
