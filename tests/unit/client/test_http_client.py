from __future__ import annotations

import asyncio
import contextlib
import gc
import socket
import ssl
from pathlib import Path

import msgspec
import pytest
import trustme
from aiohttp import web

from homeport import __version__
from homeport.api.meta import Model, Object, ObjectMeta, Resource, resource
from homeport.client.config import Config, ConfigError, Impersonation
from homeport.client.credential import Certificate, CertificateFiles, Static, TokenFile, bearer
from homeport.client.errors import (
    ApiError,
    BadRequest,
    Conflict,
    Internal,
    NotFound,
    Timeout,
    TooManyRequests,
    Unauthorized,
    Unavailable,
)
from homeport.client.http import HttpClient, Timeouts
from homeport.client.plugin import Command, ExecPlugin
from homeport.client.protocol import JsonPatch, Key, MergePatch, Query, StrategicPatch, Write
from homeport.client.wire.resumption import ResumingContext
from homeport.client.wire.retry import NEVER, Retry
from tlspeer import tls_peer
from unit.client.scripted_peer import Peer, failure, hang_up, json, stream

CONFIGMAPS = Resource("", "v1", "ConfigMap", "configmaps")
NODES = Resource("", "v1", "Node", "nodes", namespaced=False)
A = Key("ns", "a")


class BoxSpec(Model):
    size: int = 0


@resource("example.com", "v1", "Box", "boxes")
class Box(Object):
    spec: BoxSpec = msgspec.field(default_factory=BoxSpec)


def named(name: str, **more: object) -> dict[str, object]:
    return {"metadata": {"name": name, "namespace": "ns"}, **more}


# What is asked


async def test_a_get_asks_for_the_path_of_the_object(peer: Peer, client: HttpClient) -> None:
    peer.says(json({"kind": "ConfigMap", "metadata": {"name": "a"}}))
    got = await client.get(CONFIGMAPS, A, resource_version="5")
    assert got.name == "a"
    asked = peer.asked[0]
    assert (asked.method, asked.path, asked.query) == (
        "GET", "/api/v1/namespaces/ns/configmaps/a", {"resourceVersion": "5"},
    )  # fmt: skip
    assert asked.headers["User-Agent"] == f"homeport/{__version__}"
    assert asked.headers["Accept"] == "application/json"


async def test_names_with_colons_stay_readable_and_slashes_are_refused(peer: Peer, client: HttpClient) -> None:
    peer.says(json({}))
    roles = Resource("rbac.authorization.k8s.io", "v1", "ClusterRole", "clusterroles", namespaced=False)
    await client.get(roles, Key("", "system:node"))
    assert peer.asked[0].path == "/apis/rbac.authorization.k8s.io/v1/clusterroles/system:node"
    for name in ("a/b", "..", ".", "a%2Fb"):
        with pytest.raises(BadRequest, match="invalid resource name"):
            await client.get(roles, Key("", name))
    assert len(peer.asked) == 1


async def test_a_namespace_and_a_name_are_needed(client: HttpClient) -> None:
    with pytest.raises(BadRequest, match="namespace is needed"):
        await client.get(CONFIGMAPS, Key("", "a"))
    with pytest.raises(BadRequest, match="name is needed"):
        await client.get(CONFIGMAPS, Key("ns", ""))
    with pytest.raises(BadRequest, match=r"metadata\.namespace is needed"):
        await client.create({"metadata": {"name": "a"}}, kind=CONFIGMAPS)


async def test_writes_carry_the_manager_and_their_options(peer: Peer, client: HttpClient) -> None:
    peer.says(json({}))
    await client.create(named("a"), kind=CONFIGMAPS)
    await client.create(named("a"), Write("me", dry_run=True, field_validation="Strict"), kind=CONFIGMAPS)
    assert peer.asked[0].query == {"fieldManager": "homeport"}
    assert peer.asked[0].json() == {"apiVersion": "v1", "kind": "ConfigMap", **named("a")}
    assert peer.asked[1].query == {"fieldManager": "me", "dryRun": "All", "fieldValidation": "Strict"}


