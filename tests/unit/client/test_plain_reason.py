"""No text of an HTTP, socket or TLS library reaches a user: failures are planted under every client that we have."""

from __future__ import annotations

import asyncio
import errno
import re
import socket
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from homeport.client.config import Config
from homeport.client.dial import DialOptions
from homeport.client.errors import ApiError
from homeport.client.http import HttpClient
from homeport.client.wire.reason import socket_reason
from homeport.client.wire.retry import Retry
from homeport.client.wire.stream import dial_tls
from homeport.helm.errors import SourceError
from homeport.helm.source.wire import Trust, Wire
from homeport.infra.error import ProviderError
from homeport.infra.vendor.endpoint import Endpoint
from homeport.providers.harvester.infracluster.error import provider_error
from homeport.providers.nutanix.client import Client, Credentials
from homeport.runtime.clock import SystemClock
from homeport.sim.engine.tls import Authority

# What libraries write into their errors.
RAW = re.compile(
    r"\[Errno|Errno \d|\[SSL|_ssl\.c|ssl:|WRONG_VERSION|aiohttp|Client\w*Error|Cannot connect to host|object at 0x|"
    r"message=|Traceback|\bNone\b|Error\(|Multiple exceptions|<html|<!DOCTYPE|\('127",
    re.I,
)
PAGE = b"<html><head><title>502 Bad Gateway</title></head><body><h1>Bad Gateway</h1>nginx</body></html>"
Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


