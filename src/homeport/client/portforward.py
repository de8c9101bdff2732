"""A connection to a port of a Pod, as a stream of bytes.

Spoken over a WebSocket in the channel protocol: kube-apiservers old and new take it, and it needs no framing besides.
Its price: each forwarded connection is a connection to the API server of its own, and what is sent can't be ended
before what is received.
"""

from __future__ import annotations

from typing import Protocol, Self

from homeport.api.meta import Resource
from homeport.client.protocol import Key
from homeport.client.wire.address import segment, with_query

PIECE_BYTES = 64 * 1024
_PODS = Resource("", "v1", "Pod", "pods")
_DATA, _ERROR = 0, 1


class ForwardError(ConnectionError):
    """The port could not be reached, or no longer; says why in the words of the Pod's node."""


class Messages(Protocol):
    """A WebSocket."""

    async def send(self, message: bytes) -> None:
        """Raises ConnectionError."""

    async def receive(self) -> bytes | None:
        """None: the other side closed it in order. Raises ConnectionError."""

    async def close(self) -> None: ...


class Stream:
    """Bytes to and from the port. One task may read while another writes; `close` in any case, or use `async with`."""

    def __init__(self, messages: Messages, what: str) -> None:
        self._messages = messages
        self._what = what
        self._rest = b""
        self._ended = False
        self._closed = False

    @classmethod
    async def open(cls, messages: Messages, port: int, what: str) -> Self:
        """Reads the first message of both channels. Raises ForwardError."""
        made = cls(messages, what)
        try:
            for channel in (_DATA, _ERROR):
                first = await messages.receive()
                if first is None or len(first) != 3 or first[0] != channel:
                    raise ForwardError(f"{what}: the server does not speak the channel protocol of port forwarding")
                if int.from_bytes(first[1:], "little") != port:
                    raise ForwardError(f"{what}: the server forwards port {int.from_bytes(first[1:], 'little')}")
        except BaseException:
            await messages.close()
            raise
        return made

    async def read(self, n: int = -1) -> bytes:
        """What has come, at most `n` bytes; b"" at the end. Raises ForwardError or ConnectionError."""
        while not self._rest and not self._ended:
            message = await self._messages.receive()
            if message is None:
                self._ended = True
            elif message[:1] == bytes((_ERROR,)):
                self._ended = True
                raise ForwardError(f"{self._what}: {message[1:].decode(errors='replace')}")
            elif message[:1] == bytes((_DATA,)):
                self._rest = message[1:]
        if n < 0 or n >= len(self._rest):
            found, self._rest = self._rest, b""
        else:
            found, self._rest = self._rest[:n], self._rest[n:]
        return found

    async def write(self, data: bytes) -> None:
        """Waits while the other side is slow. Raises ConnectionError."""
        if self._closed:
            raise ConnectionError(f"{self._what}: the stream is closed")
        for start in range(0, len(data), PIECE_BYTES):
            await self._messages.send(bytes((_DATA,)) + data[start : start + PIECE_BYTES])

    async def drain(self) -> None:
        """Nothing: `write` has waited already."""

    async def close(self) -> None:
        if not self._closed:
            self._closed = self._ended = True
            await self._messages.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()


def forward_path(key: Key, port: int) -> str:
    path = _PODS.path(segment(key.namespace), segment(key.name), "portforward")
    return with_query(path, [("ports", str(port))])
