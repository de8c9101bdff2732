"""Until when the certificates of the plane itself are valid."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

from cryptography import x509

from homeport.apiserver.auth.pki import PKI
from homeport.app.report.description import CertificateState


def certificates(pki: PKI) -> list[CertificateState]:
    """The CA first. A file that can't be read is left out: the part that renews them reports it."""
    found = [("CA", pki.directory / "ca.crt", False)]
    found += [("API server", pki.server_path, True), ("administrator", pki.admin_path, True)]
    return [
        CertificateState(name, str(path), until, renewed)
        for name, path, renewed in found
        if (until := _until(path)) is not None
    ]


def _until(path: Path) -> float | None:
    try:
        return _parsed(path, path.stat().st_mtime_ns)
    except (OSError, ValueError):
        return None


@lru_cache(maxsize=8)  # the page asks each second
def _parsed(path: Path, changed: int) -> float:
    return x509.load_pem_x509_certificate(path.read_bytes()).not_valid_after_utc.timestamp()
