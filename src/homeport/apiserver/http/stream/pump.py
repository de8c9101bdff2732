"""One forwarded connection: bytes there and back until the far side has ended."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Protocol

from homeport.apiserver.registry import Forward

DIAL_SECONDS = 30.0
_CHUNK = 64 * 1024


class Channel(Protocol):
    """The client's side of the connection."""

    async def read(self) -> bytes:
        """b"" once the client has sent everything."""

    async def write(self, data: bytes) -> None:
        """Waits while the client is slow. What is written when it is gone goes nowhere."""


async def forward(channel: Channel, port: int, answer: Forward) -> str:
    """Returns what went wrong, or ''. Cancel it when the client is gone."""
    try:
        async with asyncio.timeout(DIAL_SECONDS):
            reader, writer = await answer.dial(port)
    except OSError as error:
        return f"error forwarding port {port} to {answer.subject}: {reason_of(error)}"
    upward = asyncio.create_task(_send(channel, writer), name=f"forwarding to port {port}")
    try:
        while chunk := await reader.read(_CHUNK):
            await channel.write(chunk)
    except ConnectionError as error:
        return f"error forwarding port {port} to {answer.subject}: {reason_of(error)}"
    finally:
        upward.cancel()
        writer.transport.abort()
        await asyncio.wait([upward])
    return ""


async def _send(channel: Channel, writer: asyncio.StreamWriter) -> None:
    """What the client sends. Its end is passed on; the answer may go on after it."""
    with contextlib.suppress(OSError):  # the reading half notices, too, and says it
        while chunk := await channel.read():
            writer.write(chunk)
            await writer.drain()
        if writer.can_write_eof():
            writer.write_eof()


def reason_of(error: OSError) -> str:
    if isinstance(error, TimeoutError) and not error.args:
        return f"no connection within {DIAL_SECONDS:.0f} s"
    return error.strerror or str(error) or type(error).__name__
