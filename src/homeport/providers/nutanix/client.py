"""HTTP to Prism Central: sessions, retries, and every failure in the words of infra/error.py."""

from __future__ import annotations

import asyncio
import json
import re
import ssl
import uuid
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import aiohttp
import orjson

from homeport.client.dial import DialOptions
from homeport.client.wire.failure import reason_of
from homeport.client.wire.reason import body_text
from homeport.infra.error import (
    Denied,
    Exhausted,
    Misconfigured,
    Missing,
    Outdated,
    ProviderError,
    Rejected,
    Stale,
    Taken,
    Throttled,
    Unreachable,
)
from homeport.infra.vendor.account import Account
from homeport.infra.vendor.endpoint import Endpoint

_TIMEOUT = aiohttp.ClientTimeout(total=60.0, connect=15.0)
# Images are large: only silence ends an upload.
_UPLOAD_TIMEOUT = aiohttp.ClientTimeout(total=None, connect=15.0, sock_read=300.0)
# Codes that mean "not here, not now" rather than "not like this".
_CAPACITY = ("VMM-34418", "VMM-31800", "VMM-31802")
# Of an address that was asked for: it is somebody's, or the subnet gives out none.
_TAKEN_WORDS = re.compile(
    r"\bIP\b.*\b(in use|already (in use|used|assigned|allocated|taken)|conflict)|IP_ADDRESS_IN_USE", re.IGNORECASE
)
_MISFIT_WORDS = re.compile(r"unmanaged (network|subnet)|outside of the subnet|not (with)?in the subnet", re.IGNORECASE)
_CAPACITY_WORDS = re.compile(r"insufficient|not enough|no host|quota|exhaust|full", re.IGNORECASE)
_SAFE_METHODS = ("GET", "OPTIONS", "HEAD")


@dataclass(frozen=True, slots=True)
class Credentials:
    """Either a user and password or an API key. Never shown."""

    username: str = ""
    password: str = ""
    api_key: str = ""
    origin: str = ""  # where they come from, for messages

    def __repr__(self) -> str:
        return f"Credentials(from {self.origin})"

    def headers(self) -> dict[str, str]:
        if self.api_key:
            return {"X-ntnx-api-key": self.api_key}
        return {"Authorization": aiohttp.encode_basic_auth(self.username, self.password, "utf-8")}


@dataclass(frozen=True, slots=True)
class Reply:
    status: int
    body: Any
    etag: str = ""


@dataclass(frozen=True, slots=True)
class _Request:
    method: str
    path: str
    query: Mapping[str, str] | None
    payload: bytes | None
    headers: dict[str, str]


