"""What can go wrong with a connection, and how to say it."""

from __future__ import annotations

import os

import aiohttp

BROKEN = (aiohttp.ClientError, TimeoutError, OSError)
UNREACHED = (
    aiohttp.ClientConnectorError,
    aiohttp.ClientProxyConnectionError,
    aiohttp.ClientHttpProxyError,
    aiohttp.ConnectionTimeoutError,
)


def reason_of(error: BaseException) -> str:
    if isinstance(error, aiohttp.ServerDisconnectedError):
        return "the server closed the connection"
    if isinstance(error, aiohttp.ClientHttpProxyError):  # what it says for itself is a Python call
        return _proxy_reason(error.status)
    if isinstance(error, aiohttp.ConnectionTimeoutError):
        return "connecting took too long"
    if isinstance(error, TimeoutError):
        return "no answer in time"
    if isinstance(error, aiohttp.ClientConnectorDNSError):
        return f"the host name can't be resolved: {error.os_error.strerror or error.os_error}"
    inner = error.os_error if isinstance(error, aiohttp.ClientConnectorError) else error
    if isinstance(inner, OSError) and inner.errno:  # its own text may say where, but not what
        return os.strerror(inner.errno).lower()
    if isinstance(inner, ConnectionResetError):  # without a word, by asyncio
        return "the connection was reset"
    if isinstance(error, aiohttp.ClientPayloadError):
        return "the response was cut off"
    if isinstance(error, aiohttp.InvalidURL):
        return "the address is not a valid URL"
    if isinstance(error, aiohttp.ClientResponseError):
        return "the response is not valid HTTP"
    # What the error says for itself shows an object's address in memory: another text with every attempt.
    return str(inner) or type(inner).__name__


def _proxy_reason(status: int) -> str:
    if status == 407:
        return "the proxy requires a user name and password (407)"
    if status == 403:
        return "the proxy does not allow connections to it (403)"
    # Bad Gateway and its kin say no more than this.
    return "nothing answers there through the proxy"


def tls_reason(error: aiohttp.ClientSSLError) -> str:
    inner = getattr(error, "certificate_error", None) or error.os_error
    return getattr(inner, "verify_message", "") or getattr(inner, "reason", "") or str(inner)
