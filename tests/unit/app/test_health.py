"""The health endpoint of a process without a server of its own."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack

import pytest

from homeport.app.kubernetes import manager
from homeport.app.kubernetes.health import HealthServer
from homeport.app.kubernetes.manager import Cluster, Replica
from homeport.app.kubernetes.standin import PodLog
from homeport.app.platform import Platform
from homeport.client.config import Config
from homeport.client.errors import Unauthorized
from homeport.client.http import HttpClient
from homeport.client.protocol import Key
from homeport.client.wire.retry import NEVER
from homeport.runtime.lease import LEASE
from unit.client.scripted_peer import failure, json, serving

ServedHealth = tuple[dict[str, str], int]  # the problems that it reports, and its port


@pytest.fixture
async def served() -> AsyncIterator[ServedHealth]:
    problems: dict[str, str] = {}
    server = HealthServer(lambda: problems)
    port = await server.start("127.0.0.1", 0)
    yield problems, port
    await server.close()


async def send(port: int, request: bytes) -> tuple[int, bytes]:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(request)
    writer.write_eof()
    answer = await reader.read()
    writer.close()
    await writer.wait_closed()
    head, _, body = answer.partition(b"\r\n\r\n")
    return (int(head.split()[1]) if head else 0), body


async def get(port: int, path: str) -> tuple[int, str]:
    code, body = await send(port, f"GET {path} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
    return code, body.decode()


async def test_alive_as_long_as_it_answers_ready_as_long_as_nothing_is_wrong(served: ServedHealth) -> None:
    problems, port = served
    assert await get(port, "/healthz") == (200, "ok")
    assert await get(port, "/readyz?verbose") == (200, "ok")
    problems["machines"] = "can't be followed"
    assert await get(port, "/readyz") == (503, "[-]machines: can't be followed\n")
    assert await get(port, "/healthz") == (200, "ok")


async def test_metrics_are_those_of_prometheus(served: ServedHealth) -> None:
    code, text = await get(served[1], "/metrics")
    assert code == 200
    assert "# TYPE process_cpu_seconds_total counter" in text


@pytest.mark.parametrize(
    ("request_", "code"),
    [
        (b"GET /etc/passwd HTTP/1.1\r\n\r\n", 404),
        (b"POST /healthz HTTP/1.1\r\nContent-Length: 0\r\n\r\n", 405),
        (b"\x16\x03\x01\r\n\r\n", 400),
        (b"GET / SPDY/9\r\n\r\n", 400),
        (b"GET /healthz HTTP/1.1\r\n", 0),
        (b"GET /healthz HTTP/1.1\r\nX: " + b"x" * 100_000, 0),
    ],
)
async def test_malformed_requests_are_refused_and_others_still_served(
    served: ServedHealth, request_: bytes, code: int
) -> None:
    try:
        assert (await send(served[1], request_))[0] == code
    except ConnectionError:
        assert code == 0  # hung up on while still talking
    assert (await get(served[1], "/healthz"))[0] == 200


async def test_a_head_request_gets_no_body(served: ServedHealth) -> None:
    assert await send(served[1], b"HEAD /healthz HTTP/1.1\r\n\r\n") == (200, b"")


async def test_notes_are_shown_and_a_dead_process_is_not_alive() -> None:
    notes, dead = {"machines default/a": "spec.version: expected a string"}, [""]
    server = HealthServer(dict, lambda: notes, lambda: dead[0])
    port = await server.start("127.0.0.1", 0)
    try:
        assert await get(port, "/readyz") == (200, "ok\n[!]machines default/a: spec.version: expected a string\n")
        assert await get(port, "/healthz") == (200, "ok")
        dead[0] = "the server has rejected the credentials for 300 s"
        assert await get(port, "/healthz") == (503, "the server has rejected the credentials for 300 s\n")
    finally:
        await server.close()


async def test_a_replica_that_stands_by_is_dead_when_only_its_requests_for_the_lease_are_rejected(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its watches go on: a server asks for the credential once."""
    monkeypatch.setattr(manager, "DEAD_SECONDS", 0.000001)
    async with serving() as peer, AsyncExitStack() as stack:
        client, leases = [await stack.enter_async_context(HttpClient(Config(peer.url), retry=NEVER)) for _ in range(2)]
        replica = Replica(client, Cluster(None), "default", PodLog(print), Platform(), leases=leases)
        peer.says(json({"kind": "Lease", "metadata": {"name": "homeport"}}))
        for each in (client, leases):
            await each.get(LEASE, Key("default", "homeport"))
        assert replica.dead() == ""
        peer.says(failure(401, "Unauthorized"))
        with pytest.raises(Unauthorized):
            await leases.get(LEASE, Key("default", "homeport"))
        assert replica.dead().startswith(f"{peer.url} has rejected the credentials for ")