class Client:
    """One Prism Central and one user. Cookies carry the session; credentials are sent when there is none."""

    def __init__(
        self,
        address: str,
        port: int,
        credentials: Credentials,
        endpoint: Endpoint,
        *,
        dial: DialOptions,
        bundle: bytes | None = None,
        insecure: bool = False,
        trust: str = "spec.prismCentral.additionalTrustBundle",
        account: Account | None = None,
    ) -> None:
        """`trust`: where users set the CA of Prism Central, for messages. `account`: what earlier clients learned."""
        host = f"[{address}]" if ":" in address and not address.startswith("[") else address
        self.address = f"{host}:{port}"
        self._root = f"https://{self.address}"
        self._credentials = credentials
        self._endpoint = endpoint
        self._proxy = dial.proxy or None
        self._tls = _insecure_tls() if insecure else _tls(dial, bundle, trust)
        self._trust = trust
        self._session: aiohttp.ClientSession | None = None
        self._logged_in = False
        self._account = account or Account(endpoint.clock)
        self._login = asyncio.Lock()
        self._sessions = 0  # how many there have been
        self._closed = False

    async def close(self) -> None:
        self._closed = True
        if self._session is not None:
            await self._session.close()
            self._session = None

    async def call(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: object = None,
        etag: str = "",
        request_id: str = "",
        what: str = "",
    ) -> Reply:
        """The answer to a request, decoded. `what` names its object for messages. Raises ProviderError."""
        self._account.check()
        async with self._endpoint.turn():
            headers = {"NTNX-Request-Id": request_id or str(uuid.uuid4()), "Accept": "application/json"}
            if etag:
                headers["If-Match"] = etag
            payload = None if body is None else orjson.dumps(body)
            if payload is not None:
                headers["Content-Type"] = "application/json"
            reply = await self._authenticated(_Request(method, path, query, payload, headers))
            if reply.status >= 400:
                raise self._error(reply, what)
            return reply

    async def upload(self, path: str, content: AsyncIterator[bytes], headers: Mapping[str, str], *, what: str) -> None:
        """Sends bytes; returns when Prism Central has all of them. Raises ProviderError.

        It takes no turn of the endpoint: others would wait for it.
        """
        await self.call("GET", "/api/nutanix/v3/users/me", what="the user")  # the session must not end within the bytes
        sent = {"Content-Type": "application/octet-stream", "Accept": "application/json", **headers}
        session = self._opened()
        sent |= {} if self._logged_in else self._credentials.headers()
        try:
            async with session.put(
                self._root + path, data=content, headers=sent, proxy=self._proxy, timeout=_UPLOAD_TIMEOUT
            ) as answer:
                data = await answer.read()
                after = {"Retry-After": answer.headers.get("Retry-After", "")}
                reply = Reply(answer.status, _decoded(data, answer.status, after))
        except (aiohttp.ClientError, TimeoutError, OSError) as failed:
            raise self._no_answer(failed) from failed
        if reply.status >= 400:
            raise self._error(reply, what)

    # -- sessions ----------------------------------------------------------------------------------------------

    async def _authenticated(self, request: _Request) -> Reply:
        if not self._logged_in and self._credentials.password:
            return await self._log_in(request)
        session = self._sessions
        reply = await self._send(request)
        if reply.status != 401:
            return reply
        if self._sessions == session:  # no other request has renewed it yet
            self._forget_session()
        return await self._log_in(request)

    async def _log_in(self, request: _Request) -> Reply:
        """One at a time: the others use the session of the first, or learn from it that the credentials are wrong."""
        async with self._login:
            self._account.check()
            reply = await self._send(request)
            if reply.status == 401 and self._logged_in:
                self._forget_session()
                reply = await self._send(request)
            if reply.status == 401:
                error = self._error(reply, "")
                raise self._account.refuse(error) if isinstance(error, Denied) else error
            self._account.accept()
            return reply

    async def _send(self, request: _Request) -> Reply:
        """A kept-alive connection may have died without our knowing: what is safe to repeat is sent once more."""
        repeatable = request.method in _SAFE_METHODS
        try:
            return await self._once(request)
        except (aiohttp.ServerDisconnectedError, aiohttp.ClientOSError) as lost:
            if not repeatable or isinstance(lost, aiohttp.ClientConnectorError):
                raise self._no_answer(lost) from lost
        except (aiohttp.ClientError, TimeoutError, OSError) as failed:
            raise self._no_answer(failed) from failed
        try:
            return await self._once(request)
        except (aiohttp.ClientError, TimeoutError, OSError) as failed:
            raise self._no_answer(failed) from failed

    async def _once(self, request: _Request) -> Reply:
        session = self._opened()
        sent = request.headers if self._logged_in else request.headers | self._credentials.headers()
        url = self._root + request.path
        async with session.request(
            request.method, url, params=request.query, data=request.payload, headers=sent, proxy=self._proxy
        ) as answer:
            data = await answer.read()
            if answer.cookies and answer.status < 400:
                self._logged_in = True
            after = {"Retry-After": answer.headers.get("Retry-After", "")}
            etag = answer.headers.get("ETag") or answer.headers.get("X-Ntnx-Etag") or ""
            return Reply(answer.status, _decoded(data, answer.status, after), etag)

    def _opened(self) -> aiohttp.ClientSession:
        if self._closed:  # a leftover caller: no one would close its connection
            raise Unreachable(f"the connection to Prism Central {self.address} was closed")
        if self._session is None:
            # Servers are named by bare addresses as often as not: their cookies count all the same.
            jar = aiohttp.CookieJar(unsafe=True)
            connector = aiohttp.TCPConnector(ssl=self._tls, limit=32, keepalive_timeout=60.0)
            self._session = aiohttp.ClientSession(
                connector=connector, cookie_jar=jar, timeout=_TIMEOUT, trust_env=False
            )
        return self._session

    def _forget_session(self) -> None:
        self._logged_in = False
        self._sessions += 1
        if self._session is not None:
            self._session.cookie_jar.clear()

    # -- failures ----------------------------------------------------------------------------------------------

    def _no_answer(self, error: Exception) -> ProviderError:
        certificate = _certificate_error(error)
        if certificate:
            return Misconfigured(
                f"Prism Central {self.address}: the certificate is not trusted ({certificate}): set its CA in "
                f"{self._trust}, or correct the address"
            )
        if isinstance(error, asyncio.TimeoutError):
            return Unreachable(
                f"Prism Central {self.address} did not answer within {_TIMEOUT.total:.0f} s: check that no firewall "
                "blocks the port"
            )
        port = self.address.rpartition(":")[2]
        return Unreachable(
            f"Prism Central {self.address} can't be reached: {reason_of(error)}; check the address, and "
            f"that no firewall blocks port {port}"
        )

    def _error(self, reply: Reply, what: str) -> ProviderError:
        text, codes = read_error(reply.body)
        code = codes[0] if codes else ""
        about = f"Prism Central {self.address}" + (f": {what}" if what else "")
        said = f"{about}: {text or f'HTTP {reply.status}'}" + (f" ({code})" if code and code not in text else "")
        match reply.status:
            case 401:
                return self._denied(
                    f"Prism Central {self.address} rejects the credentials of {self._credentials.origin}: correct "
                    "the user name, password or API key in it",
                    code,
                )
            case 403:
                return self._denied(f"{said}; grant the role to the user of {self._credentials.origin}", code)
            case 404:
                return Missing(said, code=code)
            case 409:
                return Stale(said, code=code)
            case 412 | 428:
                return Outdated(said, code=code)
            case 429:
                return Throttled(f"{about} is throttling", after=_after(reply.body), code=code)
            case 408 | 500 | 501 | 502 | 503 | 504:
                return Unreachable(said, code=code)
        if _TAKEN_WORDS.search(text):
            return Taken(said, code=code)
        if set(codes) & set(_CAPACITY):
            return Exhausted(said, code=code)
        return Rejected(said, code=code)

    def _denied(self, message: str, code: str) -> Denied:
        error = Denied(message, code=code)
        error.origin = self._credentials.origin
        return error