async def test_every_patch_has_its_content_type(peer: Peer, client: HttpClient) -> None:
    peer.says(json({}))
    for patch, content_type, body in (
        (MergePatch({"a": 1}), "application/merge-patch+json", {"a": 1}),
        (JsonPatch([{"op": "test"}]), "application/json-patch+json", [{"op": "test"}]),
        (StrategicPatch({"b": 2}), "application/strategic-merge-patch+json", {"b": 2}),
    ):
        await client.patch(CONFIGMAPS, A, patch, subresource="status")
        asked = peer.asked[-1]
        assert asked.method == "PATCH"
        assert asked.path.endswith("/configmaps/a/status")
        assert asked.headers["Content-Type"] == content_type
        assert asked.json() == body


async def test_an_apply_names_no_manager_of_its_own(peer: Peer, client: HttpClient) -> None:
    peer.says(json({}))
    await client.apply(named("a"), Write("me"), kind=CONFIGMAPS, force=True)
    assert peer.asked[0].query == {"fieldManager": "me", "force": "true"}
    assert peer.asked[0].headers["Content-Type"] == "application/apply-patch+yaml"
    await client.apply(named("a"), Write(), kind=CONFIGMAPS)
    assert peer.asked[1].query == {}


async def test_a_delete_sends_its_conditions(peer: Peer, client: HttpClient) -> None:
    peer.says(json({"kind": "Status"}))
    await client.delete(CONFIGMAPS, A)
    assert peer.asked[0].body == b""
    await client.delete(
        CONFIGMAPS, A, uid="u", resource_version="7", propagation="Foreground", grace_seconds=0, dry_run=True
    )
    assert peer.asked[1].json() == {
        "apiVersion": "v1",
        "kind": "DeleteOptions",
        "preconditions": {"uid": "u", "resourceVersion": "7"},
        "propagationPolicy": "Foreground",
        "gracePeriodSeconds": 0,
        "dryRun": ["All"],
    }
    await client.delete_all(CONFIGMAPS, Query(namespace="ns", labels="a=b"))
    assert peer.asked[2].query == {"labelSelector": "a=b"}
    assert peer.asked[2].path == "/api/v1/namespaces/ns/configmaps"


async def test_a_post_to_a_subresource_sends_the_body_as_it_is(peer: Peer, client: HttpClient) -> None:
    peer.says(json({"status": {"token": "t"}}))
    accounts = Resource("", "v1", "ServiceAccount", "serviceaccounts")
    request = {"kind": "TokenRequest", "apiVersion": "authentication.k8s.io/v1", "spec": {}}
    await client.create(request, kind=accounts, key=A, subresource="token")
    assert peer.asked[0].path == "/api/v1/namespaces/ns/serviceaccounts/a/token"
    assert peer.asked[0].json() == request


async def test_impersonation_goes_along(peer: Peer) -> None:
    peer.says(json({}))
    who = Impersonation("jane", "7", ("a", "b"), (("scopes", ("x",)),))
    async with HttpClient(Config(peer.url, impersonate=who)) as client:
        await client.get(NODES, Key("", "n"))
    headers = peer.asked[0].headers
    assert headers["Impersonate-User"] == "jane"
    assert headers["Impersonate-Uid"] == "7"
    assert headers["Impersonate-Group"] in ("a", "b")
    assert headers["Impersonate-Extra-scopes"] == "x"


async def test_a_large_body_arrives_whole(peer: Peer, client: HttpClient) -> None:
    peer.script = [json({})]
    text = "x" * 900_000
    await client.create(named("a", data={"k": text}), kind=CONFIGMAPS)
    assert peer.asked[0].json()["data"]["k"] == text


async def test_what_is_not_json_is_refused_before_sending(client: HttpClient) -> None:
    with pytest.raises(BadRequest, match="can't be written as JSON"):
        await client.create(named("a", data=object()), kind=CONFIGMAPS)


# What comes back


async def test_typed_and_untyped_results(peer: Peer, client: HttpClient) -> None:
    peer.says(json({"metadata": {"name": "a", "resourceVersion": "3"}, "spec": {"size": 4}, "unknown": 1}))
    box = await client.get(Box, A)
    assert isinstance(box, Box)
    assert (box.metadata.resource_version, box.spec.size) == ("3", 4)
    assert peer.asked[0].path == "/apis/example.com/v1/namespaces/ns/boxes/a"
    made = await client.create(Box(metadata=ObjectMeta(name="a", namespace="ns"), spec=BoxSpec(size=4)))
    assert made.spec.size == 4
    assert peer.asked[1].json() == {
        "apiVersion": "example.com/v1", "kind": "Box", "metadata": {"name": "a", "namespace": "ns"}, "spec": {"size": 4},
    }  # fmt: skip


