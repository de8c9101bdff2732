"""Why a connection failed, in plain words. Texts of the socket and TLS libraries never reach a user."""

from __future__ import annotations

import asyncio
import errno
import os
import re
import socket
import ssl

_NUMBER = re.compile(r"\[Errno (\d+)\]")
_TITLE = re.compile(r"<title[^>]*>([^<]+)</title", re.I)
# What OpenSSL calls it > what it means.
_TLS = (
    (
        re.compile(
            r"WRONG_VERSION_NUMBER|HTTP_REQUEST|HTTPS_PROXY_REQUEST|RECORD_LAYER|PACKET_LENGTH|UNKNOWN_PROTOCOL"
        ),
        "the server does not speak TLS on this port",
    ),
    (re.compile(r"CERTIFICATE_REQUIRED"), "the server requires a client certificate"),
    (
        re.compile(r"ALERT_(UNKNOWN_CA|BAD_CERTIFICATE|CERTIFICATE|UNSUPPORTED_CERTIFICATE|DECRYPT_ERROR)"),
        "the server does not accept the client certificate",
    ),
    (re.compile(r"UNRECOGNIZED_NAME"), "the server does not know this host name"),
    (
        re.compile(r"PROTOCOL_VERSION|UNSUPPORTED_PROTOCOL|NO_PROTOCOLS_AVAILABLE"),
        "the server and Homeport have no TLS version in common",
    ),
    (
        re.compile(r"HANDSHAKE_FAILURE|NO_SHARED_CIPHER|NO_CIPHERS"),
        "the server and Homeport have no TLS cipher in common",
    ),
    (re.compile(r"UNEXPECTED_EOF|EOF occurred"), "the server closed the connection"),
)


class ProxyFailure(ConnectionError):
    """The proxy, or what it reports of the server, in words for a user."""


def socket_reason(error: BaseException) -> str:
    """Of an OSError, an SSLError or a timeout."""
    if isinstance(error, ProxyFailure):
        return str(error)
    if isinstance(error, ssl.SSLError):
        return ssl_reason(error)
    if isinstance(error, TimeoutError):
        return "no answer in time"
    if isinstance(error, socket.gaierror):
        return f"the host name can't be resolved: {(error.strerror or 'not known').lower()}"
    number = _number(error)
    if number:
        return os.strerror(number).lower()
    if isinstance(error, ConnectionResetError):  # without a word, by asyncio
        return "the connection was reset"
    if isinstance(error, asyncio.IncompleteReadError | EOFError | BrokenPipeError | ConnectionError):
        return "the server closed the connection"
    return "the connection failed"


def ssl_reason(error: BaseException) -> str:
    """`error`: what the TLS library raised, or an error that wraps it."""
    verified = getattr(error, "verify_message", "")
    if verified:
        return str(verified).rstrip(".")
    name = str(getattr(error, "reason", "") or error)
    return next((text for pattern, text in _TLS if pattern.search(name)), "the TLS handshake failed")


def _number(error: BaseException) -> int:
    """Of the first of several addresses that were tried in vain, too: asyncio writes those into a text."""
    own = error.errno if isinstance(error, OSError) else None
    found = _NUMBER.search(str(error))
    number = own or (int(found.group(1)) if found else 0)
    return number if number in errno.errorcode else 0


def body_text(body: bytes) -> str:
    """What an answer says that is not JSON. A web page is not for a message: only its title is."""
    text = body[:2000].decode(errors="replace").strip()
    if not text.startswith("<"):
        return text[:300]
    title = _TITLE.search(text)
    named = f' with the title "{" ".join(title.group(1).split())[:80]}"' if title else ""
    return f"a web page{named}, probably of a proxy or load balancer in between"
