"""TLS, certificates, resources that components answer for, the audit log, and the end."""

from __future__ import annotations

import asyncio
import os
import socket
import ssl
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import orjson
import pytest

from homeport.apiserver.audit import AuditLog
from homeport.apiserver.auth.pki import PKI
from homeport.apiserver.registry import Call, Raw
from unit.apiserver.http.http_serving import ADMIN, CONFIG_MAPS, NOBODY, WIDGETS, Api, config_map, serving, until

LOG = "/api/v1/namespaces/default/pods/p/log"


async def test_a_client_certificate_names_the_user(tmp_path: Path) -> None:
    pki = PKI.ensure(tmp_path / "pki")
    async with serving(tls=pki.server_context()) as api:
        trusting = pki.client_context(pki.admin_path)
        async with aiohttp.ClientSession() as session:
            for _ in range(2):  # the second request finds the certificate on the connection
                async with session.get(api.base + CONFIG_MAPS, ssl=trusting) as got:
                    assert got.status == 200
            async with session.get(
                api.base + CONFIG_MAPS, ssl=trusting, headers={"Authorization": "Bearer wrong"}
            ) as got:
                assert got.status == 200  # the certificate is good, so nobody asks for the token
            async with session.get(api.base + CONFIG_MAPS, ssl=pki.client_context()) as got:
                assert got.status == 403


async def test_a_certificate_of_another_authority_ends_the_handshake(tmp_path: Path) -> None:
    pki, other = PKI.ensure(tmp_path / "pki"), PKI.ensure(tmp_path / "other")
    async with serving(tls=pki.server_context()) as api:
        context = pki.client_context()
        context.load_cert_chain(other.admin_path)
        async with aiohttp.ClientSession() as session:
            with pytest.raises((aiohttp.ClientError, ssl.SSLError)):
                await session.get(api.base + CONFIG_MAPS, ssl=context)
        assert (await _status(api, pki)) == 200


async def _status(api: Api, pki: PKI) -> int:
    async with aiohttp.ClientSession() as session:
        headers = {"Authorization": f"Bearer {ADMIN}"}
        async with session.get(api.base + CONFIG_MAPS, ssl=pki.client_context(), headers=headers) as got:
            return got.status


async def test_a_connector_gets_the_call_and_its_answer_is_created(api: Api) -> None:
    seen: list[Call] = []

    async def echo(call: Call) -> dict[str, Any]:
        seen.append(call)
        return {"kind": "Echo", "apiVersion": "v1"}

    api.registry.connect("example.com", "widgets", "echo", echo, "POST")
    answer = await api.post(f"{WIDGETS}/a/echo?dryRun=All", {"x": 1})
    assert (answer.status, answer.json["kind"]) == (201, "Echo")
    (call,) = seen
    assert (call.namespace, call.name, call.method, call.body) == ("default", "a", "POST", {"x": 1})
    assert (call.ctx.user.name, call.ctx.dry_run) == ("admin", True)
    refused = await api.post(f"{WIDGETS}/a/echo", {}, token=NOBODY)
    assert refused.status == 403


async def test_a_log_is_streamed_as_it_grows(api: Api) -> None:
    more: asyncio.Queue[bytes | None] = asyncio.Queue()

    async def lines() -> AsyncIterator[bytes]:
        while (line := await more.get()) is not None:
            yield line

    async def log(call: Call) -> Raw:
        assert call.query["follow"] == "true"
        return Raw(lines())

    api.registry.connect("", "pods", "log", log, "GET")
    headers = {"Authorization": f"Bearer {ADMIN}"}
    async with api.session.get(f"{api.base}{LOG}?follow=true", headers=headers) as got:
        assert got.headers["Content-Type"] == "text/plain"
        more.put_nowait(b"one\n")
        assert await got.content.readline() == b"one\n"
        more.put_nowait(b"two\n")
        more.put_nowait(None)
        assert await got.read() == b"two\n"


async def test_a_log_ends_when_its_reader_leaves(api: Api) -> None:
    ended = asyncio.Event()

    async def lines() -> AsyncIterator[bytes]:
        try:
            yield b"one\n"
            await asyncio.Event().wait()
        finally:
            ended.set()

    async def log(call: Call) -> Raw:
        return Raw(lines())

    api.registry.connect("", "pods", "log", log, "GET")
    headers = {"Authorization": f"Bearer {ADMIN}"}
    async with api.session.get(f"{api.base}{LOG}", headers=headers) as got:
        assert await got.content.readline() == b"one\n"
        got.close()
    async with asyncio.timeout(5):
        await ended.wait()


async def test_a_short_answer_of_a_connector_is_sent_whole(api: Api) -> None:
    async def log(call: Call) -> Raw:
        return Raw(b"all of it\n" if call.name == "p" else b"")

    api.registry.connect("", "pods", "log", log, "GET")
    assert (await api.get(LOG)).body == b"all of it\n"
    assert (await api.get(LOG.replace("/p/", "/q/"))).status == 204