async def test_a_list_fills_in_what_its_items_leave_out(peer: Peer, client: HttpClient) -> None:
    items = [{"metadata": {"name": "a"}}, {"metadata": {"name": "b"}}]
    meta = {"resourceVersion": "9", "continue": "c", "remainingItemCount": 3}
    peer.says(json({"items": items, "metadata": meta}))
    page = await client.list(CONFIGMAPS, Query("ns", limit=2, continue_="b", fields="metadata.name=a"))
    assert [item["kind"] for item in page.items] == ["ConfigMap", "ConfigMap"]
    assert (page.resource_version, page.continue_, page.remaining) == ("9", "c", 3)
    assert peer.asked[0].query == {"limit": "2", "continue": "b", "fieldSelector": "metadata.name=a"}
    boxes = await client.list(Box)
    assert [(box.kind, box.api_version) for box in boxes.items] == [("Box", "example.com/v1")] * 2
    peer.says(json({"items": None, "metadata": {}}))
    assert (await client.list(Box)).items == []
    assert (await client.list(CONFIGMAPS)).items == []


async def test_refusals_become_errors(peer: Peer, client: HttpClient) -> None:
    cause = {"reason": "FieldValueRequired", "message": "Required value", "field": "spec.a"}
    status = {
        "kind": "Status", "status": "Failure", "message": "gone", "reason": "NotFound", "code": 404,
        "details": {"name": "a", "kind": "configmaps", "causes": [cause]},
    }  # fmt: skip
    peer.says(json(status, 404))
    with pytest.raises(NotFound) as caught:
        await client.get(CONFIGMAPS, A)
    assert caught.value.status == status
    assert caught.value.causes[0].field == "spec.a"
    for code, reason, expected in (
        (409, "Conflict", Conflict),
        (401, "Unauthorized", Unauthorized),
        (418, "", ApiError),
    ):
        peer.says(failure(code, reason))
        with pytest.raises(expected) as other:
            await client.get(CONFIGMAPS, A)
        assert other.value.http_code == code


async def test_answers_of_proxies_become_errors_too(peer: Peer, client: HttpClient) -> None:
    async def html(request: web.Request) -> web.StreamResponse:
        return web.Response(status=502, text="<html>bad gateway</html>")

    peer.says(html)
    with pytest.raises(Unavailable, match=r"answered 502: a web page, probably of a proxy"):
        await client.get(CONFIGMAPS, A)

    async def moved(request: web.Request) -> web.StreamResponse:
        return web.Response(status=302, headers={"Location": "http://127.0.0.1:1/steal"})

    peer.says(moved)
    with pytest.raises(ApiError, match="answered 302"):
        await client.get(CONFIGMAPS, A)


async def test_an_answer_that_is_not_json_is_an_internal_error(peer: Peer, client: HttpClient) -> None:
    async def broken(request: web.Request) -> web.StreamResponse:
        return web.Response(body=b"{", content_type="application/json")

    peer.says(broken)
    with pytest.raises(Internal, match="configmaps: the server's answer can't be read"):
        await client.get(CONFIGMAPS, A)
    peer.says(json({"metadata": {"name": 5}}))
    with pytest.raises(Internal, match=r"boxes\.example\.com"):
        await client.get(Box, A)


async def test_warnings_are_collected_once(peer: Peer, client: HttpClient) -> None:
    peer.says(json({}, Warning='299 - "old \\"api\\"", 299 - "other"'))
    await client.get(CONFIGMAPS, A)
    await client.get(CONFIGMAPS, A)
    assert client.warnings.texts == ['old "api"', "other"]


async def test_raw_requests_are_answered_as_they_are(peer: Peer, client: HttpClient) -> None:
    peer.says(failure(404, "NotFound"))
    answer = await client.raw("POST", "/anything?a=b", b"x", content_type="text/plain", headers={"X-Y": "z"})
    assert answer.status == 404
    assert answer.json()["reason"] == "NotFound"
    assert peer.asked[0].headers["X-Y"] == "z"
    assert peer.asked[0].headers["Content-Type"] == "text/plain"
    with pytest.raises(BadRequest, match="must start with /"):
        await client.raw("GET", "anything")


