"""A kubelet for a lone kube-apiserver that does one thing: it forwards ports of Pods to ports of this machine."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

from aiohttp import WSMsgType, web

from homeport.runtime.clock import SystemClock
from homeport.sim.machine.workload.trust.authority import make_authority, now_of
from tlspeer import tls_peer


class ForwardingKubelet:
    """`ports`: a port of a Pod > the port here. Any other is refused, as a kubelet says it."""

    def __init__(self, ports: Mapping[int, int]) -> None:
        self.ports = dict(ports)
        self.forwarded = 0

    async def serve(self, request: web.BaseRequest) -> web.StreamResponse:
        socket = web.WebSocketResponse(protocols=["v4.channel.k8s.io"])
        await socket.prepare(request)
        port = int(request.query["port"])
        for channel in (0, 1):
            await socket.send_bytes(bytes((channel,)) + port.to_bytes(2, "little"))
        if port not in self.ports:
            await socket.send_bytes(b"\x01" + f"error forwarding port {port} to pod: refused".encode())
            await socket.close()
            return socket
        self.forwarded += 1
        reader, writer = await asyncio.open_connection("127.0.0.1", self.ports[port])
        back = asyncio.create_task(_back(reader, socket))
        try:
            async for message in socket:
                if message.type is not WSMsgType.BINARY:
                    break
                writer.write(message.data[1:])
                await writer.drain()
        finally:
            back.cancel()
            writer.close()
            with contextlib.suppress(OSError, asyncio.CancelledError):
                await back
        return socket


async def _back(reader: asyncio.StreamReader, socket: web.WebSocketResponse) -> None:
    while data := await reader.read(65536):
        await socket.send_bytes(b"\x00" + data)
    await socket.close()


@asynccontextmanager
async def forwarding(folder: Path, ports: Mapping[int, int]) -> AsyncIterator[tuple[ForwardingKubelet, int]]:
    clock = SystemClock()
    pem = folder / "kubelet.pem"
    pem.write_bytes(make_authority("kubelet", clock).issuer.server(["127.0.0.1"], now_of(clock)()).pem)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pem)
    made = ForwardingKubelet(ports)
    async with tls_peer(made.serve, context) as port:
        yield made, port