def answering(reply: bytes, *, wait: bool = True) -> Serve:
    """Answers every request with these bytes, and closes the connection."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            if wait:
                await reader.readuntil(b"\r\n\r\n")
            writer.write(reply)
            await writer.drain()
        except (OSError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    return serve


def page(status: str, body: bytes = PAGE) -> bytes:
    head = f"HTTP/1.1 {status}\r\nContent-Type: text/html\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    return head.encode() + body


@dataclass(frozen=True)
class Plant:
    serve: Serve | None  # None: nothing listens
    tls: bool = True
    trusted: bool = True


PLANTS = {
    "nothing listens": Plant(None),
    "the server closes at once": Plant(answering(b"", wait=False)),
    "the port speaks plain HTTP": Plant(answering(page("400 Bad Request"), wait=False), tls=False),
    "the certificate is not trusted": Plant(answering(b""), trusted=False),
    "a proxy answers with a page": Plant(answering(page("502 Bad Gateway"))),
    "a page instead of an answer": Plant(answering(page("200 OK"))),
    "the response is not HTTP": Plant(answering(b"SSH-2.0-OpenSSH_9.6\r\n")),
    "the response is cut off": Plant(answering(page("200 OK")[:90])),
    "the response ends in the header": Plant(answering(b"HTTP/1.1 200 OK\r\nContent-")),
}


@dataclass(frozen=True)
class Peer:
    port: int
    ca: bytes


@asynccontextmanager
async def planted(plant: Plant, folder: Path) -> AsyncIterator[Peer]:
    clock = SystemClock()
    authority = Authority.ensure(folder / "server", clock)
    trusted = authority if plant.trusted else Authority.ensure(folder / "other", clock)
    if plant.serve is None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        yield Peer(port, trusted.path.read_bytes())
        return
    context = authority.called("server", ("localhost", "127.0.0.1"), clock).context if plant.tls else None
    server = await asyncio.start_server(plant.serve, "127.0.0.1", 0, ssl=context)
    try:
        yield Peer(server.sockets[0].getsockname()[1], trusted.path.read_bytes())
    finally:
        server.close()


async def ask_prism(peer: Peer) -> str:
    credentials = Credentials("admin", "password", origin="Secret default/prism")
    endpoint = Endpoint("Prism Central", SystemClock())
    client = Client("127.0.0.1", peer.port, credentials, endpoint, dial=DialOptions(ca_pem=peer.ca))
    try:
        await client.call("GET", "/api/nutanix/v3/users/me")
    except ProviderError as error:
        return error.message
    finally:
        await client.close()
    return ""


async def _ask_cluster(peer: Peer) -> ApiError | None:
    config = Config(f"https://127.0.0.1:{peer.port}", ca=peer.ca)
    client = HttpClient(config, retry=Retry(attempts=1, patience_seconds=0.1))
    try:
        (await client.raw("GET", "/api/v1/nodes")).check("/api/v1/nodes")
    except ApiError as error:
        return error
    finally:
        await client.close()
    return None


async def ask_cluster(peer: Peer) -> str:
    error = await _ask_cluster(peer)
    return "" if error is None else error.message


async def ask_harvester(peer: Peer) -> str:
    error = await _ask_cluster(peer)
    server = f"https://127.0.0.1:{peer.port}"
    return "" if error is None else provider_error(error, server, "Secret default/harvester").message


async def ask_repository(peer: Peer) -> str:
    """Where charts come from, and images of add-ons."""
    try:
        async with Wire(Trust(ca=peer.ca)) as wire:
            reply = await wire.get(f"https://localhost:{peer.port}/index.yaml")
            return "" if reply.status == 200 else f"HTTP {reply.status}"
    except SourceError as error:
        return str(error)


ASKERS = {
    "Prism Central": ask_prism,
    "workload cluster": ask_cluster,
    "Harvester": ask_harvester,
    "chart repository": ask_repository,
}
# A page with status 200 is content for who asks for bytes.
FINE = {("a page instead of an answer", each) for each in ("workload cluster", "Harvester", "chart repository")}


@pytest.mark.parametrize("asker", ASKERS)
@pytest.mark.parametrize("name", PLANTS)
async def test_failures_are_plain_sentences(tmp_path: Path, name: str, asker: str) -> None:
    async with planted(PLANTS[name], tmp_path) as peer:
        said = await ASKERS[asker](peer)
    assert bool(said) is ((name, asker) not in FINE), said
    assert RAW.search(said) is None, said


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (ConnectionRefusedError(errno.ECONNREFUSED, "Connect call failed ('127.0.0.1', 6443)"), "connection refused"),
        (
            OSError(
                "Multiple exceptions: [Errno 111] Connect call failed ('::1', 6443, 0, 0), [Errno 111] Connect ..."
            ),
            "connection refused",
        ),
        (socket.gaierror(socket.EAI_NONAME, "Name or service not known"), "can't be resolved: name or service not"),
        (TimeoutError(), "no answer in time"),
        (ConnectionResetError("Connection lost"), "the connection was reset"),
        (asyncio.IncompleteReadError(b"", 5), "the server closed the connection"),
        (ssl.SSLError(1, "[SSL: WRONG_VERSION_NUMBER] wrong version number (_ssl.c:1006)"), "does not speak TLS"),
        (ssl.SSLError(1, "[SSL: TLSV13_ALERT_CERTIFICATE_REQUIRED] x (_ssl.c:1)"), "requires a client certificate"),
        (ssl.SSLError(1, "[SSL: TLSV1_ALERT_UNKNOWN_CA] x (_ssl.c:1)"), "does not accept the client certificate"),
        (ssl.SSLError(1, "[SSL: SOMETHING_NEW] x (_ssl.c:1)"), "the TLS handshake failed"),
        (OSError("[Errno 99999] what"), "the connection failed"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Exception) else "",
)
def test_errors_of_sockets_and_tls_are_translated(error: Exception, words: str) -> None:
    said = socket_reason(error)
    assert words in said
    assert RAW.search(said) is None, said


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (b"HTTP/1.1 502 Bad Gateway\r\n\r\n10.0.0.11:50000: connection refused", "10.0.0.11:50000: connection refused"),
        (b"HTTP/1.1 403 Forbidden\r\n\r\n", "the proxy refused the connection: 403 Forbidden"),
        (b"HTTP/1.1 502 Bad Gateway\r\n\r\n" + PAGE, 'a web page with the title "502 Bad Gateway"'),
        (b"", "the proxy closed the connection"),
    ],
    ids=("server", "status", "page", "nothing"),
)
async def test_what_a_proxy_reports_of_the_server_is_kept(answer: bytes, words: str) -> None:
    async def refuse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(answer)
        writer.close()

    server = await asyncio.start_server(refuse, "127.0.0.1", 0)
    async with server:
        port = server.sockets[0].getsockname()[1]
        dial = DialOptions(proxy=f"http://127.0.0.1:{port}")
        with pytest.raises(ConnectionError) as failed:
            await dial_tls(dial, "10.0.0.11", 50000, ssl.create_default_context())
    assert words in socket_reason(failed.value)