async def test_a_log_comes_in_pieces(peer: Peer, client: HttpClient) -> None:
    peer.says(stream(b"one\n", b"two\n"))
    async with client.log(A, container="c", follow=True, tail_lines=5) as chunks:
        assert b"".join([chunk async for chunk in chunks]) == b"one\ntwo\n"
    assert peer.asked[0].path == "/api/v1/namespaces/ns/pods/a/log"
    assert peer.asked[0].query == {"container": "c", "follow": "true", "tailLines": "5"}
    peer.says(failure(400, "BadRequest"))
    with pytest.raises(BadRequest):
        async with client.log(A):
            pass


# What is repeated, and what is not


async def test_a_refused_request_is_repeated_when_the_server_says_when(peer: Peer, client: HttpClient) -> None:
    for code, reason in ((429, "TooManyRequests"), (503, "ServiceUnavailable")):
        peer.asked.clear()
        peer.says(failure(code, reason, Retry_After="0"), failure(code, reason, Retry_After="0"), json({}))
        await client.create(named("a"), kind=CONFIGMAPS)
        assert [asked.method for asked in peer.asked] == ["POST"] * 3


async def test_without_retry_after_a_refusal_is_final(peer: Peer, client: HttpClient) -> None:
    peer.says(failure(503, "ServiceUnavailable"))
    with pytest.raises(Unavailable):
        await client.get(CONFIGMAPS, A)
    peer.says(failure(500, "InternalError", Retry_After="0"))
    with pytest.raises(Internal):
        await client.get(CONFIGMAPS, A)
    assert len(peer.asked) == 2


async def test_attempts_are_bounded(peer: Peer, client: HttpClient) -> None:
    peer.says(failure(429, "TooManyRequests", Retry_After="0"))
    with pytest.raises(TooManyRequests):
        await client.get(CONFIGMAPS, A)
    assert len(peer.asked) == 5


async def test_a_wait_beyond_patience_is_not_waited(peer: Peer, client: HttpClient) -> None:
    peer.says(failure(429, "TooManyRequests", Retry_After="3600"))
    with pytest.raises(TooManyRequests) as caught:
        await client.get(CONFIGMAPS, A)
    assert caught.value.retry_after == 3600
    assert len(peer.asked) == 1


async def test_a_read_is_repeated_when_the_connection_breaks(peer: Peer, client: HttpClient) -> None:
    peer.says(hang_up(), hang_up(), json({"metadata": {"name": "a"}}))
    assert (await client.get(CONFIGMAPS, A)).name == "a"


async def test_a_write_is_not_repeated_when_the_connection_breaks(peer: Peer, client: HttpClient) -> None:
    peer.says(hang_up(), json({}))
    with pytest.raises(Unavailable) as caught:
        await client.create(named("a"), kind=CONFIGMAPS)
    host = peer.url.removeprefix("http://")
    assert caught.value.message == (
        f"POST /api/v1/namespaces/ns/configmaps on {host}: the server closed the connection after the request was "
        "sent; it may have been carried out"
    )
    assert len(peer.asked) == 1


async def test_a_refused_connection_is_unavailable(quick: Retry) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        url = f"https://user:secret@127.0.0.1:{taken.getsockname()[1]}"
        async with HttpClient(Config(url), retry=quick) as client:
            for attempt in (client.get(CONFIGMAPS, A), client.create(named("a"), kind=CONFIGMAPS)):
                with pytest.raises(
                    Unavailable, match=r"no connection to https://127\.0\.0\.1:\d+: .*refused"
                ) as caught:
                    await attempt
                assert "secret" not in caught.value.message
                assert caught.value.http_code == 503


async def test_a_slow_answer_times_out(peer: Peer) -> None:
    never = asyncio.Event()

    async def silent(request: web.Request) -> web.StreamResponse:
        await never.wait()
        return web.Response()

    peer.says(silent)
    async with HttpClient(Config(peer.url), timeouts=Timeouts(request=0.05), retry=NEVER) as client:
        with pytest.raises(Timeout, match="no answer in time"):
            await client.get(CONFIGMAPS, A)
        with pytest.raises(Unavailable, match="may have been carried out"):
            await client.create(named("a"), kind=CONFIGMAPS)
    never.set()


async def test_a_closed_client_says_so(peer: Peer) -> None:
    client = HttpClient(Config(peer.url))
    await client.close()
    with pytest.raises(Unavailable, match="is closed"):
        await client.get(CONFIGMAPS, A)