def failed_task(text: str, codes: Sequence[str], what: str) -> ProviderError:
    """The error that a failed task means for its caller."""
    said = f"{what}: {text or 'failed without saying why'}"
    if _TAKEN_WORDS.search(text):
        return Taken(said, code=codes[0] if codes else "")
    if _MISFIT_WORDS.search(text):
        return Misconfigured(said, code=codes[0] if codes else "")
    if set(codes) & set(_CAPACITY) or _CAPACITY_WORDS.search(text):
        return Exhausted(said, code=codes[0] if codes else "")
    return Rejected(said, code=codes[0] if codes else "")


def read_error(body: object) -> tuple[str, list[str]]:
    """The sentences and codes of an error body, v4's or v3's."""
    if not isinstance(body, dict):
        return (str(body)[:300] if body else "", [])
    error = (body.get("data") or {}).get("error") if isinstance(body.get("data"), dict) else None
    if isinstance(error, list):
        texts = [str(each.get("message", "")) for each in error if isinstance(each, dict)]
        return "; ".join(filter(None, texts)), [str(e["code"]) for e in error if isinstance(e, dict) and e.get("code")]
    if isinstance(error, dict):
        found = error.get("validationErrorMessages") or ()
        texts = [f"{each.get('attributePath', '')} {each.get('message', '')}".strip() for each in found]
        return "; ".join(filter(None, texts)) or str(error.get("error", "")), []
    listed = body.get("message_list")
    if isinstance(listed, list):
        texts = [str(each.get("message", "")) for each in listed if isinstance(each, dict)]
        return "; ".join(filter(None, texts)), [
            str(e["reason"]) for e in listed if isinstance(e, dict) and e.get("reason")
        ]
    return str(body.get("message") or ""), []


def _decoded(data: bytes, status: int, headers: Mapping[str, str]) -> Any:
    try:
        found = orjson.loads(data) if data else {}
    except json.JSONDecodeError:
        if status < 400:
            raise Unreachable("the response is not valid JSON: check that the address is a Prism Central") from None
        found = {"message": f"HTTP {status}, {body_text(data)}"}
    if status == 429 and isinstance(found, dict):
        found["retryAfter"] = headers["Retry-After"]
    return found


def _after(body: Any) -> float:
    text = str(body.get("retryAfter", "")) if isinstance(body, dict) else ""
    return float(text) if text.isdigit() else 5.0


def _certificate_error(error: BaseException | None) -> str:
    while error is not None:
        if isinstance(error, aiohttp.ClientConnectorCertificateError):
            error = error.certificate_error
        if isinstance(error, ssl.SSLCertVerificationError):
            return error.verify_message or str(error)
        error = error.__cause__ or error.__context__
    return ""


def _tls(dial: DialOptions, bundle: bytes | None, trust: str) -> ssl.SSLContext:
    try:
        return dial.tls(bundle)
    except ValueError as error:
        raise Misconfigured(f"{trust}: {error}") from None


def _insecure_tls() -> ssl.SSLContext:
    made = ssl.create_default_context()
    made.check_hostname = False
    made.verify_mode = ssl.CERT_NONE
    return made
