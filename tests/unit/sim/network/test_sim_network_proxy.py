from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
import trustme

from homeport.api.meta import Resource
from homeport.apiserver.embedded import EmbeddedServer
from homeport.client.config import Config
from homeport.client.credential import Certificate, Static
from homeport.client.errors import Unavailable
from homeport.client.http import HttpClient
from homeport.client.protocol import Key
from homeport.client.wire.retry import Retry
from homeport.runtime.testing import shared_pki
from homeport.sim.network import Loopback, Network, Proxy

NAMESPACE = Resource("", "v1", "Namespace", "namespaces", namespaced=False)


@asynccontextmanager
async def proxied() -> AsyncIterator[tuple[Network, Proxy, Config]]:
    """An API server that answers at api.example.com:6443 of the simulated network."""
    pki = shared_pki()
    server = await EmbeddedServer.open(None, pki)
    port = int((await server.serve()).rpartition(":")[2])
    network = Network()
    network.attach("cp", ["10.0.0.100"]).listen(6443, Loopback("127.0.0.1", port))
    network.publish_name("kubernetes", "10.0.0.100")  # a name that its certificate is good for
    proxy = Proxy(network)
    await proxy.start()
    issued = pki.issue_client("admin", ("system:masters",))
    credential = Static(cert=Certificate(issued.certificate, issued.key))
    try:
        yield network, proxy, Config("https://kubernetes:6443", credential, pki.ca_pem, proxy=proxy.url())
    finally:
        await proxy.close()
        await server.close(drain_seconds=1.0)


async def test_our_client_reaches_a_simulated_endpoint_by_its_name_and_verifies_its_certificate() -> None:
    async with proxied() as (_, _, config), HttpClient(config) as client:
        found = await client.get(NAMESPACE, Key("", "kube-system"))
        assert found["metadata"]["name"] == "kube-system"


async def test_a_name_that_is_not_in_the_certificate_is_refused() -> None:
    async with proxied() as (network, proxy, config):
        network.publish_name("other.example.com", "10.0.0.100")
        other = Config("https://other.example.com:6443", config.credential, config.ca, proxy=proxy.url())
        async with HttpClient(other, retry=Retry(attempts=1)) as client:
            with pytest.raises(Unavailable, match=r"TLS .*other\.example\.com"):
                await client.get(NAMESPACE, Key("", "kube-system"))


async def test_an_address_that_nobody_holds_is_unavailable_and_never_dialled() -> None:
    async with proxied() as (_, proxy, config):
        nobody = Config("https://10.9.9.9:6443", config.credential, config.ca, proxy=proxy.url())
        async with HttpClient(nobody, retry=Retry(attempts=1)) as client:
            with pytest.raises(Unavailable, match=r"10\.9\.9\.9:6443: nothing answers there through the proxy$"):
                await client.get(NAMESPACE, Key("", "kube-system"))


async def request(proxy: Proxy, head: str) -> str:
    reader, writer = await asyncio.open_connection("127.0.0.1", proxy.port)
    writer.write(head.encode())
    answer = await reader.read(2000)
    writer.close()
    return answer.decode()


@pytest.mark.parametrize(
    ("head", "status", "words"),
    [
        ("CONNECT 10.9.9.9:6443 HTTP/1.1\r\n\r\n", "502", "no machine has the address 10.9.9.9"),
        ("CONNECT nowhere.example.com:6443 HTTP/1.1\r\n\r\n", "502", "no such host"),
        ("CONNECT 10.0.0.100:22 HTTP/1.1\r\n\r\n", "502", "connection refused"),
        ("CONNECT :22 HTTP/1.1\r\n\r\n", "400", "has no host"),
        ("nonsense\r\n\r\n", "400", "not an HTTP request"),
        (
            "CONNECT 10.0.0.100:6443 HTTP/1.1\r\nProxy-Authorization: Basic bm9ib2R5Og==\r\n\r\n",
            "407",
            "no host 'nobody'",
        ),
    ],
)
async def test_what_can_not_be_reached_is_said_in_the_words_of_a_dialling_program(
    head: str, status: str, words: str
) -> None:
    async with proxied() as (_, proxy, _):
        answer = await request(proxy, head)
        assert answer.startswith(f"HTTP/1.1 {status} ")
        assert words in answer


async def test_a_partition_holds_for_the_host_that_the_proxy_user_names() -> None:
    async with proxied() as (network, proxy, config):
        network.attach("node-1", ["10.0.0.5"])
        network.partition("split", ["node-1"])
        inside = Config(config.server, config.credential, config.ca, proxy=proxy.url("node-1"))
        async with HttpClient(inside, retry=Retry(attempts=1)) as client:
            with pytest.raises(Unavailable):
                await client.get(NAMESPACE, Key("", "default"))
        async with HttpClient(config) as client:
            await client.get(NAMESPACE, Key("", "default"))


async def test_a_plain_request_is_sent_on_in_origin_form() -> None:
    seen: list[bytes] = []

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        seen.append(await reader.readuntil(b"\r\n\r\n"))
        writer.write(b"HTTP/1.1 204 No Content\r\nContent-Length: 0\r\n\r\n")
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    network = Network()
    network.attach("web", ["10.0.0.8"]).listen(8080, Loopback("127.0.0.1", server.sockets[0].getsockname()[1]))
    proxy = Proxy(network)
    await proxy.start()
    got = await request(
        proxy, "GET http://10.0.0.8:8080/a?b=c HTTP/1.1\r\nHost: 10.0.0.8\r\nProxy-Connection: x\r\n\r\n"
    )
    assert got.startswith("HTTP/1.1 204")
    assert seen[0].startswith(b"GET /a?b=c HTTP/1.1\r\nHost: 10.0.0.8\r\n")
    assert b"Proxy-" not in seen[0]
    await proxy.close()
    server.close()


async def test_tls_is_end_to_end_through_connect() -> None:
    authority = trustme.CA()
    server_context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("10.0.0.8").configure_cert(server_context)

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(await reader.readline())
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0, ssl=server_context)
    network = Network()
    network.attach("web", ["10.0.0.8"]).listen(443, Loopback("127.0.0.1", server.sockets[0].getsockname()[1]))
    client_context = ssl.create_default_context()
    authority.configure_trust(client_context)
    sock = await network.connect("outside", "10.0.0.8", 443)
    reader, writer = await asyncio.open_connection(sock=sock, ssl=client_context, server_hostname="10.0.0.8")
    writer.write(b"hello\n")
    assert await reader.readline() == b"hello\n"
    writer.close()
    server.close()


async def test_a_host_whose_name_is_not_a_word_dials_through_the_proxy_too() -> None:
    """As the Pods of hosted control planes are called when their API servers call webhooks."""
    async with proxied() as (network, proxy, config):
        network.attach("pod default/shop 1234", ["10.0.0.7"])
        inside = Config(config.server, config.credential, config.ca, proxy=proxy.url("pod default/shop 1234"))
        async with HttpClient(inside) as client:
            assert (await client.get(NAMESPACE, Key("", "kube-system"))).name == "kube-system"
