"""Who we are to an API server: a header, a client certificate, or both. Secrets never show in a repr."""

from __future__ import annotations

import base64
import os
import ssl
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from homeport.client.errors import Unauthorized

# Tokens of service accounts are renewed in place long before they end; looking once in a while is enough.
REREAD_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class Certificate:
    """A client certificate and its key, PEM."""

    cert: bytes = field(repr=False)
    key: bytes = field(repr=False)


class Credential(Protocol):
    async def header(self) -> str:
        """The Authorization header, or '' for none."""

    def certificate(self) -> Certificate | None:
        """Valid after `header()` was awaited; a change takes effect on new connections."""

    def renew(self) -> bool:
        """The server said 401. True when asking again with a fresh `header()` makes sense."""


@dataclass(frozen=True, slots=True)
class Static:
    """A certificate, a fixed header (bearer or basic), or nothing at all (anonymous)."""

    authorization: str = field(default="", repr=False)
    cert: Certificate | None = None

    async def header(self) -> str:
        return self.authorization

    def certificate(self) -> Certificate | None:
        return self.cert

    def renew(self) -> bool:
        return False


def bearer(token: str, cert: Certificate | None = None) -> Static:
    return Static(f"Bearer {token}", cert)


def basic(username: str, password: str, cert: Certificate | None = None) -> Static:
    pair = base64.b64encode(f"{username}:{password}".encode()).decode()
    return Static(f"Basic {pair}", cert)


class TokenFile:
    """A bearer token in a file that somebody else renews."""

    def __init__(
        self, path: Path, cert: Certificate | None = None, *, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self.path = path
        self._cert = cert
        self._monotonic = monotonic
        self._authorization = ""
        self._looked = -REREAD_SECONDS
        self._seen: tuple[int, int, int] | None = None

    def __repr__(self) -> str:
        return f"TokenFile({str(self.path)!r})"

    async def header(self) -> str:
        now = self._monotonic()
        if now - self._looked >= REREAD_SECONDS or not self._authorization:
            self._read()
            self._looked = now
        return self._authorization

    def certificate(self) -> Certificate | None:
        return self._cert

    def renew(self) -> bool:
        before = self._authorization
        self._seen = None
        self._read()
        return self._authorization != before

    def _read(self) -> None:
        try:
            stat = os.stat(self.path)
            # Kubelets replace the file through a symlink, so the inode tells as much as the time.
            mark = (stat.st_ino, stat.st_mtime_ns, stat.st_size)
            if mark == self._seen:
                return
            token = self.path.read_text(encoding="utf-8").strip()
        except (OSError, UnicodeDecodeError) as error:
            if self._authorization:
                return  # the token we have is the best there is; the server will say when it is not
            why = error.strerror if isinstance(error, OSError) else "not UTF-8 text"
            raise Unauthorized(f"the token file {self.path} can't be read: {why}") from None
        if not token:
            raise Unauthorized(f"the token file {self.path} is empty")
        self._seen = mark
        self._authorization = f"Bearer {token}"


class CertificateFiles:
    """A client certificate and its key in files that somebody else renews, besides another credential.

    Both files are read again; until a new certificate has its own key, the pair that we have stays in use.
    """

    def __init__(
        self, inner: Credential, cert: Path, key: Path, *, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self.paths = (cert, key)
        self._inner = inner
        self._monotonic = monotonic
        self._looked = monotonic()
        self._held = inner.certificate()

    def __repr__(self) -> str:
        return f"CertificateFiles({str(self.paths[0])!r})"

    async def header(self) -> str:
        if self._monotonic() - self._looked >= REREAD_SECONDS:
            self._read()
        return await self._inner.header()

    def certificate(self) -> Certificate | None:
        return self._held

    def renew(self) -> bool:
        before = self._held
        self._read()
        return self._held is not before or self._inner.renew()

    def _read(self) -> None:
        self._looked = self._monotonic()
        try:
            found = Certificate(*(path.read_bytes() for path in self.paths))
        except OSError:
            return  # the pair that we have is the best there is; the server will say when it is not
        if found != self._held and _is_pair(found):
            self._held = found


def _is_pair(certificate: Certificate) -> bool:
    """Whether the key belongs to the certificate: one file is written before the other."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    with tempfile.NamedTemporaryFile(prefix="homeport-") as file:
        file.write(certificate.cert.rstrip() + b"\n" + certificate.key)
        file.flush()
        try:
            context.load_cert_chain(file.name, password=lambda: b"")
        except (ssl.SSLError, ValueError):
            return False
    return True
