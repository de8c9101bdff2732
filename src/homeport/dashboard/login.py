"""The other side of the log-in: what `homeport dashboard` does."""

from __future__ import annotations

import asyncio
import http.client
from urllib.parse import urlsplit

import msgspec

from homeport.client.config import Config
from homeport.dashboard.handover import read

_SECONDS = 15.0


class LoginError(Exception):
    """The dashboard did not let us in; the text says why."""


async def log_in(config: Config, address: str) -> tuple[str, str]:
    """A link that opens the page once, and the name of the user. Raises LoginError or ApiError."""
    body = msgspec.json.encode(await read(config))
    status, answer = await asyncio.to_thread(_post, address, body)
    try:
        content = msgspec.json.decode(answer)
    except msgspec.DecodeError:
        raise LoginError(f"{address} is not a dashboard of Homeport") from None
    if status != 200:
        raise LoginError(f"the dashboard refused the log-in: {content.get('message')}")
    return f"{address}#code={content['code']}", str(content["user"])


def _post(address: str, body: bytes) -> tuple[int, bytes]:
    parts = urlsplit(address)
    connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=_SECONDS)
    try:
        connection.request("POST", f"{parts.path}login", body, {"Content-Type": "application/json"})
        answer = connection.getresponse()
        return answer.status, answer.read()
    except OSError as error:
        raise LoginError(f"the dashboard at {address} does not answer ({error}): restart the plane") from error
    finally:
        connection.close()
