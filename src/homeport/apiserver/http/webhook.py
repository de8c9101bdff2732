"""Calls to webhooks: HTTPS POSTs with the configured CA, over pooled connections, bounded in time and size."""

from __future__ import annotations

import base64
import binascii
import hashlib
import ssl
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, NamedTuple

import aiohttp
from yarl import URL

from homeport.apiserver.webhook.call import CallFailed
from homeport.apiserver.webhook.endpoint import Address
from homeport.client.wire.failure import BROKEN, reason_of

# (namespace, name, port) of a Service > the address of one of its endpoints, or CallFailed.
Resolver = Callable[[str, str, int], Address]
# An endpoint's address > the URL of the HTTP proxy that leads to it. Raises OSError where nobody answers.
Route = Callable[[Address], Awaitable[str]]

POOLS = 64  # one per CA in use; the one idle longest is given up
IDLE_SECONDS = 30.0
CHUNK = 64 * 1024
_HEADERS = {
    "Content-Type": "application/json",
    "Accept": "application/json, */*",
    "User-Agent": "kube-apiserver-admission",
}


class _Target(NamedTuple):
    url: URL
    shown: str  # for people
    endpoint: Address | None = None  # of a Service
    server_name: str | None = None  # for TLS, where it differs from the URL's host


class WebhookCaller:
    """Use within one event loop, and `close` it there. `route` is set where endpoints are on a simulated network."""

    def __init__(self, resolver: Resolver) -> None:
        self._resolver = resolver
        self.route: Route | None = None
        self._sessions: OrderedDict[bytes, aiohttp.ClientSession] = OrderedDict()

    async def close(self) -> None:
        sessions, self._sessions = list(self._sessions.values()), OrderedDict()
        for session in sessions:
            await session.close()

    async def call(self, client: Mapping[str, Any], body: bytes, timeout: float, limit: int) -> bytes:
        target = self._target(client, timeout)
        session = await self._session(client.get("caBundle") or "")
        try:
            proxy = await self.route(target.endpoint) if self.route and target.endpoint else None
            try:
                return await self._post(session, target, proxy, body, timeout, limit)
            except (aiohttp.ServerDisconnectedError, ConnectionResetError):
                # A kept connection that the other side had closed meanwhile. Asking twice does no harm.
                return await self._post(session, target, proxy, body, timeout, limit)
        except TimeoutError as late:
            raise CallFailed(f"{target.shown}: {late.strerror or 'context deadline exceeded'}") from late
        except (aiohttp.ClientError, OSError, ValueError) as failed:
            raise CallFailed(f"{target.shown}: {_reason(failed)}") from failed

    async def _post(
        self,
        session: aiohttp.ClientSession,
        target: _Target,
        proxy: str | None,
        body: bytes,
        timeout: float,
        limit: int,
    ) -> bytes:
        async with session.post(
            target.url,
            data=body,
            headers=_HEADERS,
            allow_redirects=False,
            timeout=aiohttp.ClientTimeout(total=timeout),
            server_hostname=target.server_name,
            proxy=proxy,
        ) as response:
            if not 200 <= response.status < 300:
                raise CallFailed(await _refusal(response))
            return await _read(response, limit)

    def _target(self, client: Mapping[str, Any], timeout: float) -> _Target:
        query = {"timeout": f"{timeout:g}s"}
        if client.get("url"):
            url = _parse(client["url"]).update_query(query)
            return _Target(url, f'Post "{url}"')
        service = client.get("service")
        if not isinstance(service, dict):
            raise CallFailed("the webhook's clientConfig has neither url nor service")
        namespace, name = service.get("namespace", ""), service.get("name", "")
        port = int(service.get("port") or 443)
        dns_name = f"{name}.{namespace}.svc"
        path = "/" + str(service.get("path") or "").lstrip("/")
        shown = f'Post "https://{dns_name}:{port}{path}?timeout={timeout:g}s"'
        try:
            endpoint = self._resolver(namespace, name, port)
        except CallFailed as failed:
            raise CallFailed(f"{shown}: {failed}") from failed
        base = URL.build(scheme="https", host=endpoint.host, port=endpoint.port)
        return _Target(base.with_path(path).update_query(query), shown, endpoint, dns_name)

    async def _session(self, bundle: str) -> aiohttp.ClientSession:
        key = hashlib.sha256(bundle.encode()).digest()
        session = self._sessions.get(key)
        if session is None:
            connector = aiohttp.TCPConnector(ssl=_trust(bundle), keepalive_timeout=IDLE_SECONDS, limit_per_host=0)
            session = aiohttp.ClientSession(connector=connector, trust_env=False, auto_decompress=True)
            self._sessions[key] = session
            if len(self._sessions) > POOLS:
                _, oldest = self._sessions.popitem(last=False)
                await oldest.close()
        self._sessions.move_to_end(key)
        return session


def _parse(text: str) -> URL:
    try:
        url = URL(text)
    except ValueError as broken:
        raise CallFailed(f'the webhook\'s url "{text}" is not one: {broken}') from broken
    if url.scheme != "https" or not url.host:
        raise CallFailed(f'the webhook\'s url "{text}" must begin with https:// and name a host')
    return url


def _trust(bundle: str) -> ssl.SSLContext:
    """The CAs of the bundle, or those of the system where there is none."""
    try:
        pem = base64.b64decode(bundle, validate=True).decode("ascii")
        return ssl.create_default_context(cadata=pem) if pem else ssl.create_default_context()
    except (binascii.Error, UnicodeDecodeError, ssl.SSLError) as broken:
        raise CallFailed(
            f"unable to load root certificates: the caBundle contains no PEM certificates ({broken})"
        ) from broken


def _reason(failed: Exception) -> str:
    """In the words of Kubernetes where there are some: people search for them."""
    if isinstance(failed, aiohttp.ClientConnectorCertificateError):
        inner = failed.certificate_error
        return f"tls: failed to verify certificate: {getattr(inner, 'verify_message', '') or inner}"
    if isinstance(failed, aiohttp.ClientConnectorDNSError):
        return f"dial tcp: lookup {failed.host}: no such host"
    if isinstance(failed, aiohttp.ClientConnectorError) and isinstance(failed.os_error, ConnectionRefusedError):
        return f"dial tcp {failed.host}:{failed.port}: connect: connection refused"
    if isinstance(failed, OSError) and not isinstance(failed, aiohttp.ClientError) and failed.strerror:
        return f"dial tcp: {failed.strerror}"
    return reason_of(failed) if isinstance(failed, BROKEN) else str(failed)


async def _refusal(response: aiohttp.ClientResponse) -> str:
    if response.status == 404:
        return "the server could not find the requested resource"
    said = ""
    if response.content_type == "text/plain":
        said = (await response.content.read(200)).decode("utf-8", "replace").strip()
    said = said or f"status {response.status}"
    return f'an error on the server ("{said}") has prevented the request from succeeding'


async def _read(response: aiohttp.ClientResponse, limit: int) -> bytes:
    parts: list[bytes] = []
    size = 0
    async for part in response.content.iter_chunked(CHUNK):
        size += len(part)
        if size > limit:
            raise CallFailed(f"the webhook's answer has more than {limit} bytes")
        parts.append(part)
    return b"".join(parts)
