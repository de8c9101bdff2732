"""The certificate of the page's server, from a folder in which somebody else renews it."""

from __future__ import annotations

import asyncio
import datetime
import ssl
from pathlib import Path

import structlog
from cryptography import x509

log = structlog.get_logger(__name__)

_LOOK_SECONDS = 10.0


class CertificateError(Exception):
    """The folder has no usable certificate; the text names the file."""


class Certificate:
    """`context` gets each new certificate; connections that exist keep theirs."""

    def __init__(self, folder: Path) -> None:
        """Raises CertificateError."""
        self._cert, self._key = folder / "tls.crt", folder / "tls.key"
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.minimum_version = ssl.TLSVersion.TLSv1_2
        self.context.set_alpn_protocols(["http/1.1"])
        self._seen = b""
        self._until = datetime.datetime.now(datetime.UTC)
        self.load()

    @property
    def unready(self) -> str:
        """Why browsers would refuse it now; '' when they don't."""
        if datetime.datetime.now(datetime.UTC) < self._until:
            return ""
        return f"{self._cert} expired at {self._until:%Y-%m-%d %H:%M} UTC and was not renewed"

    def load(self) -> None:
        """Again, if the files have changed. Raises CertificateError."""
        try:
            seen = self._cert.read_bytes() + self._key.read_bytes()
            if seen == self._seen:
                return
            self.context.load_cert_chain(self._cert, self._key)
            self._until = x509.load_pem_x509_certificate(self._cert.read_bytes()).not_valid_after_utc
        except (OSError, ValueError) as error:  # ssl.SSLError is an OSError
            raise CertificateError(f"{self._cert} and {self._key} are not a usable certificate: {error}") from error
        self._seen = seen
        log.info("certificate of the dashboard loaded", until=f"{self._until:%Y-%m-%d}")

    async def follow(self) -> None:
        """Until cancelled. What can't be loaded is tried again: files may be replaced one after the other."""
        while True:
            await asyncio.sleep(_LOOK_SECONDS)
            try:
                self.load()
            except CertificateError as error:
                log.warning("the certificate is not replaced", error=str(error))