async def test_a_client_whose_closing_is_cancelled_closes_all_its_connections(peer: Peer) -> None:
    client = HttpClient(Config(peer.url))
    transport = client._http
    session = transport._session()
    closing = asyncio.create_task(client.close())
    await asyncio.sleep(0)
    closing.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await closing
    async with asyncio.timeout(10):
        while not session.closed:  # noqa: ASYNC110  (nothing reports it)
            await asyncio.sleep(0)


async def test_a_client_that_is_closed_before_it_repeats_a_request_says_so(peer: Peer, quick: Retry) -> None:
    client = HttpClient(Config(peer.url), retry=quick)

    async def close_and_fall_silent(request: web.Request) -> web.StreamResponse:
        await client.close()
        return await hang_up()(request)

    peer.says(close_and_fall_silent)
    with pytest.raises(Unavailable, match=r"is closed$"):
        await client.get(CONFIGMAPS, A)


async def test_a_client_that_is_closed_while_a_request_waits_for_a_connection_says_so(peer: Peer) -> None:
    never, there = asyncio.Event(), asyncio.Event()

    async def silent(request: web.Request) -> web.StreamResponse:
        there.set()
        await never.wait()
        return web.Response()

    peer.says(silent, silent)
    client = HttpClient(Config(peer.url), retry=NEVER)
    client._http._slots = asyncio.Semaphore(1)
    first = asyncio.create_task(client.get(CONFIGMAPS, A))
    await there.wait()
    second = asyncio.create_task(client.get(CONFIGMAPS, A))
    await asyncio.sleep(0)
    await client.close()
    never.set()
    for each in (first, second):
        with pytest.raises(Unavailable, match="is closed"):
            await each


# Who we are


