"""The other side of the log-in: what `homeport dashboard` does."""

from __future__ import annotations

import asyncio
import http.client
import ssl
from urllib.parse import urlsplit

import msgspec

from homeport.client.config import Config
from homeport.client.wire.reason import socket_reason
from homeport.dashboard.guard import is_loopback
from homeport.dashboard.handover import read
from homeport.dashboard.page import BASE

_SECONDS = 15.0


class LoginError(Exception):
    """The dashboard did not let us in; the text says why."""


async def log_in(config: Config, address: str, ca: str = "") -> tuple[str, str]:
    """A link that opens the page once, and the name of the user. `ca` (PEM) is trusted besides the system's.

    Raises LoginError or ApiError.
    """
    parts = urlsplit(address)
    if parts.scheme != "https" and not (parts.scheme == "http" and is_loopback(parts.hostname or "")):
        raise LoginError(f"address {address!r}: expected https://HOST/dashboard/, as your credential is sent there")
    address = f"{parts.scheme}://{parts.netloc}{BASE}"
    body = msgspec.json.encode(await read(config))
    status, answer = await asyncio.to_thread(_post, address, body, ca)
    try:
        content = msgspec.json.decode(answer)
    except msgspec.DecodeError:
        raise LoginError(f"{address} is not a dashboard of Homeport") from None
    if status != 200:
        raise LoginError(f"the dashboard refused the log-in: {content.get('message')}")
    return f"{address}#code={content['code']}", str(content["user"])


def _post(address: str, body: bytes, ca: str) -> tuple[int, bytes]:
    connection = _connection(address, ca)
    try:
        connection.request("POST", f"{BASE}login", body, {"Content-Type": "application/json"})
        answer = connection.getresponse()
        return answer.status, answer.read()
    except ssl.SSLCertVerificationError as error:
        raise LoginError(
            f"the certificate of {address} is not trusted ({error.verify_message}): use --ca FILE with the CA that "
            "signed it"
        ) from error
    except (OSError, http.client.HTTPException) as error:
        raise LoginError(
            f"the dashboard at {address} does not answer ({socket_reason(error)}): see whether it runs"
        ) from error
    finally:
        connection.close()


def _connection(address: str, ca: str) -> http.client.HTTPConnection:
    parts = urlsplit(address)
    if parts.scheme == "http":
        return http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=_SECONDS)
    context = ssl.create_default_context()
    context.verify_flags &= ~getattr(ssl, "VERIFY_X509_STRICT", ssl.VerifyFlags(0))
    if ca:
        try:
            context.load_verify_locations(cadata=ca)
        except ssl.SSLError as error:
            raise LoginError("the CA of the dashboard is not valid PEM") from error
    return http.client.HTTPSConnection(parts.hostname or "", parts.port, timeout=_SECONDS, context=context)
