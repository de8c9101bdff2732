"""Connects standard input and output to a host through a proxy: `python -m homeport.client.pipe PROXY HOST PORT`."""

from __future__ import annotations

import asyncio
import os
import sys

from homeport.client.dial import DialOptions
from homeport.client.wire.stream import dial_socket

_BYTES = 65536


async def main(proxy: str, host: str, port: int) -> None:
    """Until one side ends."""
    sock = await dial_socket(DialOptions(proxy), host, port)
    assert sock is not None  # there is a proxy
    loop = asyncio.get_running_loop()

    async def send() -> None:
        while data := await asyncio.to_thread(os.read, 0, _BYTES):
            await loop.sock_sendall(sock, data)

    async def receive() -> None:
        while data := await loop.sock_recv(sock, _BYTES):
            os.write(1, data)

    tasks = [asyncio.create_task(send()), asyncio.create_task(receive())]
    await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    os._exit(0)  # a thread that still reads standard input would keep the process


if __name__ == "__main__":
    try:
        asyncio.run(main(sys.argv[1], sys.argv[2], int(sys.argv[3])))
    except OSError as error:
        sys.exit(f"no connection to {sys.argv[2]}:{sys.argv[3]}: {error}")
