"""A forward that closes waits for nobody and leaves nothing open."""

from __future__ import annotations

import asyncio
import socket

import pytest

from homeport.builtin.workload.forward import Forward


async def _fill(client: socket.socket) -> None:
    """Until nothing more fits between the client and the backend."""
    while True:
        await asyncio.wait_for(asyncio.get_running_loop().sock_sendall(client, bytes(1 << 20)), 0.5)


async def test_a_forward_closes_though_its_backend_does_not_read() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:  # takes connections in its backlog and reads nothing
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        forward = Forward("127.0.0.1", port)
        forward.backends = (("127.0.0.1", silent.getsockname()[1]),)
        await forward.start()
        with socket.create_connection(("127.0.0.1", port)) as client:
            client.setblocking(False)
            with pytest.raises(TimeoutError):
                await _fill(client)
            async with asyncio.timeout(10):
                await forward.close()


async def test_a_connection_that_has_just_come_is_closed_with_its_forward() -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    forward = Forward("127.0.0.1", port)
    await forward.start()
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    await forward.close()
    async with asyncio.timeout(10):
        ended = await asyncio.gather(reader.read(), return_exceptions=True)
    assert ended[0] == b"" or isinstance(ended[0], ConnectionError)
    writer.transport.abort()
