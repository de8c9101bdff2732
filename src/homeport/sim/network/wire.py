"""Fetches files as a host of the simulated network does. Loopback addresses are this machine's own."""

from __future__ import annotations

import hashlib
import ssl
from collections.abc import Callable
from ipaddress import ip_address
from urllib.parse import urlsplit

import aiohttp

from homeport.sim.engine.download import Fetched

_CHUNK = 1 << 20
_SILENCE_SECONDS = 60.0


class Fetcher:
    """`proxy` is the URL of the network's proxy; `authority` gives the CA certificates (PEM) that hosts of the network
    have."""

    def __init__(self, proxy: Callable[[], str], authority: Callable[[], bytes]) -> None:
        self._proxy = proxy
        self._authority = authority

    async def __call__(self, url: str) -> Fetched:
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=_SILENCE_SECONDS, sock_read=_SILENCE_SECONDS)
        proxy = None if _is_loopback(url) else self._proxy()
        try:
            async with (
                aiohttp.ClientSession(timeout=timeout, connector=aiohttp.TCPConnector(ssl=self._tls())) as session,
                session.get(
                    url,
                    proxy=proxy,
                    headers={"Accept-Encoding": "identity"},
                    # Without the proxy a redirect could lead out of this machine.
                    allow_redirects=proxy is not None,
                ) as answer,
            ):
                if answer.status != 200:
                    return Fetched(answer.status, error=f"got {answer.status} status code from {url}")
                return await _read(answer)
        except aiohttp.ClientHttpProxyError as error:
            return Fetched(error=f"could not download {url}: {error.message or error.status}")
        except (aiohttp.ClientError, TimeoutError, OSError, ValueError) as error:
            return Fetched(error=f"could not download {url}: {_reason(error)}")

    def _tls(self) -> ssl.SSLContext:
        made = ssl.create_default_context()
        if pem := self._authority():
            made.load_verify_locations(cadata=pem.decode("ascii"))
        return made


def _reason(error: Exception) -> str:
    """As Go programs word it, which vendors use to download."""
    if isinstance(error, aiohttp.ClientSSLError | aiohttp.ClientConnectorCertificateError):
        return "tls: failed to verify certificate: x509: certificate signed by unknown authority"
    if isinstance(error, aiohttp.ClientPayloadError | aiohttp.ServerDisconnectedError):
        return "unexpected EOF"
    if isinstance(error, TimeoutError):
        return f"timed out: no data for {_SILENCE_SECONDS:g} s"
    if isinstance(error, aiohttp.ClientConnectorError):
        return "connect: connection refused"
    return str(error) or type(error).__name__


async def _read(answer: aiohttp.ClientResponse) -> Fetched:
    short, long, size = hashlib.sha256(), hashlib.sha512(), 0
    async for chunk in answer.content.iter_chunked(_CHUNK):
        short.update(chunk)
        long.update(chunk)
        size += len(chunk)
    return Fetched(200, size, short.hexdigest(), long.hexdigest())


def _is_loopback(url: str) -> bool:
    host = urlsplit(url).hostname or ""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
