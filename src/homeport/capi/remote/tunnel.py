"""TLS over any stream of bytes: a port-forward has no socket that the event loop could wrap."""

from __future__ import annotations

import ssl
from typing import Protocol

from homeport.client.wire.resumption import ResumingContext

_CHUNK = 65_536


class Stream(Protocol):
    """What a port-forward gives. `read` gives b"" at the end."""

    async def read(self) -> bytes: ...

    async def write(self, data: bytes) -> None: ...

    async def close(self) -> None: ...


class Tunnel:
    """A Stream inside a Stream. `open` shakes hands; raises ssl.SSLError or ConnectionError."""

    def __init__(self, inner: Stream, context: ssl.SSLContext, server: str) -> None:
        self._inner = inner
        self._in = ssl.MemoryBIO()
        self._out = ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._in, self._out, server_hostname=server)

    async def open(self) -> None:
        while True:
            try:
                self._tls.do_handshake()
            except ssl.SSLWantReadError:
                await self._flush()
                await self._fill()
                continue
            await self._flush()
            return

    async def read(self) -> bytes:
        while True:
            try:
                found = self._tls.read(_CHUNK)
            except ssl.SSLWantReadError:
                await self._flush()
                if not await self._take():
                    return b""
                continue
            except ssl.SSLZeroReturnError:
                return b""
            # TLS may have to answer what it read, key updates for one.
            await self._flush()
            return found

    async def write(self, data: bytes) -> None:
        self._tls.write(data)
        await self._flush()

    async def close(self) -> None:
        await self._inner.close()

    def peer_certificate(self) -> bytes | None:
        """In DER, once the tunnel is open."""
        return self._tls.getpeercert(binary_form=True)

    async def _flush(self) -> None:
        if self._out.pending:
            await self._inner.write(self._out.read())

    async def _fill(self) -> None:
        if not await self._take():
            raise ConnectionError("the connection was closed during the TLS handshake")

    async def _take(self) -> bool:
        raw = await self._inner.read()
        if not raw:
            self._in.write_eof()
            return False
        self._in.write(raw)
        return True


def context_of(authority_pem: bytes, certificate_path: str) -> ssl.SSLContext:
    """Trusts `authority_pem` alone, and shows the certificate (with its key) in the file."""
    context = ResumingContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    # The port-forward already names the Pod, and etcd's authority signs nothing but members: the names in their
    # certificates are the users' to choose.
    context.check_hostname = False
    context.verify_mode = ssl.CERT_REQUIRED
    context.verify_flags &= ~getattr(ssl, "VERIFY_X509_STRICT", ssl.VerifyFlags(0))
    context.load_verify_locations(cadata=authority_pem.decode("ascii"))
    context.load_cert_chain(certificate_path)
    context.set_alpn_protocols(["h2"])
    return context
