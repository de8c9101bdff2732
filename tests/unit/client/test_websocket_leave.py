"""A WebSocket over TLS is gone when it is closed, whatever its peer does."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import socket
import ssl
from concurrent.futures import ThreadPoolExecutor

import trustme

from homeport.client.config import Config
from homeport.client.http import HttpTransport, Timeouts
from homeport.client.wire.retry import Retry

_MAGIC = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
_CLOSE = b"\x88\x02\x03\xe8"


def _serve(listener: socket.socket, context: ssl.SSLContext) -> bytes:
    """Opens one WebSocket, says goodbye when the client does, and never ends TLS. The bytes up to the end of TCP."""
    plain, _ = listener.accept()
    plain.settimeout(10)
    with plain, context.wrap_socket(plain.dup(), server_side=True) as tls:
        head = b""
        while b"\r\n\r\n" not in head:
            head += tls.recv(4096)
        key = next(line[19:].strip() for line in head.split(b"\r\n") if line.lower().startswith(b"sec-websocket-key"))
        accept = base64.b64encode(hashlib.sha1(key + _MAGIC).digest())
        tls.sendall(
            b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            b"Sec-WebSocket-Protocol: v4.channel.k8s.io\r\nSec-WebSocket-Accept: " + accept + b"\r\n\r\n"
        )
        tls.recv(4096)
        tls.sendall(_CLOSE)
        rest = b""
        try:
            while chunk := plain.recv(4096):
                rest += chunk
        except ConnectionResetError:
            pass
        return rest


async def test_a_websocket_does_not_wait_for_the_end_of_tls() -> None:
    authority = trustme.CA()
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    with socket.create_server(("127.0.0.1", 0)) as listener, ThreadPoolExecutor(1) as pool:
        served = pool.submit(_serve, listener, context)
        config = Config(server=f"https://127.0.0.1:{listener.getsockname()[1]}", ca=authority.cert_pem.bytes())
        client = HttpTransport(config, Timeouts(), Retry())
        try:
            opened = await client.connect("/watch", "v4.channel.k8s.io")
            await opened.close()
            await asyncio.wrap_future(served)  # fails after the server's patience if TCP stays open
        finally:
            await client.close()