async def test_the_audit_log_says_who_did_what(tmp_path: Path) -> None:
    audit = AuditLog(tmp_path / "audit.log")
    async with serving(audit=audit) as api:
        await api.post(CONFIG_MAPS, config_map("a"), headers={"Audit-ID": "one"})
        await api.get(f"{CONFIG_MAPS}/a", token=NOBODY)
        await api.get(f"{CONFIG_MAPS}", headers={"Impersonate-User": "other"})
        await api.get(f"{CONFIG_MAPS}?watch=1&timeoutSeconds=1")
    audit.close()
    events = [orjson.loads(line) for line in (tmp_path / "audit.log").read_bytes().splitlines()]
    created, denied, impersonated, watched = events
    assert (created["auditID"], created["verb"], created["responseStatus"]["code"]) == ("one", "create", 201)
    assert created["objectRef"] == {"resource": "configmaps", "namespace": "default", "apiVersion": "v1"}
    assert created["annotations"]["authorization.k8s.io/decision"] == "allow"
    assert (denied["user"]["username"], denied["responseStatus"]["code"]) == ("nobody", 403)
    assert impersonated["user"]["username"] == "admin"
    assert impersonated["impersonatedUser"]["username"] == "other"
    assert (watched["verb"], watched["responseStatus"]["code"]) == ("watch", 200)


async def test_a_running_request_is_finished_before_the_server_goes() -> None:
    async with serving() as api:
        begun, release = asyncio.Event(), asyncio.Event()

        async def slow(call: Call) -> dict[str, Any]:
            begun.set()
            await release.wait()
            return {"kind": "Done"}

        api.registry.connect("example.com", "widgets", "slow", slow, "POST")
        request = asyncio.create_task(api.post(f"{WIDGETS}/a/slow", {}))
        await begun.wait()
        drained = asyncio.create_task(api.server.drain(5))
        await asyncio.sleep(0)
        assert not drained.done()
        release.set()
        assert (await request).json == {"kind": "Done"}
        await drained


async def test_a_client_that_never_finishes_its_request_does_not_hold_up_the_end() -> None:
    async with serving() as api:
        _, writer = await asyncio.open_connection("127.0.0.1", api.port)
        head = f"POST {CONFIG_MAPS} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {ADMIN}\r\nContent-Length: 100\r\n\r\n"
        writer.write(head.encode() + b"{")
        await writer.drain()
        async with asyncio.timeout(5):
            await api.server.drain(0.1)
        writer.close()


async def test_a_client_that_does_not_read_its_list_is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("homeport.apiserver.http.reply.SLOW_SECONDS", 0.05)
    async with serving() as api:
        for number in range(30):
            await api.post(CONFIG_MAPS, config_map(f"c{number}", text="x" * 900_000))
        idle = api.server.connections
        _, writer = await asyncio.open_connection("127.0.0.1", api.port, limit=1024)
        transport = writer.transport
        assert isinstance(transport, asyncio.Transport)
        transport.pause_reading()
        writer.write(f"GET {CONFIG_MAPS} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {ADMIN}\r\n\r\n".encode())
        async with asyncio.timeout(20):
            await until(lambda: api.server.connections > idle)
            await until(lambda: api.server.connections == idle)
        writer.close()


async def test_expect_continue_is_answered(api: Api) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", api.port)
    body = orjson.dumps(config_map("a"))
    writer.write(
        f"POST {CONFIG_MAPS} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {ADMIN}\r\nExpect: 100-continue\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n".encode()
    )
    assert await reader.readline() == b"HTTP/1.1 100 Continue\r\n"
    await reader.readline()
    writer.write(body)
    assert await reader.readline() == b"HTTP/1.1 201 Created\r\n"
    writer.close()


async def test_the_end_does_not_wait_for_clients_that_never_say_goodbye(tmp_path: Path) -> None:
    pki = PKI.ensure(tmp_path / "pki")
    async with serving(tls=pki.server_context()) as api:
        trusting = pki.client_context(pki.admin_path)

        def ask() -> ssl.SSLSocket:
            sock = trusting.wrap_socket(socket.create_connection(("127.0.0.1", api.port)), server_hostname="localhost")
            sock.sendall(b"GET /readyz HTTP/1.1\r\nHost: x\r\n\r\n")
            assert sock.recv(12) == b"HTTP/1.1 200"
            return sock

        def drained(raw: socket.socket) -> bool:
            raw.settimeout(2.0)
            while raw.recv(4096):  # the server's goodbye, which TLS is not asked to answer
                pass
            return True

        with await asyncio.to_thread(ask) as sock, socket.socket(fileno=os.dup(sock.fileno())) as raw:
            async with asyncio.timeout(5):
                await api.server.stop()
            assert await asyncio.to_thread(drained, raw)
