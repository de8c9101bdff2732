"""What can go wrong with a connection, and how to say it."""

from __future__ import annotations

import aiohttp

from homeport.client.wire.reason import socket_reason, ssl_reason

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
        return f"the host name can't be resolved: {(error.os_error.strerror or 'not known').lower()}"
    if isinstance(error, aiohttp.ClientSSLError):
        return tls_reason(error)
    inner = error.os_error if isinstance(error, aiohttp.ClientConnectorError) else error
    if isinstance(inner, OSError):
        return socket_reason(inner)
    if isinstance(error, aiohttp.ClientPayloadError):
        return "the response was cut off"
    if isinstance(error, aiohttp.InvalidURL):
        return "the address is not a valid URL"
    if isinstance(error, aiohttp.ClientResponseError):
        return "the response is not valid HTTP"
    # What the error says for itself is a Python call, or an object's address in memory.
    return "the connection failed"


def _proxy_reason(status: int) -> str:
    if status == 407:
        return "the proxy requires a user name and password (407)"
    if status == 403:
        return "the proxy does not allow connections to it (403)"
    # Bad Gateway and its kin say no more than this.
    return "nothing answers there through the proxy"


def tls_reason(error: aiohttp.ClientSSLError) -> str:
    return ssl_reason(getattr(error, "certificate_error", None) or error.os_error)