async def test_a_refused_token_file_is_read_again_once(peer: Peer, tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("old\n")

    async def check(request: web.Request) -> web.StreamResponse:
        token.write_text("new")
        return web.Response(status=401 if request.headers["Authorization"] == "Bearer old" else 200, body=b"{}")

    peer.says(check)
    async with HttpClient(Config(peer.url, TokenFile(token)), retry=NEVER) as client:
        await client.create(named("a"), kind=CONFIGMAPS)
    assert [asked.headers["Authorization"] for asked in peer.asked] == ["Bearer old", "Bearer new"]


async def test_a_refused_exec_token_is_renewed_once(peer: Peer, tmp_path: Path) -> None:
    counter = tmp_path / "count"
    plugin = tmp_path / "plugin"
    plugin.write_text(
        f"#!/bin/sh\necho x >> {counter}\nn=$(wc -l < {counter})\n"
        'echo "{\\"kind\\":\\"ExecCredential\\",\\"apiVersion\\":\\"client.authentication.k8s.io/v1\\",'
        '\\"status\\":{\\"token\\":\\"t$n\\"}}"\n'
    )
    plugin.chmod(0o700)
    credential = ExecPlugin(Command("file: users[a]", "client.authentication.k8s.io/v1", str(plugin)))
    peer.says(failure(401, "Unauthorized"))
    async with HttpClient(Config(peer.url, credential), retry=NEVER) as client:
        with pytest.raises(Unauthorized):
            await client.get(CONFIGMAPS, A)
        assert [asked.headers["Authorization"] for asked in peer.asked] == ["Bearer t1", "Bearer t2"]
        peer.says(json({}))
        await client.get(CONFIGMAPS, A)
        await client.get(CONFIGMAPS, A)
    assert [asked.headers["Authorization"] for asked in peer.asked[2:]] == ["Bearer t2", "Bearer t2"]


async def test_a_fixed_token_is_not_tried_twice(peer: Peer) -> None:
    peer.says(failure(401, "Unauthorized"))
    async with HttpClient(Config(peer.url, bearer("t"))) as client:
        with pytest.raises(Unauthorized):
            await client.get(CONFIGMAPS, A)
    assert len(peer.asked) == 1


async def _peer_shown(request: web.BaseRequest) -> web.StreamResponse:
    assert request.transport is not None
    peer_cert = request.transport.get_extra_info("peercert")
    return web.json_response({"metadata": {"name": "tls"}, "peer": bool(peer_cert)})


async def test_tls_is_verified_and_client_certificates_are_shown() -> None:
    authority = trustme.CA()
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert("kube.example.com", "127.0.0.1").configure_cert(context)
    authority.configure_trust(context)
    context.verify_mode = ssl.CERT_OPTIONAL
    ca = authority.cert_pem.bytes()
    mine = authority.issue_cert("me@example.com")
    certificate = Certificate(mine.cert_chain_pems[0].bytes(), mine.private_key_pem.bytes())
    async with tls_peer(_peer_shown, context, patience=0) as port:
        async with HttpClient(Config(f"https://127.0.0.1:{port}", Static(cert=certificate), ca)) as client:
            assert (await client.get(CONFIGMAPS, A))["peer"] is True
        async with HttpClient(Config(f"https://127.0.0.1:{port}", ca=trustme.CA().cert_pem.bytes())) as client:
            with pytest.raises(Unavailable, match=r"TLS with https://127\.0\.0\.1:\d+ failed: "):
                await client.get(CONFIGMAPS, A)
        async with HttpClient(Config(f"https://127.0.0.1:{port}", ca=ca, server_name="kube.example.com")) as client:
            assert (await client.get(CONFIGMAPS, A))["peer"] is False
        async with HttpClient(Config(f"https://127.0.0.1:{port}", ca=ca, server_name="other.example.com")) as client:
            with pytest.raises(Unavailable, match=r"Hostname mismatch|not valid for"):
                await client.get(CONFIGMAPS, A)
        async with HttpClient(Config(f"https://127.0.0.1:{port}", insecure=True)) as client:
            assert (await client.get(CONFIGMAPS, A)).name == "tls"


async def test_a_closed_client_leaves_no_tls_context_to_the_garbage_collector() -> None:
    authority = trustme.CA()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    gc.collect()
    before = _resuming_contexts()
    gc.disable()
    try:
        async with tls_peer(_peer_shown, context, patience=0) as port:
            for _ in range(3):
                ca = authority.cert_pem.bytes()
                async with HttpClient(Config(f"https://127.0.0.1:{port}", ca=ca)) as client:
                    await client.get(CONFIGMAPS, A)
        assert _resuming_contexts() <= before + 1  # that of the last `client`
    finally:
        gc.enable()


def _resuming_contexts() -> int:
    return sum(isinstance(each, ResumingContext) for each in gc.get_objects())


async def test_a_client_certificate_is_read_again_once_its_key_has_come(tmp_path: Path) -> None:
    authority, now = trustme.CA(), [0.0]
    old, new = (authority.issue_cert(f"{name}@example.com") for name in ("old", "new"))
    cert, key = tmp_path / "crt", tmp_path / "key"
    cert.write_bytes(old.cert_chain_pems[0].bytes())
    key.write_bytes(old.private_key_pem.bytes())
    held = Certificate(cert.read_bytes(), key.read_bytes())
    source = CertificateFiles(Static(cert=held), cert, key, monotonic=lambda: now[0])
    cert.write_bytes(new.cert_chain_pems[0].bytes())
    now[0] = 11.0
    await source.header()
    assert source.certificate() is held
    assert not source.renew()
    key.write_bytes(new.private_key_pem.bytes())
    assert source.renew()
    assert source.certificate() == Certificate(cert.read_bytes(), key.read_bytes())
    key.unlink()
    assert not source.renew()


async def test_it_is_known_for_how_long_the_server_has_rejected_the_credential(peer: Peer) -> None:
    async with HttpClient(Config(peer.url, bearer("t")), retry=NEVER) as client:
        assert client.rejected_seconds == 0
        peer.says(failure(401, "Unauthorized"))
        with pytest.raises(Unauthorized):
            await client.get(CONFIGMAPS, A)
        first = client.rejected_seconds
        with pytest.raises(Unauthorized):
            await client.get(CONFIGMAPS, A)
        assert client.rejected_seconds > first > 0
        peer.says(failure(403, "Forbidden"))
        with pytest.raises(ApiError):
            await client.get(CONFIGMAPS, A)
        assert client.rejected_seconds == 0


async def test_invalid_certificates_are_named() -> None:
    async with HttpClient(Config("https://127.0.0.1:1", ca=b"nonsense")) as client:
        with pytest.raises(ConfigError, match=r"certificate authority for https://127\.0\.0\.1:1 is not a PEM"):
            await client.get(CONFIGMAPS, A)
    secret = Certificate(b"nonsense", b"SECRETKEY")
    async with HttpClient(Config("https://127.0.0.1:1", Static(cert=secret))) as client:
        with pytest.raises(ConfigError, match="client certificate or key") as caught:
            await client.get(CONFIGMAPS, A)
    assert "SECRETKEY" not in str(caught.value)
