"""Requests to registries and repositories. Nothing else of charts knows HTTP.

TLS is verified. A redirect to another host goes without credentials, and none leads from TLS to plain HTTP.
"""

from __future__ import annotations

import socket
import ssl
import urllib.request
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from ipaddress import ip_address
from types import TracebackType
from typing import Final
from urllib.parse import urljoin, urlsplit

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult
from aiohttp.resolver import ThreadedResolver
from yarl import URL

from homeport import __version__
from homeport.client.dial import DIRECT, DialOptions, is_own_address, is_own_host
from homeport.client.wire.failure import BROKEN, reason_of, tls_reason
from homeport.helm.errors import SourceError
from homeport.helm.source.reference import host_of, without_user

LARGEST_BYTES: Final = 100 << 20
_REDIRECTS: Final = frozenset({301, 302, 303, 307, 308})
_MOST_REDIRECTS: Final = 10
_CHUNK: Final = 1 << 16
_SIMULATED: Final = " (in simulation, only simulated hosts answer: use --charts or --chart-mirror for other charts)"
# Credentials of any form; a redirect to another host goes without them.
_PRIVATE: Final = frozenset({"authorization", "cookie"})


@dataclass(frozen=True, slots=True)
class Reply:
    status: int
    headers: Mapping[str, str]
    body: bytes
    url: str


@dataclass(frozen=True, slots=True)
class Trust:
    """`ca`: PEM certificates to trust instead of the system's. `plain_http`: hosts asked without TLS, as told.

    `dial`: in simulation, all hosts but this machine itself are those of the simulated network. `outside`: no address,
    redirect or name leads to this machine or its link: who chose the address has no right to what is served there.
    """

    ca: bytes | None = None
    plain_http: bool = False
    timeout_seconds: float = 60.0
    dial: DialOptions = DIRECT
    outside: bool = False

    @property
    def scheme(self) -> str:
        return "http" if self.plain_http else "https"


class Wire:
    """Use it as an async context manager: it holds connections."""

    def __init__(self, trust: Trust) -> None:
        self._trust = trust
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Wire:
        timeout = aiohttp.ClientTimeout(total=self._trust.timeout_seconds, sock_connect=10)
        self._session = aiohttp.ClientSession(
            timeout=timeout,
            connector=aiohttp.TCPConnector(ssl=self._context(), resolver=self._resolver()),
            headers={"User-Agent": f"homeport/{__version__}"},
            cookie_jar=aiohttp.DummyCookieJar(),
        )
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._session is not None:
            await self._session.close()

    async def get(self, url: str, headers: Mapping[str, str] | None = None, limit: int = LARGEST_BYTES) -> Reply:
        """The answer after redirects, whatever its code. Raises SourceError if there is none."""
        self._check_scheme(url)
        sent = dict(headers or {})
        for _ in range(_MOST_REDIRECTS):
            reply = await self._once(url, sent, limit)
            target = reply.headers.get("Location")
            if reply.status not in _REDIRECTS or not target:
                return reply
            following = urljoin(url, target)
            self._check_redirect(url, following)
            if host_of(following) != host_of(url):
                sent = {name: value for name, value in sent.items() if name.lower() not in _PRIVATE}
            url = following
        raise SourceError(f"{shown(url)}: more than {_MOST_REDIRECTS} redirects")

    async def post(self, url: str, form: Mapping[str, str], limit: int) -> Reply:
        """A form with secrets in it: a redirect is not followed."""
        self._check_scheme(url)
        return await self._once(url, {}, limit, form)

    async def _once(
        self, url: str, headers: Mapping[str, str], limit: int, form: Mapping[str, str] | None = None
    ) -> Reply:
        assert self._session is not None
        if self._trust.outside and is_own_host(host := urlsplit(url).hostname or ""):
            raise SourceError(_own(shown(url), host))
        method = "GET" if form is None else "POST"
        try:
            async with self._session.request(
                method,
                URL(url, encoded=True),
                headers=headers,
                data=form,
                allow_redirects=False,
                proxy=self._proxy(url),
            ) as response:
                body = bytearray()
                async for chunk in response.content.iter_chunked(_CHUNK):
                    body += chunk
                    if len(body) > limit:
                        raise SourceError(f"{shown(url)}: the answer is larger than {limit >> 20} MiB")
                return Reply(response.status, response.headers.copy(), bytes(body), url)
        except _OwnHost as error:
            raise SourceError(_own(shown(url), str(error))) from None
        except aiohttp.ClientSSLError as error:
            raise SourceError(
                f"{shown(url)}: its TLS certificate can't be verified: {tls_reason(error)}. "
                "Name the certificate authority that signed it",
                transient=True,
            ) from None
        except BROKEN as error:
            hint = _SIMULATED if self._trust.dial.proxy else ""
            raise SourceError(f"{shown(url)}: {reason_of(error)}{hint}", transient=True) from None
        except ValueError:
            raise SourceError(f"{shown(url)} is not a valid address") from None

    def _check_scheme(self, url: str) -> None:
        scheme = urlsplit(url).scheme
        if scheme == "https" or (scheme == "http" and self._trust.plain_http):
            return
        if scheme == "http":
            raise SourceError(f"{shown(url)}: plain HTTP is not used unless it is allowed explicitly; use https")
        raise SourceError(f"{shown(url)}: expected an address that begins with https://")

    def _check_redirect(self, url: str, following: str) -> None:
        if urlsplit(url).scheme == "https" and urlsplit(following).scheme != "https":
            raise SourceError(f"{shown(url)} redirects to {shown(following)}, which is not https: refused")
        self._check_scheme(following)

    def _context(self) -> ssl.SSLContext:
        try:
            return self._trust.dial.tls(self._trust.ca)
        except ValueError:
            raise SourceError("the certificate authority is not a PEM certificate") from None

    def _resolver(self) -> AbstractResolver | None:
        if not self._trust.outside:
            return None
        proxies = (self._trust.dial.proxy, *urllib.request.getproxies().values())
        return _OutsideResolver({urlsplit(each).hostname or "" for each in proxies})

    def _proxy(self, url: str) -> str | None:
        host = urlsplit(url).hostname or ""
        if not self._trust.dial.proxy:
            return _proxy(url)
        return None if is_loopback(host) else self._trust.dial.proxy


class _OwnHost(Exception):
    """What a name resolves to."""


class _OutsideResolver(ThreadedResolver):
    """The connection is made to the address that was looked at: no second answer of a name server is asked for."""

    def __init__(self, proxies: Collection[str]) -> None:
        super().__init__()
        self._proxies = proxies

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        found = await super().resolve(host, port, family)
        own = next((each["host"] for each in found if is_own_address(each["host"])), "")
        if own and host not in self._proxies:
            raise _OwnHost(f"{host} ({own})")
        return found


def _own(url: str, host: str) -> str:
    return f"{url}: {host} is the management plane's own host or network: name a repository elsewhere"


def shown(url: str) -> str:
    """An address for messages: without user, password and query, which may hold a signature."""
    return without_user(url).split("?", 1)[0]


def _proxy(url: str) -> str | None:
    parts = urlsplit(url)
    if not parts.hostname or urllib.request.proxy_bypass(parts.hostname):
        return None
    return urllib.request.getproxies().get(parts.scheme)


def is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
